package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// A thread has the title that a person gives it, also during a run, until it is taken
// away or the thread is reset.
func TestRename(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{Title: func(st *state.State) string { return fmt.Sprint(len(state.Messages.GetOr(st, nil)), " said") }})
	titleOf := func(id string) string {
		t.Helper()
		s, err := open(t, db, workspace.Options{}).Summary(t.Context(), id)
		require.NoError(t, err)
		return s.Title
	}
	require.ErrorIs(t, m.Rename(t.Context(), "ann/1", "Mine"), workspace.ErrNotFound)
	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error { return token.Set(w.State(), "hunter2-hunter2") }))
	runs.Begin(t, "ann/1", text("1")).Finish(t)
	require.Equal(t, "1 said", titleOf("ann/1"))
	run := runs.Begin(t, "ann/1", text("2"))
	require.NoError(t, m.Rename(t.Context(), "ann/1", "Mine hunter2-hunter2"))
	require.Equal(t, "Mine [SECRET]", titleOf("ann/1"))
	run.Finish(t)
	require.Equal(t, "Mine [SECRET]", titleOf("ann/1"))

	exported, err := m.Export(t.Context(), "ann/1")
	require.NoError(t, err)
	require.NoError(t, m.ImportWorkspace(t.Context(), "bob/1", exported))
	require.Equal(t, "Mine [SECRET]", titleOf("bob/1"))
	require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{}))
	require.Equal(t, "2 said", titleOf("ann/2"), "a fork has its own")
	require.NoError(t, m.Rename(t.Context(), "ann/1", strings.Repeat("é", 150)))
	require.Equal(t, strings.Repeat("é", 100), titleOf("ann/1"))
	require.NoError(t, m.Rename(t.Context(), "ann/1", ""))
	require.Equal(t, "2 said", titleOf("ann/1"))
	_, err = m.Reset(t.Context(), "bob/1")
	require.NoError(t, err)
	require.Empty(t, titleOf("bob/1"))
}

// shownNotes are the notes of a view, as texts.
func shownNotes(t *testing.T, m *workspace.Manager, id, agent string) (list []string) {
	t.Helper()
	v, err := m.View(t.Context(), id)
	require.NoError(t, err)
	if agent != "" {
		v = v.As(agent)
	}
	for _, n := range v.Notes {
		require.False(t, n.Time.IsZero())
		list = append(list, fmt.Sprint(n.Message, n.By, " ", n.Text))
	}
	return list
}

// What somebody notes about a message stays with its number: when the conversation is
// shortened, during runs, in exports and in forks that have the message.
func TestNotes(t *testing.T) {
	db := store.NewMemory()
	options := workspace.Options{
		Schema: state.MustSchema(state.Team{"desk": {"ui", "boss", "clerk"}}, token,
			&state.Field[string]{Name: "x", Read: state.Public}),
		Keys: []workspace.Key{key("a")},
	}
	m, runs := hold(t, db, options)
	note := func(id string, n int, by, text string) error {
		return m.SetNote(t.Context(), id, work.Note{Message: n, By: by, Text: text})
	}
	require.ErrorIs(t, note("ann/1", 1, "ui", "up"), workspace.ErrNotFound)
	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error {
		said := []state.Message{state.UserText("a"), state.AssistantText("b"), state.UserText("c"), state.AssistantText("d")}
		require.NoError(t, token.Set(w.State(), "hunter2-hunter2"))
		return state.Messages.Set(w.State(), said)
	}))
	run := runs.Begin(t, "ann/1", text("1"))
	require.NoError(t, note("ann/1", 4, "ui", "down"))
	require.NoError(t, note("ann/1", 2, "ui", "up"))
	require.NoError(t, note("ann/1", 2, "boss", "knows hunter2-hunter2"))
	require.NoError(t, note("ann/1", 4, "ui", "up again"))
	run.Finish(t)
	require.ErrorIs(t, note("ann/1", 99, "ui", "up"), workspace.ErrNotFound)
	require.ErrorIs(t, note("ann/1", 2, "ui", strings.Repeat("x", 1025)), workspace.ErrInvalid)
	require.ErrorIs(t, note("ann/1", 2, "ui", "\xff"), workspace.ErrInvalid)
	require.ErrorIs(t, note("ann/1", 2, strings.Repeat("x", 257), "text"), workspace.ErrInvalid)
	all := []string{"2boss knows [SECRET]", "2ui up", "4ui up again"}
	require.Equal(t, all, shownNotes(t, m, "ann/1", ""))
	require.Equal(t, []string{"2ui up", "4ui up again"}, shownNotes(t, m, "ann/1", "ui"), "an agent sees its own")
	require.Empty(t, shownNotes(t, m, "ann/1", "clerk"))
	require.False(t, holds(t, db, "up again"), "notes are sealed")

	exported, err := m.Export(t.Context(), "ann/1")
	require.NoError(t, err)
	require.NoError(t, m.ImportWorkspace(t.Context(), "bob/1", exported))
	require.Equal(t, all, shownNotes(t, m, "bob/1", ""))
	require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{Message: 4}))
	require.Equal(t, all[:2], shownNotes(t, m, "ann/2", ""))

	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error {
		return state.Messages.Replace(w.State(), state.Messages.GetOr(w.State(), nil)[3:])
	}))
	require.NoError(t, m.Compact(t.Context(), "ann/1"))
	require.Equal(t, all, shownNotes(t, m, "ann/1", ""), "the numbers stay")
	require.ErrorIs(t, note("ann/1", 2, "ui", "down"), workspace.ErrNotFound)
	require.NoError(t, note("ann/1", 4, "ui", ""))
	require.Equal(t, all[:2], shownNotes(t, m, "ann/1", ""))
	_, err = m.Verify(t.Context(), "ann/1")
	require.NoError(t, err)

	_, err = m.Reset(t.Context(), "ann/1")
	require.NoError(t, err)
	require.Empty(t, shownNotes(t, m, "ann/1", ""))
	report, err := m.Verify(t.Context(), "ann/1")
	require.NoError(t, err)
	require.NoError(t, m.DeleteUser(t.Context(), "bob"))
	blobs := map[string]int{}
	for e, err := range db.List(t.Context(), "agent:blob:", "", false) {
		require.NoError(t, err)
		blobs[strings.Split(strings.TrimPrefix(e.Key, "agent:blob:"), "/")[0]]++
	}
	require.Equal(t, report.Blobs, blobs["ann%2F1"])
	require.Zero(t, blobs["bob%2F1"])
	require.Positive(t, blobs["ann%2F2"])
}

// Notes take 64 KiB at most: those about the oldest messages go first.
func TestNotesAreBounded(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: answering})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		said := make([]state.Message, 100)
		for i := range said {
			said[i] = state.UserText("a")
		}
		return state.Messages.Set(w.State(), said)
	}))
	for n := 1; n <= 100; n++ {
		require.NoError(t, m.SetNote(t.Context(), "ann", work.Note{Message: n, Text: strings.Repeat("x", 1024)}))
	}
	list := shownNotes(t, m, "ann", "")
	require.Len(t, list, 58)
	require.True(t, strings.HasPrefix(list[0], "43 "))
	require.True(t, strings.HasPrefix(list[57], "100 "))
}
