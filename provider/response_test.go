package provider_test

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
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
