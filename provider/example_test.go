package provider_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// A conversation that began with OpenAI continues with Anthropic. The process died
// before the tool answered.
func Example() {
	body := []byte(`{"model": "gpt-4o", "messages": [
		{"role": "system", "content": "You are a travel agent."},
		{"role": "user", "content": "What is the fare to Rome?"},
		{"role": "assistant", "content": null, "tool_calls": [
			{"id": "call_1", "type": "function", "function": {"name": "fare", "arguments": "{\"to\":\"FCO\"}"}}
		]}
	]}`)

	request, err := provider.OpenAI.DecodeRequest(body) // messages, and settings as they were
	fmt.Println(err)
	for _, finding := range transcript.Check(request.Messages, transcript.Anthropic) {
		fmt.Println(finding) // what Anthropic would reject
	}
	msgs, changes := transcript.Repair(request.Messages, transcript.Anthropic, transcript.Policy{AnswerCalls: true})
	fmt.Println(changes)
	sent, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{
		Messages: msgs,
		Settings: `{"model":"claude-opus-4-8","max_tokens":1024}`,
	})
	fmt.Println(string(sent), omitted, err)
	// Output:
	// <nil>
	// message 2: unanswered-call: call "call_1" of "fare"
	// [message 2: unanswered-call: answered call "call_1" of "fare"]
	// {"model":"claude-opus-4-8","max_tokens":1024,"system":"You are a travel agent.","messages":[{"role":"user","content":"What is the fare to Rome?"},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"fare","input":{"to":"FCO"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"There is no result: the call may have been made.","is_error":true}]}]} [] <nil>
}

// A streamed response is read as it comes, and is the same result as the whole.
func ExampleFormat_Stream() {
	body := strings.NewReader(`event: message_start
data: {"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"99 "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"euros."}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

event: message_stop
data: {"type":"message_stop"}

`)
	stream := provider.Anthropic.Stream()
	if _, err := io.Copy(stream, body); err != nil { // or read through an io.TeeReader
		fmt.Println(err)
	}
	result, err := stream.Result()
	fmt.Println(result.ID, result.Output[0], err)
	// Output: msg_1 text "assistant": "99 euros." <nil>
}
