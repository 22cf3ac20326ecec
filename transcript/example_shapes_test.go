package transcript_test

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// chatMessage is a message as frameworks have it: one for each entry of a
// request, with the calls of the model or the id of the call that it answers.
type chatMessage struct {
	Role       string
	Content    string
	ToolCalls  []chatCall
	ToolCallID string
}

type chatCall struct{ ID, Name, Arguments string }

// chatShape says to package transcript what a chatMessage is.
func chatShape(m *chatMessage) transcript.Shape {
	shape := transcript.Shape{Role: m.Role}
	for _, c := range m.ToolCalls {
		shape.Calls = append(shape.Calls, state.ToolCall{ID: c.ID, Name: c.Name})
	}
	if m.Role == "tool" {
		shape.Answers = []state.ToolCall{{ID: m.ToolCallID}}
	}
	return shape
}

// trip is a conversation in which a call was made and another one waits.
func trip() []*chatMessage {
	return []*chatMessage{
		{Role: "system", Content: "You are a travel agent."},
		{Role: "user", Content: "Hi!"},
		{Role: "assistant", Content: "Where to?"},
		{Role: "user", Content: "To Rome."},
		{Role: "assistant", Content: "Let me see.", ToolCalls: []chatCall{{"call_1", "search", `{"to":"FCO"}`}}},
		{Role: "tool", Content: `["DY1872"]`, ToolCallID: "call_1"},
		{Role: "assistant", Content: "I take it.", ToolCalls: []chatCall{{"call_2", "book", `{"flight":"DY1872"}`}}},
	}
}

// A framework's own messages are trimmed without being converted.
func ExampleShapesFunc() {
	msgs := trip()
	shapes := transcript.ShapesFunc(msgs, chatShape)
	for _, m := range transcript.Select(msgs, shapes.KeepLast(5)) {
		fmt.Println(m.Role, m.Content)
	}
	for i, call := range shapes.Pending() {
		fmt.Println("message", i, "waits for", call.Name)
	}
	// Output:
	// system You are a travel agent.
	// user To Rome.
	// assistant Let me see.
	// tool ["DY1872"]
	// assistant I take it.
	// message 6 waits for book
}

// The messages of a group are dropped or replaced together, for example by a
// summary.
func ExampleShapes_Groups() {
	msgs := trip()
	for _, group := range transcript.ShapesFunc(msgs, chatShape).Groups() {
		fmt.Print(len(transcript.Select(msgs, group)), " ")
	}
	// Output: 1 1 1 1 2 1
}
