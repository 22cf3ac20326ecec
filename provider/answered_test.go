package provider_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// The errors with which Repair answers calls say that they are errors, also where
// an API has no member for that. Other errors are reported there.
func TestAnswersOfRepairAreNoOmissions(t *testing.T) {
	call := state.ToolCalls(state.ToolCall{ID: "call_00000001", Name: "f", Input: "{}"})
	for _, target := range targets {
		msgs, changes := transcript.Repair([]state.Message{state.UserText("a"), call, state.UserText("b")}, target.format.Profile(), transcript.Policy{AnswerCalls: true})
		require.NotEmpty(t, changes)
		_, omitted, err := target.format.EncodeRequest(provider.Request{Messages: msgs})
		require.NoError(t, err)
		require.Empty(t, omitted)
	}
	failed := state.ToolError(call.Calls()[0], "no network")
	_, omitted, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: []state.Message{call, failed}})
	require.NoError(t, err)
	require.Len(t, omitted, 1)
}
