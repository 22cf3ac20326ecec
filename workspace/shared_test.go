package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// The fields of the tests of what threads share.
var (
	sharedCount = &state.Field[int]{Name: "count", Handler: state.Sum[int](), Shared: true}
	sharedTags  = &state.Field[[]string]{Name: "tags", Handler: state.Union[[]string](), Shared: true}
	sharedTotal = &state.Field[int]{Name: "total", Shared: true}
	sharedKey   = &state.Field[string]{Name: "key", Secret: true, Shared: true}
	sharedSmall = &state.Field[[]int]{Name: "small", Shared: true, Validate: func(list []int) error {
		if len(list) > 2 {
			return errors.New("more than two")
		}
		return nil
	}}
	ownNote      = &state.Field[string]{Name: "note"}
	sharedFields = state.MustSchema(sharedCount, sharedTags, sharedTotal, sharedKey, sharedSmall, ownNote)
)

func increment(n int) (int, error) { return n + 1, nil }

func hello(id string) workspace.Message {
	return workspace.Message{ID: id, Content: state.UserText("Hello!")}
}

// sharedOf returns the user part of ann.
func sharedOf(t testing.TB, m *workspace.Manager) *workspace.View {
	return view(t, m, workspace.Shared("ann"))
}

func TestSharedFields(t *testing.T) {
	ctx := t.Context()
	var seen []int
	m := open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Run: func(ctx context.Context, run *workspace.Run) error {
		s := run.State()
		seen = append(seen, sharedCount.GetOr(s, -1))
		require.NoError(t, sharedCount.Set(s, 2))
		require.NoError(t, sharedTags.Set(s, []string{"a", run.Message().ID}))
		require.NoError(t, sharedTotal.Update(s, increment))
		require.NoError(t, ownNote.Set(s, run.UserID()))
		require.NoError(t, run.Memory().Set("from", run.UserID()))
		if run.Message().ID == "fails" {
			require.NoError(t, run.Commit(ctx))
			return errors.New("no")
		}
		return nil
	}})
	for i, thread := range []string{"1", "2", ""} {
		_, err := m.Handle(ctx, workspace.Thread("ann", thread), hello(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	_, err := m.Handle(ctx, workspace.Thread("ann", "2"), hello("fails"))
	require.Error(t, err)
	_, err = m.Handle(ctx, "bob", hello("x"))
	require.NoError(t, err)
	require.Equal(t, []int{-1, 2, 4, 6, -1}, seen)
	for _, id := range []string{workspace.Shared("ann"), "ann", workspace.Thread("ann", "1"), workspace.Thread("ann", "new")} {
		v := view(t, m, id)
		require.Equal(t, 6, sharedCount.GetOr(v.State(), -1), id)
		require.Equal(t, []string{"a", "0", "1", "2"}, sharedTags.GetOr(v.State(), nil), id)
		require.Equal(t, 3, sharedTotal.GetOr(v.State(), -1), id)
		e, _ := v.Memory().Get("from")
		require.Equal(t, "ann", e.Value)
		require.Empty(t, v.Unknown)
	}
	require.Equal(t, "ann/1", ownNote.GetOr(view(t, m, workspace.Thread("ann", "1")).State(), ""))
	require.Empty(t, state.Messages.GetOr(sharedOf(t, m).State(), nil))
	for id := range map[string]bool{workspace.Shared("ann"): true, "ann": true} {
		_, err = m.Verify(ctx, id)
		require.NoError(t, err)
	}
	var runs []string
	for r, err := range m.Records(ctx, workspace.Shared("ann"), 0) {
		require.NoError(t, err)
		runs = append(runs, r.Message)
	}
	require.Equal(t, []string{"0", "1", "2"}, runs)
}

// Runs of two threads merge what they have written, in the order in which they
// are finished.
func TestSharedFieldsAreMerged(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
	one, two := runs.Begin(t, "ann/1", hello("1")), runs.Begin(t, "ann/2", hello("2"))
	calls := 0
	for _, run := range []*heldRun{one, two} {
		s := run.State()
		require.NoError(t, sharedCount.Set(s, 5))
		require.NoError(t, sharedTags.Set(s, []string{run.UserID()}))
		require.NoError(t, sharedTotal.Update(s, func(n int) (int, error) { calls++; return n + 1, nil }))
		require.NoError(t, sharedCount.SetWith(s, 2, state.NewHandler("double", func(n int, _ bool, by int) (int, error) { return n * by, nil })))
		require.Equal(t, 10, sharedCount.GetOr(s, 0), "a run sees what it has written")
		require.Zero(t, sharedCount.GetOr(sharedOf(t, m).State(), 0))
	}
	fork := two.State().Fork()
	require.NoError(t, sharedTags.Set(fork, []string{"fork"}))
	require.NoError(t, two.State().Join(fork))
	one.Finish(t)
	require.Equal(t, 2, calls)
	require.NoError(t, two.Commit(t.Context()))
	require.Equal(t, []string{"ann/1"}, sharedTags.GetOr(sharedOf(t, m).State(), nil), "a commit applies nothing")
	two.Finish(t)
	require.Equal(t, 3, calls, "the function runs again on the newest value")
	s := sharedOf(t, m).State()
	require.Equal(t, 30, sharedCount.GetOr(s, 0))
	require.Equal(t, []string{"ann/1", "ann/2", "fork"}, sharedTags.GetOr(s, nil))
	require.Equal(t, 2, sharedTotal.GetOr(s, 0))
}

// Of blind overwrites the later one stands, and deletions are such.
func TestSharedFieldsAreOverwritten(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
	one, two, three := runs.Begin(t, "ann/1", hello("1")), runs.Begin(t, "ann/2", hello("2")), runs.Begin(t, "ann/3", hello("3"))
	require.NoError(t, sharedTags.Replace(one.State(), []string{"one"}))
	require.NoError(t, sharedTags.Replace(two.State(), []string{"two"}))
	require.NoError(t, sharedTags.Set(three.State(), []string{"three"}))
	require.NoError(t, sharedTotal.Set(two.State(), 7))
	require.NoError(t, one.State().Patch(map[string]any{"count": 4}))
	two.Finish(t)
	one.Finish(t)
	three.Finish(t)
	s := sharedOf(t, m).State()
	require.Equal(t, []string{"one", "three"}, sharedTags.GetOr(s, nil))
	require.Equal(t, 4, sharedCount.GetOr(s, 0))
	run := runs.Begin(t, "ann/1", hello("4"))
	_, err := sharedTotal.Delete(run.State())
	require.NoError(t, err)
	require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error { return sharedTotal.Set(w.State(), 8) }))
	run.Finish(t)
	require.False(t, sharedTotal.Has(sharedOf(t, m).State()))
}

