package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// stopBodies make a response that says a text and ends with a word, whole and
// as events.
var stopBodies = map[string]struct {
	format *provider.Format
	whole  func(word string) string
	events func(word string) []string
}{
	"chat": {
		provider.OpenAI,
		func(word string) string {
			return `{"id":"1","choices":[{"message":{"role":"assistant","content":"The"},"finish_reason":"` + word + `"}]}`
		},
		func(word string) []string {
			return []string{
				`{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"The"}}]}`,
				`{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"` + word + `"}]}`,
			}
		},
	},
	"responses": {provider.OpenAIResponses, itemsWith, func(word string) []string {
		return []string{`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`, `{"type":"response.completed","response":` + itemsWith(word) + `}`}
	}},
	"anthropic": {
		provider.Anthropic,
		func(word string) string {
			return `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"The"}],"stop_reason":"` + word + `"}`
		},
		func(word string) []string {
			return []string{
				`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"The"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"` + word + `"}}`, `{"type":"message_stop"}`,
			}
		},
	},
	"gemini": {provider.Gemini, candidateWith, func(word string) []string { return []string{candidateWith(word)} }},
	"bedrock": {
		provider.New("bedrock", transcript.Profile{}, bedrock),
		func(word string) string {
			return `{"output":{"message":{"role":"assistant","content":[{"text":"The"}]}},"stopReason":"` + word + `"}`
		},
		func(word string) []string {
			return []string{
				`{"messageStart":{"role":"assistant"}}`, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"The"}}}`,
				`{"messageStop":{"stopReason":"` + word + `"}}`, `{"metadata":{"usage":{}}}`,
			}
		},
	},
}

func itemsWith(word string) string {
	status := `"status":"` + word + `"`
	if word != "completed" && word != "failed" && word != "cancelled" && word != "incomplete" {
		status = `"status":"incomplete","incomplete_details":{"reason":"` + word + `"}`
	}
	return `{"id":"r","object":"response",` + status + `,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"The","annotations":[]}]}]}`
}

func candidateWith(word string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":"The"}]},"finishReason":"` + word + `"}]}`
}

// Each word of each API has its meaning, in a response that comes whole and in
// one that is streamed.
func TestStops(t *testing.T) {
	for api, words := range map[string]map[state.Stop]string{
		"chat": {
			state.StopEnd: "stop tool_calls function_call", state.StopLength: "length model_length", state.StopFiltered: "content_filter",
			state.StopFailed: "error abort insufficient_system_resource", state.StopUnknown: "tired",
		},
		"responses": {
			state.StopEnd: "completed", state.StopLength: "max_output_tokens max_messages", state.StopFiltered: "content_filter",
			state.StopFailed: "failed", state.StopInterrupted: "steered cancelled", state.StopUnknown: "incomplete tired",
		},
		"anthropic": {
			state.StopEnd: "end_turn stop_sequence tool_use", state.StopLength: "max_tokens model_context_window_exceeded",
			state.StopPaused: "pause_turn compaction", state.StopRefused: "refusal", state.StopUnknown: "tired",
		},
		"gemini": {
			state.StopEnd: "STOP", state.StopLength: "MAX_TOKENS CONTINUATION", state.StopRefused: "LANGUAGE",
			state.StopFiltered: "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION",
			state.StopFailed:   "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS NO_IMAGE", state.StopUnknown: "OTHER IMAGE_OTHER TIRED",
		},
		"bedrock": {
			state.StopEnd: "end_turn stop_sequence tool_use", state.StopLength: "max_tokens model_context_window_exceeded",
			state.StopFiltered: "guardrail_intervened content_filtered", state.StopFailed: "malformed_model_output malformed_tool_use",
			state.StopUnknown: "tired",
		},
	} {
		b := stopBodies[api]
		for want, list := range words {
			for _, word := range strings.Fields(list) {
				whole, err := b.format.DecodeResponse([]byte(b.whole(word)))
				require.NoError(t, err, "%s %s", api, word)
				require.Equal(t, [2]string{string(want), word}, stopOf(whole), "%s %s", api, word)
				again, err := streamTo(b.format, b.events(word)...)
				require.NoError(t, err, "%s %s", api, word)
				require.Equal(t, [2]string{string(want), word}, stopOf(again), "%s %s, streamed", api, word)
				if api != "bedrock" && want != state.StopEnd {
					require.Equal(t, want, provider.StopOf(word))
				}
			}
		}
	}
}

