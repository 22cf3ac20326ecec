package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

// serverSent returns server-sent events.
func serverSent(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

func TestReadUsage(t *testing.T) {
	chat := `{"id":"c1","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":71,"completion_tokens":46,"total_tokens":117,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":30}}}`
	message := `{"id":"m1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn",` +
		`"usage":{"input_tokens":5,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":7}}`
	response := `{"id":"r1","object":"response","model":"gpt-5","status":"completed","output":[],` +
		`"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":11},"total_tokens":21}}`
	gemini := `{"responseId":"g1","modelVersion":"gemini-3","candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}],` +
		`"usageMetadata":{"promptTokenCount":22,"toolUsePromptTokenCount":3,"cachedContentTokenCount":2,"candidatesTokenCount":9,"thoughtsTokenCount":40,"totalTokenCount":74}}`
	for _, test := range []struct {
		name, raw string
		want      provider.Usage
	}{
		{"Chat Completions", chat, provider.Usage{provider.OpenAI, "gpt-5", "c1", "stop", 71, 46, 8, -1, 30}},
		{"Chat Completions, streamed", serverSent(
			`{"id":"c1","model":"gpt-5","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
			`{"id":"c1","model":"gpt-5","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"id":"c1","model":"gpt-5","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "[DONE]"),
			provider.Usage{provider.OpenAI, "gpt-5", "c1", "tool", 1, 2, -1, -1, -1}},
		{"reasoning beside the completion", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":45,"completion_tokens_details":{"reasoning_tokens":30}}}`,
			provider.Usage{provider.OpenAI, "", "", "", 10, 35, -1, -1, 30}},
		{"reasoning that only the total has", `{"choices":[],"usage":{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}}`,
			provider.Usage{provider.OpenAI, "", "", "", 35, 74, -1, -1, 62}},
		{"DeepSeek's cache", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}}`,
			provider.Usage{provider.OpenAI, "", "", "", 10, 5, 8, -1, -1}},
		{"Groq's stream", serverSent(`{"id":"c","choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}`),
			provider.Usage{provider.OpenAI, "", "c", "stop", 3, 4, -1, -1, -1}},
		{"Messages", message, provider.Usage{provider.Anthropic, "claude", "m1", "stop", 125, 7, 100, 20, -1}},
		{"Messages, streamed", serverSent(
			`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"ping"}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":6,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":70}}`,
			`{"type":"message_stop"}`), provider.Usage{provider.Anthropic, "claude", "m1", "tool", 126, 70, 100, 20, -1}},
		{"Messages, streamed, without counts of the input at the end", serverSent(
			`{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":70,"output_tokens_details":{"thinking_tokens":60}}}`),
			provider.Usage{provider.Anthropic, "", "m1", "stop", 105, 70, 100, -1, 60}},
		{"Responses", response, provider.Usage{provider.OpenAIResponses, "gpt-5", "r1", "stop", 9, 12, 4, 0, 11}},
		{"Responses, streamed", serverSent(`{"type":"response.created","response":{"id":"r1","status":"in_progress","model":"gpt-5","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":`+response+`}`),
			provider.Usage{provider.OpenAIResponses, "gpt-5", "r1", "stop", 9, 12, 4, 0, 11}},
		{"generateContent", gemini, provider.Usage{provider.Gemini, "gemini-3", "g1", "MAX_TOKENS", 25, 49, 2, -1, 40}},
		{"generateContent, an array", "[" + `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":22,"candidatesTokenCount":1}}` + ",\n" + gemini + "]",
			provider.Usage{provider.Gemini, "gemini-3", "g1", "MAX_TOKENS", 25, 49, 2, -1, 40}},
		{"a stream that broke off", serverSent(`{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`) + `data: {"type":"mess`,
			provider.Usage{provider.Anthropic, "", "m1", "", 5, 1, -1, -1, -1}},
		{"counts that are not numbers of tokens", `{"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":-3,"prompt_tokens_details":7}}`,
			provider.Usage{provider.OpenAI, "", "", "", -1, -1, -1, -1, -1}},
		{"no usage", `{"choices":[]}`, provider.Usage{provider.OpenAI, "", "", "", -1, -1, -1, -1, -1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := provider.ReadUsage(test.raw)
			require.True(t, ok)
			require.Empty(t, cmp.Diff(test.want, got, cmp.Comparer(func(a, b *provider.Format) bool { return a == b })))
			// One event after the other, as Stream.Event records them.
			if strings.HasPrefix(test.raw, "data: ") && !strings.HasSuffix(test.raw, "mess") {
				lines := strings.ReplaceAll(strings.ReplaceAll(test.raw, "data: ", ""), "\n\n", "\n")
				again, ok := provider.ReadUsage(lines)
				require.True(t, ok)
				require.Empty(t, cmp.Diff(test.want, again, cmpopts.IgnoreFields(provider.Usage{}, "Format")))
			}
		})
	}
	for _, raw := range []string{"", "[]", "{}", "null", "7", "hello", `{"error":{"message":"m"}}`, "data: 7\n\n", `{"messages":[]}`, "{", "\ufeff"} {
		usage, ok := provider.ReadUsage(raw)
		require.False(t, ok, raw)
		require.Zero(t, usage)
	}
}

// Every response and stream of the recordings tells its usage, if it has one.
func TestUsageOfTraces(t *testing.T) {
	for _, target := range targets {
		t.Run(target.api, func(t *testing.T) {
			for _, e := range exchanges(t, target.api) {
				raw := string(e.response)
				if e.stream != nil {
					lines := make([]string, len(e.stream))
					for i, event := range e.stream {
						lines[i] = string(event)
					}
					raw = strings.Join(lines, "\n")
				}
				if e.status >= 300 || raw == "" || !strings.Contains(raw, `"usage`) || strings.Contains(raw, `"error":{`) {
					continue
				}
				usage, ok := provider.ReadUsage(raw)
				require.True(t, ok, "%s %d", e.file, e.index)
				require.Same(t, target.format, usage.Format, "%s %d", e.file, e.index)
				var total struct {
					Usage struct {
						Total int `json:"total_tokens"`
					}
					UsageMetadata struct {
						Total int `json:"totalTokenCount"`
					}
				}
				_ = json.Unmarshal(e.response, &total) // of a stream, none
				if n := total.Usage.Total + total.UsageMetadata.Total; n > 0 && usage.Input >= 0 && usage.Output >= 0 {
					require.Equal(t, n, usage.Input+usage.Output, "%s %d", e.file, e.index)
				}
			}
		})
	}
}