// A run whose transaction has read what another thread has changed is begun anew,
// and applies nothing before.
func TestRunIsBegunAnew(t *testing.T) {
	var runs []int
	var m *workspace.Manager
	m = open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Attempts: 1, Run: func(ctx context.Context, run *workspace.Run) error {
		require.NoError(t, run.State().Update(func(tx *state.State) error {
			runs = append(runs, sharedTotal.GetOr(tx, 0))
			return sharedCount.Set(tx, sharedTotal.GetOr(tx, 0))
		}))
		require.NoError(t, ownNote.Set(run.State(), fmt.Sprint(len(runs))))
		require.NoError(t, run.Commit(ctx))
		if len(runs) < 3 {
			require.NoError(t, m.Update(ctx, workspace.Shared("ann"), func(w *workspace.Workspace) error {
				return sharedTotal.Update(w.State(), increment)
			}))
			require.NoError(t, sharedCount.Set(run.State(), 100))
		}
		run.SetReply(fmt.Sprint(run.Attempt()))
		return nil
	}})
	out, err := m.Handle(t.Context(), "ann/1", hello("1"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
	require.Equal(t, "0", out.Reply, "no attempt is counted")
	require.Equal(t, []int{0, 1, 2}, runs)
	require.Equal(t, 2, sharedCount.GetOr(sharedOf(t, m).State(), 0))
	v := view(t, m, "ann/1")
	require.Equal(t, "3", ownNote.GetOr(v.State(), ""))
	require.Len(t, state.Messages.GetOr(v.State(), nil), 1)
}

// A run of Do is not begun anew: its end is an error, and nothing of it is applied.
func TestRunThatCannotBeBegunAnew(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
	read := func(s *state.State) error {
		return s.Update(func(tx *state.State) error { return sharedCount.Set(tx, 1+sharedTotal.GetOr(tx, 0)) })
	}
	change := func() {
		require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error {
			return sharedTotal.Update(w.State(), increment)
		}))
	}
	err := m.Do(t.Context(), "ann/1", func(_ context.Context, run *workspace.Run) error {
		defer change()
		return read(run.State())
	})
	require.ErrorIs(t, err, state.ErrConflict)
	require.ErrorContains(t, err, "total")
	require.False(t, sharedCount.Has(sharedOf(t, m).State()))
	// Update of a thread calls its function again.
	calls := 0
	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error {
		if calls++; calls == 1 {
			defer change()
		}
		return read(w.State())
	}))
	require.Equal(t, 2, calls)
	require.Equal(t, 3, sharedCount.GetOr(sharedOf(t, m).State(), 0))
}

