package origin_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
)

// Arguments that were broken off are an object for each provider, whichever has given
// them, and nothing else changes.
func TestBrokenArgumentsGoBackAsAnObject(t *testing.T) {
	const broken, wrapped = `{"text":"milk and`, `{"arguments":"{\"text\":\"milk and"}`
	quoted := string(state.JSONText(broken))
	requests := map[*provider.Format]string{
		provider.OpenAI: `{"messages":[{"role":"assistant","tool_calls":[
			{"id":"a","type":"function","function":{"name":"custom","arguments":` + quoted + `}},
			{"id":"b","type":"function","function":{"name":"note","arguments":"{\"text\":\"milk\"}"}},
			{"id":"c","type":"custom","custom":{"name":"patch","input":` + quoted + `}}]}]}`,
		provider.OpenAIResponses: `{"input":[
			{"type":"function_call","call_id":"a","name":"custom","arguments":` + quoted + `},
			{"type":"function_call","call_id":"b","name":"note","arguments":"{\"text\":\"milk\"}"},
			{"type":"custom_tool_call","call_id":"c","name":"patch","input":` + quoted + `}]}`,
		provider.Anthropic: `{"messages":[{"role":"assistant","content":[
			{"type":"tool_use","id":"a","name":"custom","input":` + quoted + `},
			{"type":"tool_use","id":"b","name":"note","input":{"text":"milk"}}]}]}`,
	}
	for from, body := range requests {
		request, err := from.DecodeRequest([]byte(body))
		require.NoError(t, err, from)
		before := request.Messages
		request.Messages = origin.WholeInputs(request.Messages)
		var inputs []string
		for _, m := range request.Messages {
			for _, c := range m.(state.ToolCallMessage).Calls() {
				inputs = append(inputs, string(c.Input))
			}
		}
		require.Equal(t, []string{wrapped, `{"text":"milk"}`, quoted}[:len(inputs)], inputs, from)
		require.Equal(t, request.Messages, origin.WholeInputs(request.Messages), "again, from %s", from)
		require.NotEqual(t, before, request.Messages, from)
		for to := range requests {
			encoded, _, err := to.EncodeRequest(request)
			require.NoError(t, err)
			again, err := to.DecodeRequest(encoded)
			require.NoError(t, err)
			first := again.Messages[0].(state.ToolCallMessage).Calls()[0]
			require.Equal(t, wrapped, string(first.Input), "from %s to %s", from, to)
			require.True(t, json.Valid(encoded))
			if to == provider.Anthropic {
				require.Contains(t, string(encoded), `"input":`+wrapped, "from %s", from)
			}
		}
	}
	whole := []state.Message{state.UserText("Hi"), state.ToolCalls(state.ToolCall{ID: "a", Name: "note", Input: `{"text":"milk"}`})}
	require.Equal(t, whole, origin.WholeInputs(whole))
}
