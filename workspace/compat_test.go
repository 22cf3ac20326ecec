package workspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// An old program preserves what a newer one has stored, even when it compacts.
func TestUnknownFieldsStay(t *testing.T) {
	db := store.NewMemory()
	mood := &state.Field[string]{Name: "mood"}
	plan := &state.Field[[]string]{Name: "plan", Secret: true}
	newer := open(t, db, workspace.Options{Schema: state.MustSchema(notes, mood, plan)})
	require.NoError(t, newer.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.NoError(t, plan.Set(w.State(), []string{"a", "b"}))
		require.NoError(t, w.SetSettings(func(s *workspace.Settings) { s.MCPServers = map[string]state.JSON{"m": `{"a":1.0}`} }))
		return mood.Set(w.State(), "good")
	}))

	older := open(t, db, workspace.Options{Schema: state.MustSchema(notes, state.AllowUndeclared)})
	for range 5 {
		run, _, err := older.Begin(t.Context(), "ann", workspace.Message{Content: state.UserText("Hello!")})
		require.NoError(t, err)
		require.NoError(t, notes.Set(run.State(), []string{strings.Repeat("x", 3000)}))
		require.False(t, run.State().KV().Has("plan"), "what was secret does not become public")
		_, err = run.Finish(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, older.Compact(t.Context(), "ann"))
	v := view(t, older, "ann")
	require.Equal(t, []string{"mood", "plan"}, v.Unknown)
	require.Positive(t, v.Oldest)

	v = view(t, newer, "ann")
	require.Empty(t, v.Unknown)
	require.Equal(t, "good", mood.Or(v.State(), ""))
	require.Equal(t, []string{"a", "b"}, plan.Or(v.State(), nil))
	require.Len(t, notes.Or(v.State(), nil), 5)
	require.Equal(t, map[string]state.JSON{"m": `{"a":1.0}`}, v.Settings().MCPServers)
}

// A field whose type has changed is an error that names the field; nothing is
// lost.
func TestFieldsThatDoNotFit(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return notes.Set(w.State(), []string{"x"}) }))
	stored := maxCachedContents(t, db)
	other := open(t, db, workspace.Options{Schema: state.MustSchema(&state.Field[int]{Name: "notes"})})
	_, err := other.View(t.Context(), "ann")
	require.ErrorIs(t, err, state.ErrWrongType)
	require.ErrorContains(t, err, "notes")
	require.ErrorContains(t, err, "ann")
	require.ErrorIs(t, other.Update(t.Context(), "ann", func(*workspace.Workspace) error { return nil }), state.ErrWrongType)
	require.Equal(t, stored, maxCachedContents(t, db))
}

// Data of a newer format stays as it is.
func TestNewerFormat(t *testing.T) {
	db := store.NewMemory()
	newer := `{"format":2,"content":"of which nobody here knows"}`
	write(t, db, map[string]string{annsHead: newer})
	m := open(t, db, workspace.Options{Run: nil})
	_, err := m.View(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrNewerFormat)
	_, _, err = m.Begin(t.Context(), "ann", whenBusy(workspace.BusyRollback, text("1")))
	require.ErrorIs(t, err, workspace.ErrNewerFormat)
	_, err = m.Reset(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrNewerFormat)
	require.ErrorIs(t, m.Compact(t.Context(), "ann"), workspace.ErrNewerFormat)
	require.ErrorIs(t, m.Recover(t.Context()), workspace.ErrNewerFormat)
	require.Equal(t, map[string]string{annsHead: newer}, maxCachedContents(t, db))
}

// Ephemeral fields never reach the store.
func TestEphemeralFieldsAreNotStored(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{})
	run, _, err := m.Begin(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.NoError(t, scratch.Set(run.State(), "ephemeral value"))
	require.NoError(t, run.Commit(t.Context()))
	require.Equal(t, "ephemeral value", scratch.Or(run.State(), ""), "within the run it stays")
	_, err = run.Finish(t.Context())
	require.NoError(t, err)
	for key, value := range maxCachedContents(t, db) {
		require.NotContains(t, value, "scratch", key)
		require.NotContains(t, value, "ephemeral", key)
	}
}