// Runs that do not finish apply nothing, and those that are taken over apply what
// they have committed once.
func TestEndsOfRunsWithSharedWrites(t *testing.T) {
	for name, row := range map[string]struct {
		takeover workspace.Takeover
		end      func(t *testing.T, runs *heldRuns, run *heldRun)
		want     int
	}{
		"finish":  {0, func(t *testing.T, _ *heldRuns, run *heldRun) { run.Finish(t) }, 3},
		"failure": {0, func(t *testing.T, _ *heldRuns, run *heldRun) { run.Fail(t, errors.New("broken")) }, 0},
		"interrupt": {0, func(t *testing.T, runs *heldRuns, _ *heldRun) {
			next := runs.Begin(t, "ann/1", whenBusy(workspace.BusyInterrupt, text("b")))
			require.Zero(t, sharedCount.GetOr(next.State(), 0))
			next.Finish(t)
		}, 0},
		"rollback": {0, func(t *testing.T, runs *heldRuns, _ *heldRun) {
			runs.Begin(t, "ann/1", whenBusy(workspace.BusyRollback, text("b"))).Finish(t)
		}, 0},
		"cancellation": {0, func(t *testing.T, runs *heldRuns, run *heldRun) {
			require.NoError(t, runs.Cancel(t.Context(), "ann/1", run.ID(), "because"))
		}, 0},
		"reset": {0, func(t *testing.T, runs *heldRuns, _ *heldRun) {
			_, err := runs.Reset(t.Context(), "ann/1")
			require.NoError(t, err)
		}, 0},
		"resumption": {workspace.TakeoverResume, nil, 13},
		"restart":    {workspace.TakeoverRestart, nil, 10},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			m, runs := hold(t, db, workspace.Options{Schema: sharedFields})
			require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error {
				return w.Memory().Set("a", "before")
			}))
			run := runs.Begin(t, "ann/1", hello("1"))
			require.NoError(t, sharedCount.Set(run.State(), 1))
			require.NoError(t, run.Memory().Set("b", "run"))
			_, err := run.Memory().Delete("a")
			require.NoError(t, err)
			require.NoError(t, run.Commit(t.Context()))
			require.NoError(t, sharedCount.Set(run.State(), 2))
			require.NoError(t, run.Commit(t.Context()))
			require.False(t, sharedCount.Has(sharedOf(t, m).State()))
			require.Equal(t, 3, sharedCount.GetOr(view(t, m, "ann/1").State(), 0))
			if row.end != nil {
				row.end(t, runs, run)
			} else {
				require.NoError(t, sharedCount.Set(run.State(), 50)) // not committed
				closeEarly(t, m)
				other := open(t, db, workspace.Options{Schema: sharedFields, Takeover: row.takeover, Run: func(_ context.Context, run *workspace.Run) error {
					require.Equal(t, row.want-10, sharedCount.GetOr(run.State(), 0))
					return sharedCount.Set(run.State(), 10)
				}})
				_, err := other.Await(t.Context(), "ann/1", "1")
				require.NoError(t, err)
				require.NoError(t, other.Close())
				m, runs = hold(t, db, workspace.Options{Schema: sharedFields})
			}
			v := sharedOf(t, m)
			require.Equal(t, row.want, sharedCount.GetOr(v.State(), 0))
			applied := row.want == 3 || row.want == 13
			require.Equal(t, map[bool][]string{true: {"b"}, false: {"a"}}[applied], v.Memory().List())
			require.Equal(t, row.want, sharedCount.GetOr(view(t, m, "ann/1").State(), 0), "nothing is left in the thread")
			runs.Begin(t, "ann/1", hello("later")).Finish(t)
			require.Equal(t, row.want, sharedCount.GetOr(sharedOf(t, m).State(), 0))
		})
	}
}

