package provider_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/transcript"
)

// Gemini refuses calls of its newer models that come back without the signatures
// of their thoughts.
func TestResponseKeepsThoughtSignatures(t *testing.T) {
	call, err := state.DecodeMessage([]byte(`{"type":"tool_call","role":"assistant","tools":[` +
		`{"type":"tool","id":"1","name":"f","input":{},"thoughtSignature":"cc=="},{"type":"tool","id":"2","name":"g","input":{}}]}`))
	require.NoError(t, err)
	text, err := state.DecodeMessage([]byte(`{"type":"text","role":"assistant","content":[` +
		`{"text":"hm","thought":true,"thoughtSignature":"aa=="},{"text":"a","thoughtSignature":"bb=="}]}`))
	require.NoError(t, err)
	const want = `{"candidates":[{"content":{"role":"model","parts":[` +
		`{"text":"hm","thought":true,"thoughtSignature":"aa=="},{"text":"a","thoughtSignature":"bb=="},` +
		`{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"cc=="},{"functionCall":{"id":"2","name":"g","args":{}}}` +
		`]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":1,` +
		`"candidatesTokenCount":0,"thoughtsTokenCount":1,"totalTokenCount":2},"modelVersion":"m","responseId":"r"}`
	usage := state.Usage{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1, Reasoning: 1}

	output := []state.Message{text, call}
	for range 3 { // what is decoded says the same again
		body, omitted, err := statetest.Response(provider.Gemini, "m", state.InferenceResult{ID: "r", Output: output, Usage: usage})
		require.NoError(t, err)
		require.Empty(t, omitted)
		require.JSONEq(t, want, string(body))
		result, err := provider.Gemini.DecodeResponse(body)
		require.NoError(t, err)
		output = result.Output
	}
	msgs := append([]state.Message{state.UserText("Hi.")}, output...)
	msgs = append(msgs, state.ToolResult(state.ToolCall{ID: "1", Name: "f"}, `{}`), state.ToolResult(state.ToolCall{ID: "2", Name: "g"}, `{}`))
	body, omitted, err := provider.Gemini.EncodeRequest(provider.Request{Messages: msgs})
	require.NoError(t, err)
	require.Empty(t, omitted)
	for _, signature := range []string{"aa==", "bb==", "cc=="} {
		require.Contains(t, string(body), `"thoughtSignature":"`+signature+`"`)
	}
}

// The Responses API refuses a conversation in which two items have one id.
func TestResponsesHaveItemsOfTheirOwn(t *testing.T) {
	var msgs []state.Message
	for _, id := range []string{"resp_1", "resp_2"} {
		call := state.ToolCall{ID: "call_" + id, Name: "f", Input: `{}`}
		output := []state.Message{state.AssistantText("I look."), state.ToolCalls(call)}
		body, _, err := statetest.Response(provider.OpenAIResponses, "m", state.InferenceResult{ID: id, Output: output})
		require.NoError(t, err)
		result, err := provider.OpenAIResponses.DecodeResponse(body)
		require.NoError(t, err)
		msgs = append(append(msgs, result.Output...), state.ToolResult(call, `1`))
	}
	require.Empty(t, transcript.Check(msgs, transcript.OpenAIResponses))
}
