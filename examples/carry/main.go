// Carry continues with Anthropic a conversation that began with OpenAI. The
// process died while a tool was running, and the beginning of the history is
// trimmed. The request to Anthropic is valid nevertheless.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"regexp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

const request = `{
	"model": "gpt-4o", "temperature": 0.0,
	"messages": [
		{"role": "system", "content": "You are a travel agent."},
		{"role": "user", "content": "Hello!"},
		{"role": "assistant", "content": "Where to?"},
		{"role": "user", "content": "From Oslo to Rome, please, on the 3rd."},
		{"role": "assistant", "content": null, "tool_calls": [
			{"id": "call_1", "type": "function", "function": {"name": "flights", "arguments": "{\"to\":\"FCO\"}"}}
		]},
		{"role": "tool", "tool_call_id": "call_1", "content": "[\"DY1872\",\"AZ1483\"]"}
	]
}`

const response = `{
	"id": "chatcmpl-9", "object": "chat.completion", "created": 1763712000, "model": "gpt-4o",
	"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
		"role": "assistant", "content": "Two flights. I am looking at the fares.", "refusal": null, "tool_calls": [
			{"id": "call_1", "type": "function", "function": {"name": "fare", "arguments": "{\"flight\":\"DY1872\"}"}},
			{"id": "call_2", "type": "function", "function": {"name": "fare", "arguments": "{\"flight\":\"AZ1483\"}"}}
		]}
	}]
}`

func main() {
	begun, err := provider.OpenAI.DecodeRequest([]byte(request))
	check(err)
	result, err := provider.OpenAI.DecodeResponse([]byte(response))
	check(err)
	result.Agent, result.History = "travel", begun.Messages

	st := state.New(state.MustSchema())
	check(state.Messages.Set(st, begun.Messages))
	check(st.History().Append(result))

	// The process dies after the first of two results. The next process finds
	// this state.
	calls := transcript.Pending(result.Output)
	check(state.Messages.Set(st, []state.Message{state.ToolResult(calls[0], state.JSONText("99.00"))}))
	msgs := state.Messages.GetOr(st, nil)
	for _, call := range transcript.Pending(msgs) {
		fmt.Printf("not answered: %s(%s)\n", call.Name, call.Input)
	}

	// What would Anthropic reject?
	for _, finding := range transcript.Check(msgs, transcript.Anthropic) {
		fmt.Println("refused:", finding)
	}
	msgs = transcript.KeepLast(7)(msgs)
	msgs, changes := transcript.Repair(msgs, transcript.Anthropic, transcript.Policy{AnswerCalls: true})
	for _, change := range changes {
		fmt.Println("repaired:", known(fmt.Sprint(change)))
	}
	fmt.Println("findings now:", len(transcript.Check(msgs, transcript.Anthropic)))

	body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{
		Messages: msgs,
		Settings: `{"model":"claude-opus-4-8","max_tokens":1024}`,
	})
	check(err)
	fmt.Println("left out:", len(omitted))
	var sent struct {
		System   json.RawMessage   `json:"system"`
		Messages []json.RawMessage `json:"messages"`
	}
	check(json.Unmarshal(body, &sent))
	fmt.Printf("system %s\n", sent.System)
	for _, entry := range sent.Messages {
		fmt.Println(known(string(entry)))
	}
}

// newID is the id of a call whose own id repeats: random, and the same in each
// request.
var newID = regexp.MustCompile(`"call_[\w-]{14}"`)

func known(text string) string { return newID.ReplaceAllString(text, `"call_NEW"`) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
