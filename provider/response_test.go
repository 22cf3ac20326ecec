package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

// What responses of the recordings say is encoded, and decoded again, the same.
func TestResponsesOfTracesAgain(t *testing.T) {
	for _, target := range targets {
		t.Run(target.api, func(t *testing.T) {
			count := 0
			for _, e := range exchanges(t, target.api) {
				if e.response == nil {
					continue
				}
				first, err := target.format.DecodeResponse(e.response)
				if err != nil || len(first.Output) == 0 {
					continue
				}
				if last, ok := first.Output[len(first.Output)-1].(interface{ StopReason() string }); ok && last.StopReason() == "" {
					continue // some do not say why they end
				}
				count++
				said, _ := provider.Summarize(string(e.response))
				body, omitted, err := statetest.Response(target.format, said.Model, first)
				require.NoError(t, err, "%s %d", e.file, e.index)
				require.Empty(t, omitted, "%s %d", e.file, e.index)
				again, err := target.format.DecodeResponse(body)
				require.NoError(t, err, "%s %d", e.file, e.index)
				require.Equal(t, rawMessages(first.Output), rawMessages(again.Output), "%s %d", e.file, e.index)
				require.Equal(t, first.ID, again.ID, "%s %d", e.file, e.index)
				same, ok := provider.Summarize(string(body))
				require.True(t, ok)
				require.Equal(t, said, same, "%s %d", e.file, e.index)
			}
			require.NotZero(t, count)
		})
	}
}

// The last message tells why the model stopped, also if only its format has it.
func TestResponseKeepsTheReason(t *testing.T) {
	body := `{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"web_search_call","id":"ws_1","status":"completed"}]}`
	first, err := provider.OpenAIResponses.DecodeResponse([]byte(body))
	require.NoError(t, err)
	again, _, err := statetest.Response(provider.OpenAIResponses, "m", first)
	require.NoError(t, err)
	said, ok := provider.Summarize(string(again))
	require.True(t, ok)
	require.Equal(t, "content_filter", said.StopReason)
}

// Clients of Gemini decode signatures. What stands for a missing one in requests
// is not in a response.
func TestGeminiResponsesHaveNoPlaceholder(t *testing.T) {
	output := []state.Message{state.ToolCalls(state.ToolCall{ID: "c1", Name: "look", Input: `{}`})}
	request, _, err := provider.Gemini.EncodeRequest(provider.Request{Messages: output})
	require.NoError(t, err)
	require.Contains(t, string(request), "thoughtSignature")
	body, _, err := statetest.Response(provider.Gemini, "m", state.InferenceResult{Output: output})
	require.NoError(t, err)
	require.NotContains(t, string(body), "thoughtSignature")

	signed, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":{"role":"model","parts":[
		{"functionCall":{"name":"look","args":{}},"thoughtSignature":"c2ln"},{"text":"a","thoughtSignature":"dGV4dA=="}]}}]}`))
	require.NoError(t, err)
	body, _, err = statetest.Response(provider.Gemini, "m", signed)
	require.NoError(t, err)
	require.Contains(t, string(body), `"thoughtSignature":"c2ln"`)
	require.Contains(t, string(body), `"thoughtSignature":"dGV4dA=="`)
}

// The name of a member may be content: no error of a body shows it.
func TestErrorsShowNoNamesOfMembers(t *testing.T) {
	for _, name := range []string{"TOPSECRET", "TOPSECRET-123456", `TOPSECRET \"]. x`, "é.TOPSECRET[0]"} {
		for place, want := range map[string]string{
			`{"NAME":1,"NAME":2}`:                                                  "$[…]",
			`{"messages":[{},{"content":{"NAME":1,"NAME":2}}]}`:                    "$.messages[1].content[…]",
			`{"NAME":{"messages":[1e]}}`:                                           "",
			`{"NAME":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "",
		} {
			body := []byte(strings.ReplaceAll(place, "NAME", name))
			for _, f := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
				_, err := f.DecodeRequest(body)
				require.Error(t, err)
				require.NotContains(t, err.Error(), "TOPSECRET")
				_, failed := f.DecodeResponse(body)
				require.NotContains(t, failed.Error(), "TOPSECRET")
				if want != "" {
					var wrong *provider.Error
					require.ErrorAs(t, err, &wrong)
					require.Equal(t, want, wrong.Path)
				}
			}
		}
	}
}

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
		{"output that only the total has", `{"choices":[],"usage":{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(35, 74, 0, 0, 0)}},
		{"sounds beside the prompt (Mistral)", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":20,"total_tokens":404,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":375}}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(384, 20, 0, 0, 0)}},
		{"sounds and reasoning beside both", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":20,"total_tokens":414,"prompt_tokens_details":{"audio_tokens":375},"completion_tokens_details":{"reasoning_tokens":10}}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(384, 30, 0, 0, 10)}},
		{"sounds in the prompt (OpenAI)", `{"choices":[],"usage":{"prompt_tokens":384,"completion_tokens":20,"total_tokens":404,"prompt_tokens_details":{"audio_tokens":375}}}`,
			provider.Summary{provider.OpenAI, "", "", "", tokens(384, 20, 0, 0, 0)}},
		{"zeros at the end of a stream of chunks", serverSent(
			`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":45,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":30}}}`,
			`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`),
			provider.Summary{provider.OpenAI, "", "", "", tokens(10, 35, 3, 0, 30)}},
		{"zeros at the end of a stream of messages", serverSent(
			`{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":27,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{},"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":47}}`,
			`{"type":"message_delta","delta":{},"usage":{"output_tokens":0}}`),
			provider.Summary{provider.Anthropic, "", "m1", "", tokens(132, 47, 100, 5, 0)}},
		{"the input of messages reported again as that of the cache", serverSent(
			`{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":8834,"output_tokens":0}}}`,
			`{"type":"message_delta","delta":{},"usage":{"input_tokens":18,"output_tokens":426,"cache_creation_input_tokens":0,"cache_read_input_tokens":8831}}`),
			provider.Summary{provider.Anthropic, "", "m1", "", tokens(8849, 426, 8831, 0, 0)}},
		{"zeros at the end of a stream of generateContent", serverSent(
			`{"candidates":[],"usageMetadata":{"promptTokenCount":22,"candidatesTokenCount":3,"thoughtsTokenCount":4,"cachedContentTokenCount":2}}`,
			`{"candidates":[],"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"thoughtsTokenCount":0,"cachedContentTokenCount":0}}`),
			provider.Summary{provider.Gemini, "", "", "", tokens(22, 7, 2, 0, 4)}},
		{"zeros at the end of a stream of Responses", serverSent(
			`{"type":"response.in_progress","response":{"usage":{"input_tokens":9,"output_tokens":12}}}`,
			`{"type":"response.completed","response":{"usage":{"input_tokens":0,"output_tokens":0}}}`),
			provider.Summary{provider.OpenAIResponses, "", "", "", tokens(9, 12, 0, 0, 0)}},
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
