package state_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A framework calls tools one by one. The model's answer is stored before they
// run, and each result when it arrives.
func ExampleHistory_Answer() {
	st := state.New(nil)
	calls := []state.ToolCall{
		{ID: "call_1", Name: "search", Input: `{"query":"refunds"}`},
		{ID: "call_2", Name: "pay", Input: `{"amount":120}`},
	}
	history := st.History()
	err := errors.Join(
		history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}),
		history.Answer(state.ToolResult(calls[1], `"paid"`)),
		history.Answer(state.ToolResult(calls[0], `["policy.md"]`)),
	)
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	last, _ := history.Last()
	fmt.Println(len(last.ToolCalls), history.Len(), err)
	fmt.Println(errors.Is(history.Answer(state.ToolResult(calls[1], `"paid"`)), state.ErrAnswered))
	// Output:
	// tool_call "assistant": "search" id "call_1" "pay" id "call_2"
	// tool_result "search" id "call_1": "[\"policy.md\"]"
	// tool_result "pay" id "call_2": "paid"
	// 2 1 <nil>
	// true
}

// The calls of one result are answered in two branches.
func ExampleHistory_Answer_branches() {
	st := state.New(nil)
	calls := []state.ToolCall{{ID: "call_1", Name: "flights"}, {ID: "call_2", Name: "hotels"}}
	err := st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}})
	flights, hotels := st.Fork(), st.Fork()
	err = errors.Join(err,
		hotels.History().Answer(state.ToolResult(calls[1], `"Hotel Opera"`)),
		flights.History().Answer(state.ToolResult(calls[0], `"DY1872"`)),
		st.Join(hotels, flights),
	)
	last, _ := st.History().Last()
	for _, m := range last.ToolCalls {
		fmt.Println(m.Call().Name, m.Text())
	}
	fmt.Println(err)
	// Output:
	// flights DY1872
	// hotels Hotel Opera
	// <nil>
}

// An agent loop: the model is asked until it makes no more calls.
func ExampleHistory_Answer_loop() {
	st := state.New(nil)
	stock := tool.Must(tool.New("stock", "The number of items in stock.", func(_ context.Context, in struct {
		Item string `json:"item"`
	}) (int, error) {
		return len(in.Item), nil
	}))
	model := scriptedModel(
		state.ToolCalls(state.ToolCall{ID: "call_1", Name: "stock", Input: `{"item":"lamp"}`}, state.ToolCall{ID: "call_2", Name: "stock", Input: `{"item":"chair"}`}),
		state.AssistantText("4 lamps and 5 chairs."),
	)

	ctx, history := context.Background(), st.History()
	for {
		answer := model(state.Messages.Or(st, nil))
		if err := history.Append(state.InferenceResult{Output: []state.Message{answer}}); err != nil {
			fmt.Println(err)
		}
		results, err := tool.Answer(ctx, st, []*tool.Tool{stock}, history.Pending())
		if err != nil || len(results) == 0 {
			break
		}
	}
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// tool_call "assistant": "stock" id "call_1" "stock" id "call_2"
	// tool_result "stock" id "call_1": "4"
	// tool_result "stock" id "call_2": "5"
	// text "assistant": "4 lamps and 5 chairs."
}

// A process has ended in the middle of a step. The next one makes the calls that
// are left, except for the one that waits for a person.
func ExampleHistory_Pending() {
	st := state.New(nil)
	calls := []state.ToolCall{{ID: "call_1", Name: "search"}, {ID: "call_2", Name: "pay"}, {ID: "call_3", Name: "search"}}
	history := st.History()
	err := errors.Join(
		history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}),
		history.Answer(state.ToolResult(calls[0], `["policy.md"]`)),
	)
	for _, call := range history.Pending(calls[1]) {
		fmt.Println(call.ID, call.Name)
	}
	fmt.Println(len(history.Pending()), err)
	// Output:
	// call_3 search
	// 2 <nil>
}

// scriptedModel returns a model that gives these answers, one for each call.
func scriptedModel(answers ...state.Message) func([]state.Message) state.Message {
	turn := 0
	return func([]state.Message) state.Message {
		turn++
		return answers[turn-1]
	}
}

// The title of a chat comes from a call of the model that is not part of the
// chat.
func ExampleHistory_Push() {
	st := state.New(nil)
	err := errors.Join(
		state.Messages.Set(st, []state.Message{state.UserText("Where is my order?")}),
		st.History().Push(state.InferenceResult{Input: "title", Output: []state.Message{state.AssistantText("A lost order")}}),
	)
	title, _ := st.History().Last()
	fmt.Println(title.Output[0], state.ListLen(st, state.Messages), err)
	// Output: text "assistant": "A lost order" 1 <nil>
}

// Load sets a conversation that is kept in another database.
func ExampleHistory_Load() {
	rows := []struct{ role, text string }{
		{"user", "Where is my order?"},
		{"assistant", "It arrives on Monday."},
	}
	st := state.New(nil)
	var msgs []state.Message
	var results []state.InferenceResult
	for _, row := range rows {
		m := state.Text(row.role, row.text)
		msgs = append(msgs, m)
		if row.role == "assistant" {
			results = append(results, state.InferenceResult{Agent: "support", Output: []state.Message{m}})
		}
	}
	err := st.History().Load(results, msgs)
	fmt.Println(st.History().Len(), state.ListLen(st, state.Messages), st.Version(), err)
	// Output: 1 2 1 <nil>
}

// A message with a picture, in the JSON of a provider.
func ExampleParts() {
	m, err := state.Parts("user",
		`{"type":"text","text":"What is this?"}`,
		`{"type":"image_url","image_url":{"url":"https://example.com/lamp.png"}}`,
	)
	fmt.Println(m, err)
	_, err = state.Parts("user", `{"type":"text"}`)
	fmt.Println(err)
	// Output:
	// text "user": "What is this?" <nil>
	// state: "message": $.content[0].text: want string, got nothing
}