// A run that another message ends while its user part is still being read ends as
// any other run that was interrupted.
func TestInterruptedWhileUserPartIsRead(t *testing.T) {
	thread, err := ledger.HeadKey("ann/1")
	require.NoError(t, err)
	part, err := ledger.HeadKey(workspace.Shared("ann"))
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var accepted, cut atomic.Bool
		reading := make(chan struct{})
		db := fakestore.New(fakestore.Bare{Store: store.NewMemory()}, func(ctx context.Context, c fakestore.Call, do func() error) error {
			if accepted.Load() && slices.Contains(c.Keys, part) && !cut.Swap(true) {
				close(reading)
				<-ctx.Done()
				return ctx.Err()
			}
			err := do()
			if slices.ContainsFunc(c.Writes, func(w store.Write) bool { return w.Key == thread }) {
				accepted.Store(true)
			}
			return err
		})
		m := open(t, db, workspace.Options{Schema: sharedFields, Run: nothing})
		type result struct {
			out workspace.Outcome
			err error
		}
		first := make(chan result)
		go func() {
			out, err := m.Handle(t.Context(), "ann/1", hello("1"))
			first <- result{out, err}
		}()
		<-reading
		out, err := m.Handle(t.Context(), "ann/1", whenBusy(workspace.BusyInterrupt, hello("2")))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		ended := <-first
		require.ErrorIs(t, ended.err, workspace.ErrInterrupted)
		require.ErrorIs(t, ended.err, workspace.ErrFenced)
		require.NotEmpty(t, ended.out.RunID)
		require.Empty(t, ended.out.Status)
	})
}

// What a dead process has made of a value that another thread has changed can
// not be made again.
func TestTakeoverOfAnUpdateThatIsStale(t *testing.T) {
	for _, changed := range []bool{false, true} {
		db := store.NewMemory()
		m, runs := hold(t, db, workspace.Options{Schema: sharedFields})
		run := runs.Begin(t, "ann/1", hello("1"))
		require.NoError(t, sharedTotal.Update(run.State(), increment))
		require.NoError(t, ownNote.Set(run.State(), "first"))
		require.NoError(t, run.Commit(t.Context()))
		if changed {
			require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error {
				return sharedTotal.Set(w.State(), 10)
			}))
		}
		closeEarly(t, m)
		var seen []string
		m = open(t, db, workspace.Options{Schema: sharedFields, Run: func(_ context.Context, run *workspace.Run) error {
			seen = append(seen, fmt.Sprint(ownNote.GetOr(run.State(), ""), sharedTotal.GetOr(run.State(), 0), len(state.Messages.GetOr(run.State(), nil))))
			if ownNote.Has(run.State()) {
				return nil
			}
			return sharedTotal.Update(run.State(), increment)
		}})
		_, err := m.Await(t.Context(), "ann/1", "1")
		require.NoError(t, err)
		if changed {
			require.Equal(t, []string{"10 1"}, seen)
			require.Equal(t, 11, sharedTotal.GetOr(sharedOf(t, m).State(), 0))
		} else {
			require.Equal(t, []string{"first1 1"}, seen)
			require.Equal(t, 1, sharedTotal.GetOr(sharedOf(t, m).State(), 0))
		}
	}
}

// A write that cannot be merged fails its run, and nothing of it is applied.
func TestSharedWriteThatIsRefused(t *testing.T) {
	for _, row := range []struct {
		write func(s *state.State) error
		want  string
	}{
		{func(s *state.State) error { return sharedSmall.Set(s, []int{1, 2}) }, "more than two"},
		{func(s *state.State) error {
			first := true
			return sharedTotal.Update(s, func(n int) (int, error) {
				if !first {
					panic("again")
				}
				first = false
				return n + 1, nil
			})
		}, "panic"},
	} {
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Run: func(ctx context.Context, run *workspace.Run) error {
			require.NoError(t, row.write(run.State()))
			require.NoError(t, sharedCount.Set(run.State(), 1))
			return m.Update(ctx, workspace.Shared("ann"), func(w *workspace.Workspace) error {
				return errors.Join(sharedSmall.Set(w.State(), []int{7}), sharedTotal.Set(w.State(), 7))
			})
		}})
		out, err := m.Handle(t.Context(), "ann/1", hello("1"))
		require.ErrorContains(t, err, row.want)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.False(t, sharedCount.Has(sharedOf(t, m).State()))
		require.Len(t, view(t, m, "ann/1").DeadLetters, 1)
	}
}