func stopOf(r state.InferenceResult) [2]string { return [2]string{string(r.Stop), r.StopWord} }

func streamTo(format *provider.Format, events ...string) (state.InferenceResult, error) {
	stream := format.Stream()
	for _, event := range events {
		_ = stream.Event([]byte(event)) // reported by Result
	}
	return stream.Result()
}

// Calls, refusals beside the word, blocked prompts and words of other APIs.
func TestStopsBesideTheWord(t *testing.T) {
	chat := func(message, finish string) string {
		return fmt.Sprintf(`{"id":"1","choices":[{"message":{"role":"assistant",%s},"finish_reason":%s}]}`, message, finish)
	}
	call := `"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"pay","arguments":"{}"}}]`
	for name, c := range map[string]struct {
		format *provider.Format
		body   string
		want   [2]string
	}{
		"calls":                     {provider.OpenAI, chat(call, `"tool_calls"`), [2]string{"calls", "tool_calls"}},
		"calls with the usual end":  {provider.OpenAI, chat(call, `"stop"`), [2]string{"calls", "stop"}},
		"calls that were cut":       {provider.OpenAI, chat(call, `"length"`), [2]string{"length", "length"}},
		"calls without a word":      {provider.OpenAI, chat(call, `null`), [2]string{"", ""}},
		"a word that says nothing":  {provider.OpenAI, chat(`"content":"a"`, `"null"`), [2]string{"", ""}},
		"no word":                   {provider.OpenAI, chat(`"content":"a"`, `null`), [2]string{"", ""}},
		"a word of Gemini":          {provider.OpenAI, chat(`"content":"a"`, `"MAX_TOKENS"`), [2]string{"length", "MAX_TOKENS"}},
		"a word of Chat":            {provider.Anthropic, stopBodies["anthropic"].whole("length"), [2]string{"length", "length"}},
		"a refusal":                 {provider.OpenAI, chat(`"content":null,"refusal":"No."`, `"stop"`), [2]string{"refused", "stop"}},
		"a refusal as a part":       {provider.OpenAI, chat(`"content":[{"type":"refusal","refusal":"No."}]`, `"stop"`), [2]string{"refused", "stop"}},
		"no refusal":                {provider.OpenAI, chat(`"content":"a","refusal":null`, `"stop"`), [2]string{"end", "stop"}},
		"a refusal of Responses":    {provider.OpenAIResponses, `{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]}`, [2]string{"refused", "completed"}},
		"a refusal without content": {provider.Anthropic, `{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"refusal"}`, [2]string{"refused", "refusal"}},
		"a call of Responses":       {provider.OpenAIResponses, `{"id":"r","object":"response","status":"completed","output":[{"type":"function_call","call_id":"c","name":"pay","arguments":"{}"}]}`, [2]string{"calls", "completed"}},
		"a call of Gemini":          {provider.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}}}]},"finishReason":"STOP"}]}`, [2]string{"calls", "STOP"}},
		"no content":                {provider.Gemini, `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`, [2]string{"failed", "MALFORMED_FUNCTION_CALL"}},
		"a reason as a number":      {provider.Gemini, `{"candidates":[{"finishReason":2}]}`, [2]string{"length", "MAX_TOKENS"}},
		"no reason":                 {provider.Gemini, `{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`, [2]string{"", ""}},
		"a blocked prompt":          {provider.Gemini, `{"promptFeedback":{"blockReason":"OTHER"}}`, [2]string{"filtered", "OTHER"}},
		"a new block":               {provider.Gemini, `{"promptFeedback":{"blockReason":"TIRED"}}`, [2]string{"unknown", "TIRED"}},
	} {
		r, err := c.format.DecodeResponse([]byte(c.body))
		require.NoError(t, err, name)
		require.Equal(t, c.want, stopOf(r), name)
	}
	refused, err := streamTo(provider.OpenAI,
		`{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","refusal":"N"}}]}`,
		`{"id":"1","choices":[{"index":0,"delta":{"refusal":"o."},"finish_reason":"stop"}]}`)
	require.NoError(t, err)
	require.Equal(t, [2]string{"refused", "stop"}, stopOf(refused))
	blocked, err := streamTo(provider.Gemini, `{"promptFeedback":{"blockReason":"SAFETY"}}`)
	require.NoError(t, err)
	require.Equal(t, [2]string{"filtered", "SAFETY"}, stopOf(blocked))
}
