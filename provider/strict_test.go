package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// A schema with alternatives at its top, as MCP servers have them, is refused in
// every request with the tool. Its properties stay, and what is gone is reported.
func TestSchemasWithAlternatives(t *testing.T) {
	tool := provider.Tool{Name: "find", Schema: `{"properties":{"a":{"type":"string"}},"required":["a"],"oneOf":[{"required":["b"],"properties":{"b":{"type":"string"}}},{"required":["c"]}],"allOf":[{"properties":{"d":{"anyOf":[{}]}},"required":["d"]}]}`}
	const plain = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"d":{"anyOf":[{}]}},"required":["a","d"]}`
	for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic} {
		body, omitted, err := format.EncodeRequest(provider.Request{Messages: []state.Message{state.UserText("Hi")}, Tools: []provider.Tool{tool}})
		require.NoError(t, err)
		request, err := format.DecodeRequest(body)
		require.NoError(t, err)
		require.JSONEq(t, plain, string(request.Tools[0].Schema), format)
		require.Len(t, omitted, 2)
		require.Contains(t, omitted[0].String(), `member oneOf of the schema of tool`)
		require.Contains(t, omitted[0].String(), "find")
	}
	body, omitted, err := provider.Gemini.EncodeRequest(provider.Request{Tools: []provider.Tool{tool}})
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.Contains(t, string(body), "oneOf")
}

// Gemini 3 takes "$ref" in a response for the name of a file.
func TestReferencesInResultsOfGemini(t *testing.T) {
	call := state.ToolCall{ID: "a", Name: "f", Input: `{}`}
	for content, want := range map[state.JSON]string{
		`{"schema":{"$ref":"#/$defs/A"}}`: `{"output":"{\"schema\":{\"$ref\":\"#/$defs/A\"}}"}`,
		`{"schema":{"ref":"a"}}`:          `{"schema":{"ref":"a"}}`,
	} {
		body, _, err := provider.Gemini.EncodeRequest(provider.Request{Messages: []state.Message{state.UserText("Hi"), state.ToolCalls(call), state.ToolResult(call, content)}})
		require.NoError(t, err)
		require.True(t, strings.Contains(string(body), `"response":`+want), string(body))
	}
}