// The user part has no runs, and nothing but what is shared.
func TestUserPartHasOnlyWhatIsShared(t *testing.T) {
	ctx, id := t.Context(), workspace.Shared("ann")
	m := open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Run: func(context.Context, *workspace.Run) error { return nil }})
	_, err := m.Handle(ctx, id, hello("1"))
	require.ErrorIs(t, err, workspace.ErrInvalid)
	_, err = m.Submit(ctx, id, hello("1"))
	require.ErrorIs(t, err, workspace.ErrInvalid)
	require.ErrorIs(t, m.Do(ctx, id, func(context.Context, *workspace.Run) error { return nil }), workspace.ErrInvalid)
	for what, change := range map[string]func(w *workspace.Workspace) error{
		`field "note"`: func(w *workspace.Workspace) error { return ownNote.Set(w.State(), "x") },
		"message ": func(w *workspace.Workspace) error {
			return state.Messages.Set(w.State(), []state.Message{state.UserText("x")})
		},
		`setting "debug_mode"`: func(w *workspace.Workspace) error {
			return w.SetSettings(func(s *workspace.Settings) { s.DebugMode = true })
		},
	} {
		err := m.Update(ctx, id, func(w *workspace.Workspace) error {
			require.NoError(t, sharedCount.Set(w.State(), 1))
			return change(w)
		})
		require.ErrorIs(t, err, workspace.ErrInvalid, what)
		require.ErrorContains(t, err, what)
	}
	require.False(t, sharedOf(t, m).Exists)
	own := open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, ThreadMemory: true})
	require.ErrorIs(t, own.Update(ctx, id, func(w *workspace.Workspace) error { return w.Memory().Set("a", "b") }), workspace.ErrInvalid)
	data, err := m.Export(ctx, exportedThread(t, m))
	require.NoError(t, err)
	require.ErrorIs(t, m.ImportWorkspace(ctx, id, data), workspace.ErrInvalid)
}

// exportedThread makes a thread with a conversation.
func exportedThread(t *testing.T, m *workspace.Manager) string {
	_, err := m.Handle(t.Context(), "ann/export", hello("1"))
	require.NoError(t, err)
	return "ann/export"
}

// The memory belongs to the user, unless the options say otherwise or nothing is
// shared. What a thread had before is still there.
func TestMemoryIsShared(t *testing.T) {
	remember := func(t *testing.T, m *workspace.Manager, id, key, value string) {
		require.NoError(t, m.Update(t.Context(), id, func(w *workspace.Workspace) error { return w.Memory().Set(key, value) }))
	}
	for name, row := range map[string]struct {
		opts   workspace.Options
		shared bool
	}{
		"shared":            {workspace.Options{Schema: sharedFields}, true},
		"of a thread":       {workspace.Options{Schema: sharedFields, ThreadMemory: true}, false},
		"nothing is shared": {workspace.Options{Schema: state.MustSchema(ownNote)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			remember(t, open(t, db, workspace.Options{Schema: state.MustSchema(ownNote)}), "ann/1", "old", "1")
			m := open(t, db, row.opts)
			remember(t, m, "ann/1", "new", "2")
			require.Equal(t, []string{"new", "old"}, view(t, m, "ann/1").Memory().List())
			if !row.shared {
				require.Empty(t, view(t, m, "ann/2").Memory().List())
				return
			}
			require.Equal(t, []string{"new"}, view(t, m, "ann/2").Memory().List())
			remember(t, m, "ann/1", "old", "3")
			require.Equal(t, []string{"new", "old"}, view(t, m, "ann/2").Memory().List())
			require.NoError(t, m.Update(t.Context(), "ann/2", func(w *workspace.Workspace) error {
				_, err := w.Memory().Delete("old")
				return err
			}))
			require.Equal(t, []string{"new"}, view(t, m, "ann/1").Memory().List(), "what the thread had is gone with the first write")
		})
	}
}

