package state_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentstate/state"
)

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
