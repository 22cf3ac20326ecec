package provider_test

import (
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// Providers have accepted these requests: recordings show it.
func TestAcceptedSpellings(t *testing.T) {
	for _, test := range []struct {
		name     string
		format   *provider.Format
		body     string
		messages int
	}{
		{"a part that is not in an array", provider.Gemini, `{"systemInstruction":{"parts":{"text":"s"}},"contents":[{"role":"user","parts":{"text":"hi"}},{"role":"model","parts":{"functionCall":{"name":"f","args":{}}}},{"role":"user","parts":{"functionResponse":{"name":"f","response":{}}}}]}`, 4},
		{"a system prompt that is empty", provider.Anthropic, `{"model":"m","max_tokens":9,"system":"","messages":[{"role":"user","content":"hi"}]}`, 1},
		{"blank text between the provider's own tools", provider.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]},{"type":"text","text":"a"},{"type":"text","text":" "},{"type":"text","text":"b"}]},{"role":"user","content":"go on"}]}`, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := test.format.DecodeRequest([]byte(test.body))
			require.NoError(t, err)
			require.Len(t, request.Messages, test.messages)
			require.Empty(t, transcript.Check(request.Messages, test.format.Profile()))
			again, omitted, err := test.format.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)
			jsonEqual(t, []byte(test.body), again)
		})
	}
}