// A field that becomes shared begins anew: what threads had stays theirs.
func TestFieldBecomesShared(t *testing.T) {
	db := store.NewMemory()
	old := &state.Field[string]{Name: "count"} // of another type, too
	m := open(t, db, workspace.Options{Schema: state.MustSchema(old, ownNote)})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		return errors.Join(old.Set(w.State(), "five"), ownNote.Set(w.State(), "n"))
	}))
	m, runs := hold(t, db, workspace.Options{Schema: sharedFields})
	for id, err := range m.Check(t.Context(), sharedFields) {
		t.Error(id, err)
	}
	run := runs.Begin(t, "ann", hello("1"))
	require.False(t, sharedCount.Has(run.State()))
	require.NoError(t, sharedCount.Set(run.State(), 1))
	run.Finish(t)
	require.Equal(t, 1, sharedCount.GetOr(view(t, m, "ann").State(), 0))
	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: 1}))
	// A schema that the user part does not fit is found.
	bad := 0
	for id, err := range m.Check(t.Context(), state.MustSchema(&state.Field[bool]{Name: "count", Shared: true}, ownNote)) {
		require.ErrorIs(t, err, workspace.ErrSchema)
		require.Equal(t, workspace.Shared("ann"), id)
		bad++
	}
	require.Equal(t, 1, bad)
}

// Revert and the history of a thread do not touch what is shared, which has its
// own.
func TestRevertOfSharedFields(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
	for i := range 3 {
		run := runs.Begin(t, "ann/1", hello(fmt.Sprint(i)))
		require.NoError(t, sharedCount.Set(run.State(), 1))
		require.NoError(t, ownNote.Set(run.State(), fmt.Sprint(i)))
		run.Finish(t)
	}
	require.NoError(t, m.Revert(t.Context(), "ann/1", workspace.RevertTo{Version: 1}))
	v := view(t, m, "ann/1")
	require.Equal(t, "0", ownNote.GetOr(v.State(), ""))
	require.Equal(t, 3, sharedCount.GetOr(v.State(), 0))
	v, err := m.ViewAt(t.Context(), "ann/1", 1)
	require.NoError(t, err)
	require.Equal(t, 3, sharedCount.GetOr(v.State(), 0))
	runs.Begin(t, "ann/2", hello("under way"))
	require.NoError(t, m.Revert(t.Context(), workspace.Shared("ann"), workspace.RevertTo{Version: 1}), "whatever runs there are")
	require.Equal(t, 1, sharedCount.GetOr(sharedOf(t, m).State(), 0))
	v, err = m.ViewAt(t.Context(), workspace.Shared("ann"), 2)
	require.NoError(t, err)
	require.Equal(t, 2, sharedCount.GetOr(v.State(), 0))
}

