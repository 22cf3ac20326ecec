package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state"
)

func ExampleHistory_Append() {
	st := state.New(state.MustSchema(state.Team{"writer": nil}))
	writer := st.As("writer")
	call := state.ToolCall{ID: "call_1", Name: "rhymes", Input: `{"word":"rain"}`}
	err := errors.Join(
		state.Messages.Set(st, []state.Message{state.UserText("A line about rain.")}),
		writer.History().Append(state.InferenceResult{
			Output:    []state.Message{state.ToolCalls(call)},
			ToolCalls: []state.ToolResultMessage{state.ToolResult(call, `["plain"]`)},
		}),
		writer.History().Append(state.InferenceResult{
			Output:    []state.Message{state.AssistantText("Rain on the plain.")},
			StartedAt: time.Now(), // before the model is called
		}),
	)
	last, _ := st.History().Last()
	fmt.Println(err, st.History().Len(), last.Agent, !last.CreatedAt.Before(last.StartedAt))
	for _, m := range state.Messages.GetOr(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// <nil> 2 writer true
	// text "user": "A line about rain."
	// tool_call "assistant": "rhymes" id "call_1"
	// tool_result "rhymes" id "call_1": "[\"plain\"]"
	// text "assistant": "Rain on the plain."
}

func ExampleHistory_Format() {
	st := state.New(nil)
	for _, r := range []state.InferenceResult{
		{Agent: "writer", Output: []state.Message{state.AssistantText("Rain on the plain.")}},
		{Agent: "critic", Output: []state.Message{state.AssistantText("Too plain.")}},
	} {
		if err := st.History().Append(r); err != nil {
			fmt.Println(err)
		}
	}
	prompt := st.History().Format(func(r state.InferenceResult) []state.Message {
		var said []state.Message
		for _, m := range r.Output {
			if m, ok := m.(state.TextMessage); ok {
				said = append(said, state.UserText(r.Agent+" said: "+m.Text()))
			}
		}
		return said
	})
	for _, m := range prompt {
		fmt.Println(m)
	}
	// Output:
	// text "user": "writer said: Rain on the plain."
	// text "user": "critic said: Too plain."
}

func ExampleHistory_All() {
	st := state.New(nil)
	history := st.History()
	for _, agent := range []string{"writer", "critic", "writer"} {
		if err := history.Append(state.InferenceResult{Agent: agent, Input: "draft"}); err != nil {
			fmt.Println(err)
		}
	}
	for i, r := range history.All() {
		fmt.Println(i, r.Agent)
	}
	popped, ok, err := history.Pop()
	first, _ := history.At(0)
	fmt.Println(popped.Agent, ok, err, first.Agent, len(history.Results()))
	fmt.Println(history.Reset(nil), history.Len())
	// Output:
	// 0 writer
	// 1 critic
	// 2 writer
	// writer true <nil> writer 2
	// <nil> 0
}

// An agent signs with its own name, and with no other.
func ExampleHistory_Append_signature() {
	st := state.New(state.MustSchema(state.Team{"writer": {"critic"}}))
	critic := st.As("critic")
	fmt.Println(critic.History().Append(state.InferenceResult{Agent: "writer"}))
	fmt.Println(critic.History().Append(state.InferenceResult{}))
	last, _ := st.History().Last()
	fmt.Println(last.Agent)
	// Output:
	// state: append a result of "writer" to "history": access denied to agent "critic"
	// <nil>
	// critic
}

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
	for _, m := range state.Messages.GetOr(st, nil) {
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

// The title of a chat comes from a call of the model that is not part of the
// chat.
func ExampleHistory_AppendOutside() {
	st := state.New(nil)
	err := errors.Join(
		state.Messages.Set(st, []state.Message{state.UserText("Where is my order?")}),
		st.History().AppendOutside(state.InferenceResult{Input: "title", Output: []state.Message{state.AssistantText("A lost order")}}),
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

func ExampleDecodeMessage() {
	m, err := state.DecodeMessage([]byte(`{
		"type": "tool_call", "role": "assistant", "stop_reason": "tool", "signature": "c2ln",
		"tools": [{"type": "tool", "id": "c1", "name": "pay", "input": {"cents": 9007199254740993}}]
	}`))
	if call, ok := m.(state.ToolCallMessage); ok {
		signature, _ := call.Extra("signature")
		fmt.Println(err, call.Calls()[0].Name, call.Calls()[0].Input, signature.Text(), call.StopReason())
	}
	_, err = state.DecodeMessage([]byte(`{"type":"text","role":"user","role":"system","content":"hi"}`))
	fmt.Println(err)
	// Output:
	// <nil> pay {"cents":9007199254740993} c2ln tool
	// state: "message": $.role: the member occurs twice
}

func ExampleToolError() {
	call := state.ToolCall{ID: "c1", Name: "pay", Input: `{"cents":100}`}
	failed := state.ToolError(call, "the card was refused")
	receipt, err := state.JSONOf(map[string]any{"receipt": "<81>"})
	paid := state.ToolResult(call, receipt)
	fmt.Println(failed.IsError(), failed.Text())
	fmt.Println(err, paid.IsError(), paid.Content(), paid.Content().Valid(), paid.Call().ID)
	var content struct{ Receipt string }
	fmt.Println(paid.Content().Decode(&content), content.Receipt)
	// Output:
	// true the card was refused
	// <nil> false {"receipt":"<81>"} true c1
	// <nil> <81>
}

// Messages keep every member of the JSON that they were decoded from. Types that
// the library does not know are passed through.
func ExampleDecodeMessages() {
	msgs, err := state.DecodeMessages([]byte(`[
		{"type": "text", "role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image", "url": "cat.png"}]},
		{"type": "tool_result", "role": "tool_result", "tool": {"type": "tool", "id": "c1", "name": "look", "input": {}}, "content": "42"},
		{"type": "reasoning", "role": "assistant", "summary": "It purrs."}
	]`))
	fmt.Println(err)
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			fmt.Printf("%s says %q\n", m.Role(), m.Text())
		case state.ToolResultMessage:
			fmt.Printf("%s returned the string %q, not a number: %s\n", m.Call().Name, m.Text(), m.Content())
		case state.UnknownMessage:
			fmt.Println(m.Type(), m.Raw())
		}
	}

	data, err := json.Marshal(msgs)
	again, err2 := state.DecodeMessages(data)
	fmt.Println(err, err2, slices.EqualFunc(msgs, again, state.Message.Equal))
	// Output:
	// <nil>
	// user says "What is this?"
	// look returned the string "42", not a number: "42"
	// reasoning {"type":"reasoning","role":"assistant","summary":"It purrs."}
	// <nil> <nil> true
}
