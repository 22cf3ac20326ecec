package provider_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
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
				usage, _ := provider.ReadUsage(string(e.response))
				body, omitted, err := target.format.EncodeResponse(first, usage)
				require.NoError(t, err, "%s %d", e.file, e.index)
				require.Empty(t, omitted, "%s %d", e.file, e.index)
				again, err := target.format.DecodeResponse(body)
				require.NoError(t, err, "%s %d", e.file, e.index)
				require.Equal(t, rawMessages(first.Output), rawMessages(again.Output), "%s %d", e.file, e.index)
				require.Equal(t, first.ID, again.ID, "%s %d", e.file, e.index)
				same, ok := provider.ReadUsage(string(body))
				require.True(t, ok)
				if target.format == provider.Gemini { // it has no count of what was written to a cache
					usage.CacheWrite = -1
				}
				require.Equal(t, usage, same, "%s %d", e.file, e.index)
			}
			require.NotZero(t, count)
		})
	}
}

// A script's messages become the response of each provider.
func TestEncodeResponse(t *testing.T) {
	call := state.ToolCall{ID: "call_1", Name: "search", Input: `{"q":"x"}`}
	outputs := map[string][]state.Message{
		"nothing":        {},
		"a text":         {state.AssistantText("Hi.")},
		"a call":         {state.ToolCalls(call)},
		"text and calls": {state.AssistantText("Let me look."), state.ToolCalls(call, state.ToolCall{ID: "call_2", Name: "now"})},
	}
	for _, target := range targets {
		for name, output := range outputs {
			t.Run(fmt.Sprint(target.format, "/", name), func(t *testing.T) {
				made := state.InferenceResult{ID: "r1", CreatedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Output: output}
				usage := provider.Usage{Model: "m", Input: 10, Output: 20, CacheRead: 4, CacheWrite: 3, Reasoning: 5}
				body, omitted, err := target.format.EncodeResponse(made, usage)
				require.NoError(t, err)
				require.Empty(t, omitted)
				got, err := target.format.DecodeResponse(body)
				require.NoError(t, err)
				require.Equal(t, "r1", got.ID)
				if target.format != provider.Anthropic { // it tells no time
					require.Equal(t, made.CreatedAt, got.CreatedAt)
				}
				want, have := saidBy(output), saidBy(got.Output)
				require.Equal(t, want.Text, have.Text)
				require.Len(t, have.Inputs, len(want.Inputs))
				for i, call := range want.Inputs {
					require.Equal(t, call.Name, have.Inputs[i].Name)
					requireInput(t, call.Input, have.Inputs[i].Input, name)
				}
				read, ok := provider.ReadUsage(string(body))
				require.True(t, ok)
				usage.Format, usage.ID, usage.StopReason = target.format, "r1", read.StopReason
				if target.format == provider.Gemini {
					usage.CacheWrite = -1
				}
				require.Equal(t, usage, read)
				require.Contains(t, []string{"stop", "tool"}, read.StopReason)

				// The response again, from what was decoded, and written to a stream.
				again, _, err := target.format.EncodeResponse(got, usage)
				require.NoError(t, err)
				jsonEqual(t, body, again)
				s := target.format.Stream()
				_, _ = s.Write(body)
				streamed, err := s.Result()
				require.NoError(t, err)
				require.Equal(t, rawMessages(got.Output), rawMessages(streamed.Output))
			})
		}
	}
}

// The last message tells why the model stopped, also if only its format has it.
func TestEncodeResponseKeepsTheReason(t *testing.T) {
	body := `{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"web_search_call","id":"ws_1","status":"completed"}]}`
	first, err := provider.OpenAIResponses.DecodeResponse([]byte(body))
	require.NoError(t, err)
	again, _, err := provider.OpenAIResponses.EncodeResponse(first, provider.Usage{})
	require.NoError(t, err)
	usage, ok := provider.ReadUsage(string(again))
	require.True(t, ok)
	require.Equal(t, "content_filter", usage.StopReason)
}

func TestEncodeResponseRefuses(t *testing.T) {
	for _, target := range targets {
		for _, output := range [][]state.Message{
			{state.SystemText("a")}, {state.UserText("a"), state.AssistantText("b")}, {nil},
		} {
			body, _, err := target.format.EncodeResponse(state.InferenceResult{Output: output}, provider.Usage{})
			require.ErrorIs(t, err, state.ErrWrongType, "%s: %s", target.format, body)
		}
	}
}

// Clients of Gemini decode signatures. What stands for a missing one in requests
// is not in a response.
func TestGeminiResponsesHaveNoPlaceholder(t *testing.T) {
	output := []state.Message{state.ToolCalls(state.ToolCall{ID: "c1", Name: "look", Input: `{}`})}
	request, _, err := provider.Gemini.EncodeRequest(provider.Request{Messages: output})
	require.NoError(t, err)
	require.Contains(t, string(request), "thoughtSignature")
	body, _, err := provider.Gemini.EncodeResponse(state.InferenceResult{Output: output}, provider.Usage{})
	require.NoError(t, err)
	require.NotContains(t, string(body), "thoughtSignature")

	signed, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":{"role":"model","parts":[
		{"functionCall":{"name":"look","args":{}},"thoughtSignature":"c2ln"},{"text":"a","thoughtSignature":"dGV4dA=="}]}}]}`))
	require.NoError(t, err)
	body, _, err = provider.Gemini.EncodeResponse(signed, provider.Usage{})
	require.NoError(t, err)
	require.Contains(t, string(body), `"thoughtSignature":"c2ln"`)
	require.Contains(t, string(body), `"thoughtSignature":"dGV4dA=="`)
}
