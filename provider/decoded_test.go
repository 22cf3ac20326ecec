package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/stretchr/testify/require"
)

// requireDecodable requires that [state.DecodeMessage] takes messages that a
// format made. Formats check a body as a whole, not each message made of it.
func requireDecodable(t *testing.T, msgs []state.Message) {
	t.Helper()
	for _, m := range msgs {
		again, err := state.DecodeMessage([]byte(m.Raw()))
		require.NoError(t, err)
		require.True(t, m.Equal(again))
		require.Equal(t, m.Raw(), again.Raw())
	}
}

// The messages of the deepest body that a format accepts are not too deep,
// although messages add levels.
func TestMessagesOfDeepBodies(t *testing.T) {
	for _, c := range []struct {
		format *provider.Format
		body   string // with DEEP for nested arrays
	}{
		{provider.OpenAI, `{"messages":[{"role":"user","content":"a","x":DEEP}]}`},
		{provider.OpenAI, `{"messages":[{"role":"user","content":[{"type":"x","y":DEEP}]}]}`},
		{provider.OpenAI, `{"messages":[{"role":"tool","tool_call_id":"1","content":DEEP,"x":DEEP}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":DEEP,"x":DEEP},"y":DEEP}]}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":DEEP}"}}]}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{\"a\": DEEP}"}}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"x","y":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"role":"user","content":[{"type":"x","y":DEEP}],"z":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":DEEP}","x":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"shell_call","call_id":"c","action":DEEP,"status":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"shell_call_output","call_id":"c","output":DEEP,"x":DEEP}]}`},
		{provider.Anthropic, `{"system":[{"type":"text","text":"a","x":DEEP}],"messages":[]}`},
		{provider.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":DEEP,"x":DEEP}],"y":DEEP}]}`},
		{provider.Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":DEEP,"is_error":DEEP}]}]}`},
		{provider.Gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":DEEP,"x":DEEP},"y":DEEP}],"z":DEEP}]}`},
		{provider.Gemini, `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":DEEP,"x":DEEP},"y":DEEP}]}]}`},
		{provider.Gemini, `{"contents":{"parts":[{"text":"a","x":DEEP}]},"systemInstruction":{"parts":[{"type":DEEP}]}}`},
	} {
		deepest := 0
		for depth := 1; depth < 64; depth++ {
			deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
			request, err := c.format.DecodeRequest([]byte(strings.ReplaceAll(c.body, "DEEP", deep)))
			if err != nil {
				require.ErrorIs(t, err, state.ErrLimitExceeded, c.body)
				continue
			}
			deepest = depth
			requireDecodable(t, request.Messages)
		}
		require.Greater(t, deepest, 40, c.body)
	}
}

// A message of more than 256 calls is a limit error in requests and responses.
func TestMessagesOfManyCalls(t *testing.T) {
	for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini, bedrockFormat} {
		for n, fits := range map[int]bool{256: true, 257: false} {
			calls := make([]state.ToolCall, n)
			for i := range calls {
				calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
			}
			msgs := []state.Message{state.ToolCalls(calls...)}
			request, _, err := format.EncodeRequest(provider.Request{Messages: msgs})
			require.NoError(t, err)
			_, inRequest := format.DecodeRequest(request)
			inResponse := inRequest
			if format != bedrockFormat {
				response, _, err := statetest.Response(format, "m", state.InferenceResult{Output: msgs})
				require.NoError(t, err)
				_, inResponse = format.DecodeResponse(response)
			}
			for _, err := range []error{inRequest, inResponse} {
				if fits {
					require.NoError(t, err, format)
					continue
				}
				require.ErrorIs(t, err, state.ErrLimitExceeded, format)
				require.ErrorContains(t, err, "limit Calls: 257 is more than 256", format)
			}
		}
	}
}
