package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

// serverSent returns server-sent events.
func serverSent(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

func tokens(input, output, read, written, reasoning int) state.Usage {
	return state.Usage{Input: input, Output: output, CacheRead: read, CacheWrite: written, Reasoning: reasoning}
}

func TestSummarize(t *testing.T) {
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
		want      provider.Summary
	}{
		{"Chat Completions", chat, provider.Summary{provider.OpenAI, "gpt-5", "c1", "stop", tokens(71, 46, 8, 0, 30)}},
		{"Chat Completions, streamed", serverSent(
			`{"id":"c1","model":"gpt-5","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
			`{"id":"c1","model":"gpt-5","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"id":"c1","model":"gpt-5","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "[DONE]"),
			provider.Summary{provider.OpenAI, "gpt-5", "c1", "tool", tokens(1, 2, 0, 0, 0)}},
		{"reasoning beside the completion", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":45,"completion_tokens_details":{"reasoning_tokens":30}}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(10, 35, 0, 0, 30)}},
		{"reasoning that only the total has", `{"choices":[],"usage":{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(35, 74, 0, 0, 62)}},
		{"DeepSeek's cache", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(10, 5, 8, 0, 0)}},
		{"Groq's stream", serverSent(`{"id":"c","choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}`),
			provider.Summary{provider.OpenAI, "", "c", "stop", tokens(3, 4, 0, 0, 0)}},
		{"Messages", message, provider.Summary{provider.Anthropic, "claude", "m1", "stop", tokens(125, 7, 100, 20, 0)}},
		{"Messages, streamed", serverSent(
			`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"ping"}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":6,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":70}}`,
			`{"type":"message_stop"}`), provider.Summary{provider.Anthropic, "claude", "m1", "tool", tokens(126, 70, 100, 20, 0)}},
		{"Messages, streamed, without counts of the input at the end", serverSent(
			`{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":70,"output_tokens_details":{"thinking_tokens":60}}}`),
			provider.Summary{provider.Anthropic, "", "m1", "stop", tokens(105, 70, 100, 0, 60)}},
		{"Responses", response, provider.Summary{provider.OpenAIResponses, "gpt-5", "r1", "stop", tokens(9, 12, 4, 0, 11)}},
		{"Responses, streamed", serverSent(`{"type":"response.created","response":{"id":"r1","status":"in_progress","model":"gpt-5","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":`+response+`}`),
			provider.Summary{provider.OpenAIResponses, "gpt-5", "r1", "stop", tokens(9, 12, 4, 0, 11)}},
		{"generateContent", gemini, provider.Summary{provider.Gemini, "gemini-3", "g1", "MAX_TOKENS", tokens(25, 49, 2, 0, 40)}},
		{"generateContent, an array", "[" + `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":22,"candidatesTokenCount":1}}` + ",\n" + gemini + "]",
			provider.Summary{provider.Gemini, "gemini-3", "g1", "MAX_TOKENS", tokens(25, 49, 2, 0, 40)}},
		{"a stream that broke off", serverSent(`{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`) + `data: {"type":"mess`,
			provider.Summary{provider.Anthropic, "", "m1", "", tokens(5, 1, 0, 0, 0)}},
		{"counts that are not numbers of tokens", `{"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":-3,"prompt_tokens_details":7}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(0, 0, 0, 0, 0)}},
		{"only a total", `{"choices":[],"usage":{"total_tokens":9}}`, provider.Summary{provider.OpenAI, "", "", "", tokens(0, 0, 0, 0, 0)}},
		{"only a total and the completion", `{"choices":[],"usage":{"completion_tokens":2,"total_tokens":9}}`, provider.Summary{provider.OpenAI, "", "", "", tokens(0, 2, 0, 0, 0)}},
		{"a cache of which nothing was read", `{"choices":[],"usage":{"prompt_cache_hit_tokens":8,"prompt_tokens_details":{"cached_tokens":0}}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(0, 0, 0, 0, 0)}},
		{"generateContent, a chunk without the prompt", `[{"usageMetadata":{"promptTokenCount":22}},{"usageMetadata":{"candidatesTokenCount":3}}]`,
			provider.Summary{provider.Gemini, "", "", "", tokens(22, 3, 0, 0, 0)}},
		{"no usage", `{"choices":[]}`, provider.Summary{provider.OpenAI, "", "", "", tokens(0, 0, 0, 0, 0)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := provider.Summarize(test.raw)
			require.True(t, ok)
			require.Empty(t, cmp.Diff(test.want, got, cmp.Comparer(func(a, b *provider.Format) bool { return a == b })))
			// One event after the other, as Stream.Event records them.
			if strings.HasPrefix(test.raw, "data: ") && !strings.HasSuffix(test.raw, "mess") {
				lines := strings.ReplaceAll(strings.ReplaceAll(test.raw, "data: ", ""), "\n\n", "\n")
				again, ok := provider.Summarize(lines)
				require.True(t, ok)
				require.Empty(t, cmp.Diff(test.want, again, cmpopts.IgnoreFields(provider.Summary{}, "Format")))
			}
		})
	}
	for _, raw := range []string{"", "[]", "{}", "null", "7", "hello", `{"error":{"message":"m"}}`, "data: 7\n\n", `{"messages":[]}`, "{", "\ufeff"} {
		usage, ok := provider.Summarize(raw)
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
				said, ok := provider.Summarize(raw)
				require.True(t, ok, "%s %d", e.file, e.index)
				require.Same(t, target.format, said.Format, "%s %d", e.file, e.index)
				usage := said.Usage
				if e.stream != nil {
					stream := target.format.Stream()
					for _, event := range e.stream {
						_ = stream.Event(event)
					}
					result, _ := stream.Result()
					require.Equal(t, usage, result.Usage, "%s %d", e.file, e.index)
				}
				var total struct {
					Usage struct {
						Total int `json:"total_tokens"`
					}
					UsageMetadata struct {
						Total int `json:"totalTokenCount"`
					}
				}
				_ = json.Unmarshal(e.response, &total) // of a stream, none
				if n := total.Usage.Total + total.UsageMetadata.Total; n > 0 && usage.Input > 0 && usage.Output > 0 {
					require.Equal(t, n, usage.Input+usage.Output, "%s %d", e.file, e.index)
				}
			}
		})
	}
}
