package workspace_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A page is given the view of an agent, which has nothing that the agent may not
// read, and no secret, also none that the agent does not know.
func TestViewOfAnAgent(t *testing.T) {
	order := &state.Field[string]{Name: "order", Read: state.Public}
	risk := &state.Field[string]{Name: "risk", Read: state.Only("desk")}
	card := &state.Field[string]{Name: "card", Read: state.Only("desk"), Secret: true}
	schema := state.MustSchema(state.Team{"desk": {"ui"}}, order, risk, card)
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Schema: schema})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		if err := w.Memory().Set("name", "Ann, who pays with 4242-4242"); err != nil {
			return err
		}
		return w.State().Patch(map[string]any{
			"order": "#W1, paid with 4242-4242", "risk": "a known swindler", "card": "4242-4242",
			"messages": []state.Message{state.UserText("My card is 4242-4242.")},
		})
	}))
	host := view(t, m, "ann")
	ui := host.As("ui")
	require.Equal(t, "ui", ui.State().Agent())
	require.Empty(t, host.State().Agent(), "the view itself is as it was")
	require.Equal(t, host.Version, ui.Version)
	require.Len(t, slices.Collect(ui.Messages(0, -1)), 1)
	require.Equal(t, "[SECRET]", ui.Redact("4242-4242"))

	data, err := json.Marshal(ui)
	require.NoError(t, err)
	require.Contains(t, string(data), "#W1, paid with [SECRET]")
	require.Contains(t, string(data), "My card is [SECRET].")
	require.Contains(t, string(data), "Ann, who pays with [SECRET]")
	for _, hidden := range []string{"4242-4242", "risk", "swindler", `"card"`} {
		require.NotContains(t, string(data), hidden)
	}
	data, err = json.Marshal(host.As("desk"))
	require.NoError(t, err)
	require.Contains(t, string(data), "a known swindler")
	require.NotContains(t, string(data), "4242-4242")

	t.Run("of a conversation that it may not read", func(t *testing.T) {
		schema := state.MustSchema(state.Team{"desk": {"ui"}}, order, risk, card, &state.Field[[]state.Message]{Name: state.Messages.Name, Read: state.Only("desk")})
		m := open(t, db, workspace.Options{Schema: schema})
		ui := view(t, m, "ann").As("ui")
		require.Empty(t, slices.Collect(ui.Messages(0, -1)))
		data, err := json.Marshal(ui)
		require.NoError(t, err)
		require.NotContains(t, string(data), "My card")
		require.Contains(t, string(data), "#W1")
	})
	t.Run("of a workspace that does not exist", func(t *testing.T) {
		data, err := json.Marshal(view(t, m, "bob").As("ui"))
		require.NoError(t, err)
		require.Contains(t, string(data), `"user_id":"bob"`)
		data, err = json.Marshal((&workspace.View{}).As("ui"))
		require.NoError(t, err)
		require.Contains(t, string(data), `"state"`)
	})
}
