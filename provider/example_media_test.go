package provider_test

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// A program makes a message of parts in the words of any provider, and sends
// it to all. What a provider has no place for is reported.
func ExampleFormat_EncodeRequest() {
	picture, err := state.Parts("user",
		`{"type":"text","text":"What is it?","cache_control":{"type":"ephemeral"}}`,
		`{"type":"image","mimeType":"image/png","data":"aGk="}`, // as a tool of MCP returns it
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	sound, err := state.Parts("user", `{"type":"audio","mimeType":"audio/wav","data":"aGk="}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := provider.Request{Messages: []state.Message{picture, sound}}
	for _, format := range []*provider.Format{provider.Anthropic, provider.Gemini} {
		body, omitted, err := format.EncodeRequest(request)
		fmt.Println(string(body), omitted, err)
	}
	// Output:
	// {"messages":[{"role":"user","content":[{"type":"text","text":"What is it?","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},{"role":"user","content":"[audio left out]"}]} [message 1: part of type audio] <nil>
	// {"contents":[{"role":"user","parts":[{"text":"What is it?"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},{"role":"user","parts":[{"inlineData":{"mimeType":"audio/wav","data":"aGk="}}]}]} [message 0: member cache_control of part 0] <nil>
}

// OpenAI has called a tool, and Anthropic goes on with thinking. It demands that
// the turn begins with its own thinking, so the result becomes a text.
func ExampleRequest_Profile() {
	call := state.ToolCall{ID: "call_1", Name: "fare", Input: `{"to":"FCO"}`}
	request := provider.Request{
		Messages: []state.Message{state.UserText("What is the fare to Rome?"), state.ToolCalls(call), state.ToolResult(call, `"99 euros"`)},
		Settings: `{"model":"claude-opus-4-5","thinking":{"type":"enabled","budget_tokens":1024}}`,
	}
	profile := request.Profile(transcript.Anthropic)
	fmt.Println(transcript.Check(request.Messages, profile))
	msgs, _ := transcript.Repair(request.Messages, profile, transcript.Policy{AnswerCalls: true})
	for _, m := range msgs {
		fmt.Println(m)
	}
	// Output:
	// [message 1: thinking: the turn does not begin with thinking]
	// text "user": "What is the fare to Rome?"
	// text "user": "Result of fare({\"to\":\"FCO\"}): 99 euros"
}