// Shared secrets are masked wherever a thread shows something, also before they
// are applied, and nothing is left of them when they are replaced.
func TestSharedSecrets(t *testing.T) {
	const first, second = "first-secret-word", "second-secret-word"
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{Schema: sharedFields})
	one := runs.Begin(t, "ann/1", hello("1"))
	require.NoError(t, sharedKey.Set(one.State(), first))
	require.NoError(t, one.Memory().SetSecret("pin", first))
	require.NoError(t, one.Commit(t.Context()))
	shown := func(id string) string {
		var b strings.Builder
		v := view(t, m, id)
		for r, err := range m.Records(t.Context(), id, v.Oldest) {
			if errors.Is(err, state.ErrCompacted) { // meanwhile, because of the secret
				break
			}
			require.NoError(t, err)
			fmt.Fprintf(&b, "%+v", r)
		}
		fmt.Fprintf(&b, "%+v", v)
		data, err := v.MarshalJSON()
		require.NoError(t, err)
		effects, err := m.Diff(t.Context(), id, v.Oldest, v.Version)
		if !errors.Is(err, state.ErrCompacted) {
			require.NoError(t, err)
		}
		return b.String() + string(data) + fmt.Sprint(effects)
	}
	require.NotContains(t, shown("ann/1"), first)
	require.Contains(t, stored(t, db), first, "as long as the run is under way")
	one.Finish(t)
	two := runs.Begin(t, "ann/2", hello("2"))
	require.Equal(t, first, sharedKey.GetOr(two.State(), ""))
	require.NoError(t, ownNote.Set(two.State(), "it is "+first))
	require.NotContains(t, two.Redact("it is "+first), first)
	two.Finish(t)
	for _, id := range []string{"ann/1", "ann/2", workspace.Shared("ann")} {
		require.NotContains(t, shown(id), first)
	}
	three := runs.Begin(t, "ann/3", hello("3"))
	require.NoError(t, sharedKey.Set(three.State(), second))
	require.NoError(t, three.Memory().Set("pin", second))
	three.Finish(t)
	require.NoError(t, m.Update(t.Context(), "ann/2", func(w *workspace.Workspace) error { return ownNote.Set(w.State(), "") }))
	for _, id := range []string{"ann/2"} {
		require.NoError(t, m.Compact(t.Context(), id))
	}
	require.Eventually(t, func() bool { return !strings.Contains(stored(t, db), first) }, 5*time.Second, 10*time.Millisecond)
	// A run that fails leaves nothing either.
	four := runs.Begin(t, "ann/4", hello("4"))
	require.NoError(t, sharedKey.Set(four.State(), "fourth-secret-word"))
	require.NoError(t, four.Commit(t.Context()))
	four.Fail(t, errors.New("no"))
	require.Eventually(t, func() bool { return !strings.Contains(stored(t, db), "fourth-secret-word") }, 5*time.Second, 10*time.Millisecond)
}

// stored returns all values of a store as a text.
func stored(t testing.TB, db store.Store) string {
	var b strings.Builder
	for e, err := range db.List(t.Context(), "", "", true) {
		require.NoError(t, err)
		b.Write(e.Value)
	}
	return b.String()
}

// A fork in the middle of a run shares what its user shares, and nothing that the
// run has written.
func TestForkSharesWhatIsApplied(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
	require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error { return sharedCount.Set(w.State(), 4) }))
	run := runs.Begin(t, "ann/1", hello("1"))
	require.NoError(t, sharedCount.Set(run.State(), 1))
	require.NoError(t, run.Memory().Set("a", "b"))
	require.NoError(t, run.Commit(t.Context()))
	require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{}))
	require.Equal(t, 4, sharedCount.GetOr(view(t, m, "ann/2").State(), 0))
	require.Empty(t, view(t, m, "ann/2").Memory().List())
	runs.Begin(t, "ann/2", hello("2")).Finish(t)
	require.Equal(t, 4, sharedCount.GetOr(sharedOf(t, m).State(), 0))
	run.Finish(t)
	require.Equal(t, 5, sharedCount.GetOr(view(t, m, "ann/2").State(), 0))
}

// No thread of a user who was deleted applies anything.
func TestDeletedUserSharesNothing(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
	run := runs.Begin(t, "ann/1", hello("1"))
	require.NoError(t, sharedCount.Set(run.State(), 1))
	require.NoError(t, m.DeleteUser(t.Context(), "ann"))
	_, err := run.End(nil)
	require.ErrorIs(t, err, workspace.ErrFenced)
	err = m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error { return sharedCount.Set(w.State(), 1) })
	require.ErrorIs(t, err, workspace.ErrUserDeleted)
	err = m.Update(t.Context(), "ann/2", func(w *workspace.Workspace) error { return sharedCount.Set(w.State(), 1) })
	require.ErrorIs(t, err, workspace.ErrUserDeleted)
	require.False(t, sharedOf(t, m).Exists)
}

// A suspended run applies what it has written when it finishes.
func TestSuspendedRunApplies(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Keys: []workspace.Key{key("a")}})
	run := runs.Begin(t, "ann/1", hello("1"))
	ask(t, run, "1")
	require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
	require.NoError(t, sharedCount.Set(run.State(), 1))
	require.NoError(t, run.Commit(t.Context()))
	require.False(t, sharedCount.Has(sharedOf(t, m).State()))
	run.Finish(t)
	require.Equal(t, 1, sharedCount.GetOr(sharedOf(t, m).State(), 0))
	_, err := m.Verify(t.Context(), workspace.Shared("ann"))
	require.NoError(t, err)
}
