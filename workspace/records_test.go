package workspace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// recordsText returns what Records shows of a user, all effects included.
func recordsText(t *testing.T, m *workspace.Manager, user string) string {
	t.Helper()
	text := ""
	for r, err := range m.Records(t.Context(), user, 0) {
		require.NoError(t, err)
		for _, e := range r.Effects {
			require.True(t, e.Value == "" || e.Value.Valid(), "%s", e.Value)
		}
		text += fmt.Sprintf("%+v\n", r)
	}
	return text
}

func TestRecordsMaskWhatTextsRepeatOfSecrets(t *testing.T) {
	const card, pin = "4242-4242-4242-4242", "pin-998877"
	db := store.NewMemory()
	m := open(t, db, workspace.Options{})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		st := w.State()
		call := state.ToolCall{ID: "1", Name: "pay", Input: state.JSON(`{"card":"` + card + `"}`)}
		require.NoError(t, token.Set(st, card))
		require.NoError(t, w.Memory().SetSecret("pin", pin))
		require.NoError(t, w.Memory().Set("note", "the pin is "+pin))
		require.NoError(t, notes.Set(st, []string{"paid with " + card}))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("my card is " + card + " and " + pin)}))
		return st.History().Append(state.InferenceResult{
			Input:     "card " + card,
			Output:    []state.Message{state.ToolCalls(call)},
			ToolCalls: []state.ToolResultMessage{state.ToolResult(call, state.JSONText("charged "+card))},
			Raw:       `{"said":"` + card + `"}`,
		})
	}))
	text := recordsText(t, m, "ann")
	require.NotContains(t, text, card)
	require.NotContains(t, text, pin)
	for _, shown := range []string{"my card is [SECRET] and [SECRET]", "charged [SECRET]", "paid with [SECRET]", `{\"said\":\"[SECRET]\"}`, "card [SECRET]"} {
		require.Contains(t, text, shown)
	}

	// A schema that the content does not fit has no secrets to look for.
	other := open(t, db, workspace.Options{Schema: state.MustSchema(
		&state.Field[int]{Name: notes.Name}, &state.Field[string]{Name: token.Name, Secret: true})})
	text = recordsText(t, other, "ann")
	require.NotContains(t, text, card)
	require.NotContains(t, text, pin)
}
