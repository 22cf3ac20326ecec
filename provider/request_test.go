package provider_test

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// The settings of a request decide which rules hold for it.
func TestProfileOfRequest(t *testing.T) {
	thinking, continued := transcript.Anthropic, transcript.Anthropic
	thinking.Thinking, continued.Continued = true, true
	both := thinking
	both.Continued = true
	for _, row := range []struct {
		settings state.JSON
		want     transcript.Profile
	}{
		{``, transcript.Anthropic},
		{`{}`, transcript.Anthropic},
		{`[]`, transcript.Anthropic},
		{`{"thinking":{"type":"enabled","budget_tokens":1024}}`, thinking},
		{`{"thinking":{"type":"adaptive"}}`, transcript.Anthropic}, // such a turn may begin without thinking
		{`{"thinking":{"type":"disabled"}}`, transcript.Anthropic},
		{`{"thinking":null,"previous_response_id":null}`, transcript.Anthropic},
		{`{"previous_response_id":"r"}`, continued},
		{`{"conversation":"c","thinking":{"type":"enabled"}}`, both},
	} {
		request := provider.Request{Settings: row.settings}
		require.Equal(t, row.want, request.Profile(transcript.Anthropic), row.settings)
		strict := transcript.Anthropic
		strict.NoPrefill, row.want.NoPrefill = true, true
		require.Equal(t, row.want, request.Profile(strict), row.settings)
	}
}

// Calls of OpenAI that wait for their results go on with Anthropic and thinking.
func TestForeignTurnWithThinking(t *testing.T) {
	request, err := provider.OpenAI.DecodeRequest(chatRequest(`{"role":"user","content":"hi"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"r"}`))
	require.NoError(t, err)
	request.Settings = `{"model":"m","thinking":{"type":"enabled","budget_tokens":1024}}`
	profile := request.Profile(transcript.Anthropic)
	request.Messages, _ = transcript.Repair(request.Messages, profile, transcript.Policy{AnswerCalls: true})
	body, omitted, err := provider.Anthropic.EncodeRequest(request)
	require.NoError(t, err)
	require.Empty(t, omitted)
	jsonEqual(t, []byte(`{"model":"m","thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"hi"},{"role":"user","content":"Result of f: r"}]}`), body)
}
