// Messages shows that a message is an immutable value that loses nothing of the
// JSON it came as.
package main

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/agentstate/state"
)

const conversation = `[
	{"type": "text", "role": "user", "content": [{"type": "text", "text": "What is in this picture?"}, {"type": "image", "url": "cat.png"}]},
	{"type": "tool_call", "role": "assistant", "stop_reason": "tool", "tools": [
		{"type": "tool", "id": "c1", "name": "look", "input": {"pixels": 9007199254740993, "zoom": 1.0}}
	], "thought_signature": "c2ln"},
	{"type": "tool_result", "role": "tool_result", "tool": {"type": "tool", "id": "c1", "name": "look", "input": {}}, "content": "42", "stop_reason": "tool"},
	{"type": "reasoning", "role": "assistant", "summary": "It purrs."}
]`

func main() {
	msgs, err := state.DecodeMessages([]byte(conversation))
	check(err)
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			fmt.Printf("%s says %q\n", m.Role(), m.Text())
		case state.ToolCallMessage:
			for _, call := range m.Calls() {
				fmt.Printf("call %s of %s with %s\n", call.ID, call.Name, call.Input)
			}
			signature, _ := m.Extra("thought_signature")
			fmt.Println("  a member this library does not know:", signature)
		case state.ToolResultMessage:
			fmt.Printf("%s returned the string %q, not a number: %s\n", m.Call().Name, m.Text(), m.Content())
		case state.UnknownMessage:
			fmt.Printf("passed through: %s %s\n", m.Type(), m.Raw())
		}
	}

	// Encoded and decoded again, each is equal to what it was.
	data, err := json.Marshal(msgs)
	check(err)
	again, err := state.DecodeMessages(data)
	check(err)
	same := 0
	for i := range again {
		if again[i].Equal(msgs[i]) {
			same++
		}
	}
	fmt.Printf("\n%d of %d messages are the same after a round trip\n", same, len(msgs))

	// What is ambiguous is refused.
	for _, bad := range []string{
		`{"type":"text","role":"user","role":"system","content":"hi"}`,
		`{"type":"tool_call","role":"assistant","tools":[{"name":"look","input":{"a":{"x":1,"x":2}}}]}`,
		`{"type":"text","role":"user","content":7}`,
	} {
		_, err := state.DecodeMessage([]byte(bad))
		fmt.Println(err)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
