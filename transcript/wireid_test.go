package transcript_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// wireIDs returns the ids of calls and of results in a request.
func wireIDs(msgs []state.Message) (calls, results []string) {
	for _, m := range msgs {
		switch m := m.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				calls = append(calls, c.ID)
			}
		case state.ToolResultMessage:
			results = append(results, m.Call().ID)
		}
	}
	return calls, results
}

func TestIDsThatRepeatAreUniqueInEachRequest(t *testing.T) {
	for _, p := range []transcript.Profile{transcript.OpenAI, transcript.OpenAIResponses, transcript.Anthropic, transcript.Gemini} {
		t.Run(p.String(), func(t *testing.T) {
			st := state.New(nil)
			pay := func(id, to string) state.ToolCall {
				return state.ToolCall{ID: id, Name: "pay", Input: state.JSON(`{"to":"` + to + `"}`)}
			}
			for _, to := range []string{"ann", "bob"} { // a provider that begins anew in each answer
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Pay " + to)}))
				require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(pay("pay_0", to))}}))
				for _, c := range st.History().Pending() {
					require.NoError(t, st.History().Answer(state.ToolResult(c, `"paid"`)))
				}
			}
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Thanks.")}))
			whole, _ := transcript.Repair(state.Messages.GetOr(st, nil), p, transcript.Policy{})
			calls, results := wireIDs(whole)
			require.Equal(t, calls, results)
			require.Equal(t, "pay_0", calls[0], "an id that is new stays")
			require.NotEqual(t, calls[0], calls[1])
			require.Empty(t, transcript.Check(whole, p))

			trimmed, _ := transcript.Repair(state.Messages.GetOr(st, nil)[3:], p, transcript.Policy{})
			later, _ := wireIDs(trimmed)
			require.Equal(t, calls[1:], later, "the same id when the first call was trimmed away")
		})
	}
}

func TestCallsWithoutIDsGetThoseOfTheirKeys(t *testing.T) {
	st := state.New(nil)
	two := state.ToolCalls(state.ToolCall{Name: "pay", Input: `{"to":"ann"}`}, state.ToolCall{Name: "pay", Input: `{"to":"bob"}`})
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Pay both")}))
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{two}}))
	pending := st.History().Pending()
	require.NoError(t, st.History().Answer(state.ToolResult(pending[1], `"bob was paid"`)))
	require.NoError(t, st.History().Answer(state.ToolResult(pending[0], `"ann was paid"`)))
	msgs, _ := transcript.Repair(state.Messages.GetOr(st, nil), transcript.OpenAI, transcript.Policy{})
	calls, results := wireIDs(msgs)
	require.Len(t, calls, 2)
	require.Equal(t, calls, results)
	require.Equal(t, "ann was paid", msgs[2].Text())
	require.Equal(t, "call_"+pending[0].Key[1:], calls[0])
}
