package workspace_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// writeLong makes version 1 of the workspace of ann: so much that what follows is not
// compacted.
func writeLong(t *testing.T, m *workspace.Manager) {
	t.Helper()
	update(t, m, func(w *workspace.Workspace) error { return w.Memory().Set("long", strings.Repeat("x", 10_000)) })
}

// update changes the workspace of ann.
func update(t *testing.T, m *workspace.Manager, fn func(w *workspace.Workspace) error) {
	t.Helper()
	require.NoError(t, m.Update(t.Context(), "ann", fn))
}

func TestUpdateAt(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	add := func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }
	require.NoError(t, m.UpdateAt(t.Context(), "ann", 0, add))
	err := m.UpdateAt(t.Context(), "ann", 0, add)
	require.ErrorIs(t, err, store.ErrConflict)
	require.EqualError(t, err, `workspace: update for "ann": version 1, not 0: store: conflict`)
	require.ErrorIs(t, m.UpdateAt(t.Context(), "ann", 2, add), store.ErrConflict)

	// Somebody writes between the look and the write.
	calls := 0
	err = m.UpdateAt(t.Context(), "ann", 1, func(w *workspace.Workspace) error {
		if calls++; calls == 1 {
			update(t, m, add)
		}
		return add(w)
	})
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, 1, calls)
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.EqualValues(t, 2, v.Version)
	require.Equal(t, 2, visits.GetOr(v.State(), 0))

	runs.Begin(t, "ann", text("1"))
	require.ErrorIs(t, m.UpdateAt(t.Context(), "ann", 2, add), workspace.ErrBusy)
}

// Revert restores what people edit, and neither what was said and done nor
// secrets.
func TestRevert(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	write := func(word string) func(w *workspace.Workspace) error {
		return func(w *workspace.Workspace) error {
			return errors.Join(
				notes.Set(w.State(), []string{word}),
				w.Memory().Set("name", word),
				w.SetSettings(func(s *workspace.Settings) { s.ChatID = word }),
				state.Messages.Set(w.State(), []state.Message{state.UserText(word)}),
			)
		}
	}
	writeLong(t, m)
	update(t, m, write("one"))
	update(t, m, write("two"))
	update(t, m, func(w *workspace.Workspace) error {
		_, err := w.Memory().Delete("name")
		return errors.Join(err, visits.Set(w.State(), 7), token.Set(w.State(), "4242"), w.Memory().SetSecret("pin", "1234"))
	})
	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2}))

	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.EqualValues(t, 5, v.Version)
	require.Equal(t, []string{"one"}, notes.GetOr(v.State(), nil))
	require.Zero(t, visits.GetOr(v.State(), 0))
	require.Equal(t, "one", v.Settings().ChatID)
	name, _ := v.Memory().Get("name")
	require.Equal(t, "one", name.Value)
	pin, _ := v.Memory().Get("pin")
	require.Equal(t, "1234", pin.Value)
	require.Equal(t, "4242", token.GetOr(v.State(), ""))
	require.Len(t, state.Messages.GetOr(v.State(), nil), 2)
	for r, err := range m.RecordsBetween(t.Context(), "ann", 4, 5) {
		require.NoError(t, err)
		require.Equal(t, work.Kind("revert"), r.Kind)
	}

	// The same again changes nothing, and so no version.
	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2}))
	s, err := m.Summary(t.Context(), "ann")
	require.NoError(t, err)
	require.EqualValues(t, 5, s.Version)

	// What others load is what this Manager goes on with.
	_, err = m.Verify(t.Context(), "ann")
	require.NoError(t, err)
}

func TestRevertIsRefused(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	writeLong(t, m)
	for range 2 {
		update(t, m, func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
	}
	require.ErrorIs(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 4}), workspace.ErrInvalid)
	require.ErrorIs(t, m.Revert(t.Context(), "", workspace.RevertTo{Version: 1}), workspace.ErrInvalid)

	run := runs.Begin(t, "ann", text("1"))
	require.ErrorIs(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 1}), workspace.ErrBusy)
	run.Finish(t)
	require.NoError(t, m.Compact(t.Context(), "ann"))
	require.ErrorIs(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 1}), state.ErrCompacted)
}

// Revert changes only what its caller has seen, and says in the records why.
func TestRevertOfASeenVersion(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	writeLong(t, m)
	for _, word := range []string{"one", "two", "three"} {
		update(t, m, func(w *workspace.Workspace) error {
			return errors.Join(notes.Set(w.State(), []string{word}), w.Memory().Set("name", word))
		})
	}
	err := m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2, Seen: 3, Cause: "form:eve"})
	require.ErrorIs(t, err, store.ErrConflict)
	require.EqualError(t, err, `workspace: revert for "ann": version 4, not 3: store: conflict`)
	require.ErrorIs(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2, Seen: 5}), store.ErrConflict)
	require.Equal(t, []string{"one", "two", "three"}, notes.GetOr(view(t, m, "ann").State(), nil))

	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2, Seen: 4, Cause: "form:eve"}))
	require.Equal(t, []string{"one"}, notes.GetOr(view(t, m, "ann").State(), nil))
	effects := 0
	for r, err := range m.RecordsBetween(t.Context(), "ann", 4, 5) {
		require.NoError(t, err)
		require.Equal(t, work.Kind("revert"), r.Kind)
		for _, e := range r.Effects {
			require.Equal(t, "form:eve", e.Cause, e.Field)
			require.Empty(t, e.Agent)
			effects++
		}
	}
	require.Positive(t, effects)
}

