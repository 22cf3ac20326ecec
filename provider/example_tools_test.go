package provider_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// The same tools, in the spelling of each provider.
func ExampleTools() {
	tools := []provider.Tool{{
		Name: "fare", Description: "Tells the fare to an airport.",
		Schema: `{"type":"object","properties":{"to":{"type":"string"}}}`,
	}}
	for _, format := range []*provider.Format{provider.OpenAI, provider.Anthropic} {
		body, _, err := format.EncodeRequest(provider.Request{
			Messages: []state.Message{state.UserText("To Rome?")},
			Tools:    tools,
		})
		fmt.Println(string(body), err)
	}
	// Output:
	// {"tools":[{"type":"function","function":{"name":"fare","description":"Tells the fare to an airport.","parameters":{"type":"object","properties":{"to":{"type":"string"}}}}}],"messages":[{"role":"user","content":"To Rome?"}]} <nil>
	// {"tools":[{"name":"fare","description":"Tells the fare to an airport.","input_schema":{"type":"object","properties":{"to":{"type":"string"}}}}],"messages":[{"role":"user","content":"To Rome?"}]} <nil>
}

// OpenAI refuses a dot in a name. Tools and calls get the same other name, and
// the answer gets the name of the program back.
func ExampleRequest_RenameTools() {
	call := state.ToolCall{ID: "call_1", Name: "travel.fare", Input: `{"to":"Rome"}`}
	request := provider.Request{
		Messages: []state.Message{state.UserText("To Rome?"), state.ToolCalls(call), state.ToolResult(call, `"120 €"`)},
		Tools:    []provider.Tool{{Name: "travel.fare"}},
	}
	profile := provider.OpenAI.Profile()

	request, names := request.RenameTools(profile)
	request.Messages, _ = transcript.Repair(request.Messages, profile, transcript.Policy{AnswerCalls: true})
	body, _, err := provider.OpenAI.EncodeRequest(request)
	fmt.Println(strings.Count(string(body), `"name":"travel_fare_28995857"`), err)

	output := []state.Message{state.ToolCalls(state.ToolCall{ID: "call_2", Name: "travel_fare_28995857"})}
	fmt.Println(names.Restore(output)[0])
	// Output:
	// 2 <nil>
	// tool_call "assistant": "travel.fare" id "call_2"
}

// A user reads the answer while it comes. Secrets are masked although a piece
// may end inside one.
func ExampleStream_onDelta() {
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	_ = card.Set(st, "4242-4242")
	events := []string{
		`{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[]}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Paid with 42"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"42-4242."}}`,
		`{"type":"message_stop"}`,
	}

	out := st.Redactor().Writer(os.Stdout)
	stream := provider.Anthropic.Stream()
	stream.OnDelta = func(d provider.Delta) {
		if d.Kind == provider.DeltaText {
			_, _ = out.Write([]byte(d.Text))
		}
	}
	for _, event := range events {
		_ = stream.Event([]byte(event)) // Result reports the error
	}
	_ = out.Close()
	result, err := stream.Result()
	fmt.Println()
	fmt.Println(stream.Done(), len(result.Output), err)
	// Output:
	// Paid with [SECRET].
	// true 1 <nil>
}

// The cost of a call is in what was recorded of it, whichever provider it was.
func ExampleSummarize() {
	result := state.InferenceResult{Raw: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":"end_turn",
		"usage":{"input_tokens":10,"cache_read_input_tokens":900,"cache_creation_input_tokens":0,"output_tokens":25}}`}

	said, ok := provider.Summarize(result.Raw)
	fmt.Println(said.Format, said.Model, said.Usage.Input, said.Usage.CacheRead, said.Usage.Output, ok)
	// Output: Anthropic claude-opus-4-8 910 900 25 true
}
