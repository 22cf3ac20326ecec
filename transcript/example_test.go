package transcript_test

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// interrupted returns a conversation that was interrupted while a tool ran, and
// then continued.
func interrupted() []state.Message {
	search := state.ToolCall{ID: "call_1", Name: "search", Input: `{"query":"flights to Rome"}`}
	book := state.ToolCall{ID: "call_2", Name: "book", Input: `{"flight":"DY1872"}`}
	return []state.Message{
		state.SystemText("You are a travel agent."),
		state.UserText("Book me a flight to Rome."),
		state.ToolCalls(search),
		state.ToolResult(search, `["DY1872"]`),
		state.ToolCalls(book),
		state.UserText("Hello?"),
	}
}

func ExampleCheck() {
	for _, finding := range transcript.Check(interrupted(), transcript.Anthropic) {
		fmt.Println(finding)
	}
	// Output: message 4: unanswered-call: call "call_2" of "book"
}

func ExampleRepair() {
	msgs, changes := transcript.Repair(interrupted(), transcript.Anthropic, transcript.Policy{AnswerCalls: true})
	for _, change := range changes {
		fmt.Println(change)
	}
	for _, m := range msgs[4:] {
		fmt.Println(m)
	}
	// Output:
	// message 4: unanswered-call: answered call "call_2" of "book"
	// tool_call "assistant": "book" id "call_2"
	// tool_result (error) "book" id "call_2": "There is no result: the call may have been made."
	// text "user": "Hello?"
}

// A call that waits for a person has not failed: the model is told to wait, and
// does not make the call again.
func ExampleRepair_suspended() {
	msgs := interrupted()
	policy := transcript.Policy{AnswerCalls: true, Suspended: transcript.Pending(msgs)}
	repaired, _ := transcript.Repair(msgs, transcript.Anthropic, policy)
	for _, m := range repaired[4:] {
		fmt.Println(m)
	}
	// Output:
	// tool_call "assistant": "book" id "call_2"
	// tool_result "book" id "call_2": "Waiting for approval."
	// text "user": "Hello?"
}

func ExampleAnswer() {
	book := state.ToolCall{ID: "call_2", Name: "book"}
	msgs, err := transcript.Answer(interrupted(), state.ToolResult(book, `"booked"`))
	for _, m := range msgs[4:] {
		fmt.Println(m)
	}
	fmt.Println(err)
	// Output:
	// tool_call "assistant": "book" id "call_2"
	// tool_result "book" id "call_2": "booked"
	// text "user": "Hello?"
	// <nil>
}

func ExamplePending() {
	for _, call := range transcript.Pending(interrupted()) {
		fmt.Println(call.Name, call.Input)
	}
	// Output: book {"flight":"DY1872"}
}

func ExampleGroups() {
	fmt.Println(transcript.Groups(interrupted()))
	// Output: [[0] [1] [2 3] [4] [5]]
}

func ExampleKeepLast() {
	call := state.ToolCall{ID: "call_1", Name: "search", Input: `{"query":"flights to Rome"}`}
	msgs := []state.Message{
		state.SystemText("You are a travel agent."),
		state.UserText("Hi!"),
		state.AssistantText("Where to?"),
		state.UserText("To Rome."),
		state.ToolCalls(call),
		state.ToolResult(call, `["DY1872"]`),
	}
	// The last two are one group. The request of the user is kept with them.
	for _, m := range transcript.KeepLast(4)(msgs) {
		fmt.Println(m)
	}
	// Output:
	// text "system": "You are a travel agent."
	// text "user": "To Rome."
	// tool_call "assistant": "search" id "call_1"
	// tool_result "search" id "call_1": "[\"DY1872\"]"
}

func ExampleTrim_Handler() {
	messages := &state.Field[[]state.Message]{Name: "messages", Handler: transcript.KeepLast(3).Handler()}
	st := state.New(state.MustSchema(messages))
	for i := range 3 {
		err := messages.Set(st, []state.Message{
			state.UserText(fmt.Sprint("How much is ", i, " + ", i, "?")),
			state.AssistantText(fmt.Sprint(i + i)),
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	for _, m := range messages.GetOr(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// text "user": "How much is 2 + 2?"
	// text "assistant": "4"
}

// Of a large result of a tool, a model is shown the ends. The State has the whole.
func ExampleShown() {
	st := state.New(state.MustSchema(state.Limits{ResultBytes: 197}))
	call := state.ToolCall{ID: "c1", Name: "read_log", Input: `{}`}
	log := "starting up\n" + strings.Repeat("working\n", 1000) + "failed: disk full\n"
	said := []state.Message{state.UserText("Why?"), state.ToolCalls(call), state.ToolResult(call, state.JSONText(log))}
	if err := state.Messages.Set(st, said); err != nil {
		panic(err)
	}
	msgs := state.Messages.GetOr(st, nil)
	shown := transcript.Shown(msgs, true) // the agent has the tool recall
	fmt.Println(len(msgs[2].Text()), "bytes are stored")
	fmt.Println(shown[2].Text())
	// Output:
	// 8030 bytes are stored
	// starting up
	// working
	// working
	// working
	// working
	// working
	// [7953 characters are left out here. The tool recall finds words in them.]
	// working
	// failed: disk full
}