// A change between the look and the write is not reverted unseen.
func TestRevertOfASeenVersionIsNotTriedAgain(t *testing.T) {
	memory := store.NewMemory()
	var race func() // before the next write
	db := fakestore.New(memory, func(_ context.Context, c fakestore.Call, do func() error) error {
		if before := race; before != nil && c.Writes != nil {
			race = nil
			before()
		}
		return do()
	})
	m := open(t, db, workspace.Options{})
	writeLong(t, m)
	for _, word := range []string{"one", "two"} {
		update(t, m, func(w *workspace.Workspace) error { return notes.Set(w.State(), []string{word}) })
	}
	other := open(t, memory, workspace.Options{})
	race = func() {
		update(t, other, func(w *workspace.Workspace) error { return notes.Set(w.State(), []string{"unseen"}) })
	}
	require.ErrorIs(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2, Seen: 3}), store.ErrConflict)
	require.Nil(t, race)
	require.Equal(t, []string{"one", "two", "unseen"}, notes.GetOr(view(t, m, "ann").State(), nil))
	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2}))
	require.Equal(t, []string{"one"}, notes.GetOr(view(t, m, "ann").State(), nil))
}

// A value that does not fit the schema any more is not restored.
func TestRevertToWhatNoLongerFits(t *testing.T) {
	db := store.NewMemory()
	size := &state.Field[any]{Name: "size"}
	m := open(t, db, workspace.Options{Schema: state.MustSchema(size)})
	writeLong(t, m)
	for _, value := range []any{"large", 1, 2} {
		update(t, m, func(w *workspace.Workspace) error { return size.Set(w.State(), value) })
	}
	number := &state.Field[int]{Name: "size"}
	m = open(t, db, workspace.Options{Schema: state.MustSchema(number)})
	require.ErrorIs(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2}), workspace.ErrSchema)
	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 3}))
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, 1, number.GetOr(v.State(), 0))
}

// Revert makes neither an open call nor an answered one another: nobody is asked
// twice whether to pay.
func TestRevertKeepsSuspendedCalls(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	writeLong(t, m)
	update(t, m, func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
	revert := func(wantDialog, wantSuspended string) {
		t.Helper()
		update(t, m, func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
		require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 2}))
		v := view(t, m, "ann")
		require.Equal(t, 1, visits.GetOr(v.State(), 0))
		require.Equal(t, wantDialog, dialog(&v.Workspace))
		require.Equal(t, wantSuspended, ids(v.Suspended()))
		require.Equal(t, 1, v.State().History().Len())
	}

	run := runs.Begin(t, "ann", text("a"))
	ask(t, run, "1")
	require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
	run.Finish(t)
	revert("a c1", "1")

	runs.Begin(t, "ann", answers(t, m, "b", "1")).Finish(t)
	revert("a c1 r1", "")
	_, err := m.Submit(t.Context(), "ann", answers(t, m, "c", "1"))
	require.ErrorIs(t, err, workspace.ErrNotSuspended)
}

func TestDiff(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	writeLong(t, m)
	update(t, m, func(w *workspace.Workspace) error {
		return notes.Set(w.State(), []string{"a"})
	})
	update(t, m, func(w *workspace.Workspace) error {
		return errors.Join(notes.Set(w.State(), []string{"b paid with 4242-4242", "c"}), token.Set(w.State(), "4242-4242"), visits.Set(w.State(), 1))
	})
	update(t, m, func(w *workspace.Workspace) error { return visits.Set(w.State(), 2) })

	for _, c := range []struct {
		from, to uint64
		want     []state.Effect
	}{
		{2, 2, nil},
		{2, 4, []state.Effect{
			{Part: "field", Field: "notes", Kind: "append", Value: `["b paid with [SECRET]","c"]`},
			{Part: "field", Field: "token", Kind: "set", Value: `"[SECRET]"`},
			{Part: "field", Field: "visits", Kind: "set", Value: "3"},
		}},
		{4, 2, []state.Effect{
			{Part: "field", Field: "notes", Kind: "truncate", N: 1},
			{Part: "field", Field: "token", Kind: "delete"},
			{Part: "field", Field: "visits", Kind: "delete"},
		}},
		{1, 2, []state.Effect{
			{Part: "field", Field: "notes", Kind: "set", Value: `["a"]`},
		}},
	} {
		effects, err := m.Diff(t.Context(), "ann", c.from, c.to)
		require.NoError(t, err)
		require.Equal(t, c.want, effects, "from %d to %d", c.from, c.to)
	}
	_, err := m.Diff(t.Context(), "ann", 1, 5)
	require.ErrorIs(t, err, workspace.ErrInvalid)
	require.NoError(t, m.Compact(t.Context(), "ann"))
	_, err = m.Diff(t.Context(), "ann", 1, 3)
	require.ErrorIs(t, err, state.ErrCompacted)
}
