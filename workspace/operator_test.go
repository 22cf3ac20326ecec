package workspace_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// worker handles messages. Those in failing fail, and those in blocking wait
// until their context ends.
type worker struct {
	mu       sync.Mutex
	failing  map[string]bool
	blocking map[string]bool
	handled  []string
	attempts []int
	cause    chan error // why the contexts of blocking messages have ended
}

func newWorker() *worker {
	return &worker{failing: map[string]bool{}, blocking: map[string]bool{}, cause: make(chan error, 9)}
}

func (w *worker) run(ctx context.Context, run *workspace.Run) error {
	id := run.Message().ID
	w.mu.Lock()
	w.handled = append(w.handled, id)
	w.attempts = append(w.attempts, run.Attempt())
	fails, blocks := w.failing[id], w.blocking[id]
	w.mu.Unlock()
	if blocks {
		<-ctx.Done()
		w.cause <- context.Cause(ctx)
		return ctx.Err()
	}
	if fails {
		return errors.New("model is down")
	}
	return visits.Set(run.State(), 1)
}

// A dead letter that is retried during a run waits behind the queue. A Manager
// without Run leaves it to others.
func TestRetryDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		desk, runs := hold(t, db, workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		run.Fail(t, errors.New("no"))
		run = runs.Begin(t, "ann", text("2"))
		_, err := desk.Submit(t.Context(), "ann", text("3"))
		require.NoError(t, err)
		require.NoError(t, desk.Retry(t.Context(), "ann", "1"))
		var waiting []string
		for _, msg := range view(t, desk, "ann").Queue {
			waiting = append(waiting, msg.ID)
		}
		require.Equal(t, []string{"3", "1"}, waiting)
		run.Finish(t)
		runs.Next(t).Finish(t)
		last := runs.Next(t)
		require.Equal(t, "1", last.Message().ID)
		last.Fail(t, errors.New("no"))

		require.NoError(t, desk.Close())
		operator := open(t, db, workspace.Options{})
		require.NoError(t, operator.Retry(t.Context(), "ann", "1"))
		synctest.Wait()
		require.Equal(t, "1", view(t, operator, "ann").Run.Message.ID)
		w := newWorker()
		m := open(t, db, workspace.Options{Run: w.run})
		require.NoError(t, settle(t.Context(), m))
		require.Equal(t, []string{"1"}, w.handled)
		require.Equal(t, []int{0}, w.attempts)
	})
}

func TestDiscard(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("1"))
	run.Fail(t, errors.New("no"))
	run = runs.Begin(t, "ann", text("2"))
	for _, id := range []string{"3", "4", "5"} {
		_, err := m.Submit(t.Context(), "ann", text(id))
		require.NoError(t, err)
	}
	for _, id := range []string{"1", "4"} {
		require.NoError(t, m.Discard(t.Context(), "ann", id))
		out, err := m.Submit(t.Context(), "ann", text(id))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDuplicate, out.Status)
		require.Equal(t, string(work.EndingDiscarded), out.Reason)
	}
	require.ErrorIs(t, m.Discard(t.Context(), "ann", "2"), workspace.ErrNotFound, "it is being handled")
	require.ErrorIs(t, m.Discard(t.Context(), "ann", "9"), workspace.ErrNotFound)
	v := view(t, m, "ann")
	require.Empty(t, v.DeadLetters)
	require.Len(t, v.Queue, 2)
	require.Equal(t, "2", run.Message().ID)
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, w := store.NewMemory(), newWorker()
		w.blocking["1"] = true
		m := open(t, db, workspace.Options{Run: w.run})
		out, err := m.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		_, err = m.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		synctest.Wait()

		begun := time.Now()
		require.NoError(t, m.Cancel(t.Context(), "ann", out.RunID, "too slow"))
		cause := <-w.cause
		for _, want := range []error{workspace.ErrRunCancelled, workspace.ErrFenced, workspace.ErrInterrupted} {
			require.ErrorIs(t, cause, want)
		}
		require.NoError(t, m.Wait(t.Context()))
		synctest.Wait()
		require.Less(t, time.Since(begun), 100*time.Millisecond)
		require.Equal(t, []string{"1", "2"}, w.handled)
		require.Equal(t, []int{0, 0}, w.attempts)
		v := view(t, m, "ann")
		require.Nil(t, v.Run)
		require.Empty(t, v.DeadLetters)

		again, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.Outcome{
			Status: workspace.StatusDuplicate, First: workspace.StatusFailed, RunID: out.RunID, Reason: "too slow",
		}, again)
		require.ErrorIs(t, m.Cancel(t.Context(), "ann", out.RunID, ""), workspace.ErrNotFound, "it has ended")
	})
}

func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, w := store.NewMemory(), newWorker()
		w.blocking["2"] = true
		m := open(t, db, workspace.Options{Run: w.run, Keys: []workspace.Key{key("a")}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		_, err = m.Handle(t.Context(), "anna", text("1"))
		require.NoError(t, err)
		for _, user := range []string{"ann", "anna"} {
			require.NoError(t, m.Store(user).Set(t.Context(), "note", "private"))
		}
		_, err = m.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		synctest.Wait()

		require.NoError(t, m.Delete(t.Context(), "ann"))
		require.ErrorIs(t, <-w.cause, workspace.ErrInterrupted)
		synctest.Wait()
		require.Equal(t, []string{"anna"}, users(t, m))
		var left []string
		for key := range entries(t, db) {
			if key != annsHead {
				left = append(left, key)
			}
		}
		for _, key := range left {
			require.Contains(t, key, "anna")
		}
		_, found, err := m.Store("ann").Get(t.Context(), "note")
		require.NoError(t, err)
		require.False(t, found)
		require.NoError(t, m.Delete(t.Context(), "ann"), "again")
		require.NoError(t, m.Delete(t.Context(), "nobody"))
		require.NotContains(t, entries(t, db), "agent:workspace:nobody")
		require.Equal(t, []string{"anna"}, users(t, m))

		// Expire waits for the age.
		time.Sleep(time.Hour)
		removed, err := m.Expire(t.Context(), 2*time.Hour)
		require.NoError(t, err)
		require.Zero(t, removed)
		removed, err = m.Expire(t.Context(), time.Hour-time.Minute)
		require.NoError(t, err)
		require.Equal(t, 1, removed)
		require.NotContains(t, entries(t, db), annsHead)
		v := view(t, m, "anna")
		require.Equal(t, 1, visits.GetOr(v.State(), 0))
	})
}

// A workspace that was deleted begins anew with the next message, which may have
// the id of an earlier one.
func TestDeletedUserReturns(t *testing.T) {
	for name, expire := range map[string]bool{"before Expire": false, "after Expire": true} {
		db, w := store.NewMemory(), newWorker()
		m := open(t, db, workspace.Options{Run: w.run})
		other := open(t, db, workspace.Options{Run: w.run})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.NoError(t, m.Delete(t.Context(), "ann"))
		require.Empty(t, users(t, other), name)
		if expire {
			removed, err := m.Expire(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, 1, removed)
		}
		for _, m := range []*workspace.Manager{m, other} {
			id := text("1")
			if m == other {
				id = text("2")
			}
			out, err := m.Handle(t.Context(), "ann", id)
			require.NoError(t, err, name)
			require.Equal(t, workspace.StatusDone, out.Status)
		}
		require.Equal(t, []string{"ann"}, users(t, m))
		require.Equal(t, 2, visits.GetOr(view(t, m, "ann").State(), 0))
	}
}

// A Manager that has seen a deletion takes part again when the user returns,
// however many messages later it looks.
func TestUserReturnsToAnotherManager(t *testing.T) {
	for messages := range 20 {
		synctest.Test(t, func(t *testing.T) {
			db := store.NewMemory()
			m, other := open(t, db, workspace.Options{Run: visit}), open(t, db, workspace.Options{Run: visit})
			for _, id := range []string{"1", "2", "3"} {
				_, err := m.Handle(t.Context(), "ann", text(id))
				require.NoError(t, err)
			}
			require.NoError(t, m.Delete(t.Context(), "ann"))
			time.Sleep(time.Second)
			_, err := other.Expire(t.Context(), 0)
			require.NoError(t, err)
			for i := range messages {
				_, err := other.Handle(t.Context(), "ann", text(strconv.Itoa(i)))
				require.NoError(t, err)
			}
			_, err = m.Handle(t.Context(), "ann", text("back"))
			require.NoError(t, err, "%d messages", messages)
			require.Equal(t, messages+1, visits.GetOr(view(t, m, "ann").State(), 0))
			require.NoError(t, other.Close())
			require.NoError(t, m.Close())
		})
	}
}

func TestOperatorInvalid(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	ctx, long := t.Context(), string(slices.Repeat([]byte("x"), 300))
	for name, err := range map[string]error{
		"retry without a user":   m.Retry(ctx, "", "1"),
		"retry without an id":    m.Retry(ctx, "ann", ""),
		"discard without an id":  m.Discard(ctx, "ann", ""),
		"discard a long id":      m.Discard(ctx, "ann", long),
		"cancel without an id":   m.Cancel(ctx, "ann", "", "why"),
		"cancel, invalid reason": m.Cancel(ctx, "ann", "1", "\xff"),
		"await without an id":    func() error { _, err := m.Await(ctx, "ann", ""); return err }(),
		"await a long id":        func() error { _, err := m.Await(ctx, "ann", long); return err }(),
		"delete without a user":  m.Delete(ctx, ""),
		"accept an invalid user": m.AcceptRollback(ctx, "\xff"),
		"expire, negative":       func() error { _, err := m.Expire(ctx, -1); return err }(),
	} {
		require.ErrorIs(t, err, workspace.ErrInvalid, name)
		require.ErrorAs(t, err, new(*workspace.Error), name)
	}
	require.Empty(t, entries(t, store.NewMemory()))
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.Delete(ctx, "ann"), workspace.ErrClosed)
	_, err := m.Expire(ctx, 0)
	require.ErrorIs(t, err, workspace.ErrClosed)
}

// A dead letter that is retried is handled at once.
func TestRetry(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var fine atomic.Bool
		calls := &whichRun{}
		m := open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			calls.Called(run)
			if !fine.Load() {
				return errors.New("model is down")
			}
			return visits.Set(run.State(), 1)
		}})
		out, err := m.Handle(t.Context(), "ann", text("1"))
		require.Error(t, err)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.Len(t, view(t, m, "ann").DeadLetters, 1)

		fine.Store(true)
		began := time.Now()
		require.NoError(t, m.Retry(t.Context(), "ann", "1"))
		require.NoError(t, m.Wait(t.Context()))
		requireSoon(t, ttl, began)
		v := view(t, m, "ann")
		require.Empty(t, v.DeadLetters)
		require.Nil(t, v.Run)
		require.Equal(t, 1, visits.GetOr(v.State(), 0))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 0"}, calls.Calls)
		require.Equal(t, []string{"text of 1"}, conversation(t, v))

		require.ErrorIs(t, m.Retry(t.Context(), "ann", "1"), workspace.ErrNotFound, "it is done")
		require.ErrorIs(t, m.Retry(t.Context(), "bob", "1"), workspace.ErrNotFound)
		require.NotContains(t, users(t, m), "bob")
	})
}

func rolledBack(t *testing.T, m *workspace.Manager) (users []string) {
	t.Helper()
	for user, err := range m.RolledBack(t.Context()) {
		require.ErrorIs(t, err, workspace.ErrRolledBack)
		users = append(users, user)
	}
	return users
}

// Every Manager that has seen lost writes refuses the workspace until an operator
// accepts it.
func TestAccept(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		set := func(m *workspace.Manager) error {
			return m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
		}
		m, other, fresh := open(t, db, workspace.Options{}), open(t, db, workspace.Options{}), open(t, db, workspace.Options{})
		require.NoError(t, set(m))
		older := entries(t, db)
		require.NoError(t, set(m))
		require.NoError(t, set(other))
		write(t, db, older)
		for _, m := range []*workspace.Manager{m, other} {
			require.Equal(t, []string{"ann"}, rolledBack(t, m), "nobody has asked for it since")
			require.ErrorIs(t, set(m), workspace.ErrRolledBack)
		}
		require.Empty(t, rolledBack(t, fresh), "it has seen nothing")
		require.NoError(t, fresh.AcceptRollback(t.Context(), "ann"), "an operator's program, which has seen nothing")
		for _, m := range []*workspace.Manager{m, other, fresh} {
			require.NoError(t, set(m))
			require.Empty(t, rolledBack(t, m))
		}
		require.Equal(t, 4, visits.GetOr(view(t, m, "ann").State(), 0))
		require.ErrorIs(t, m.AcceptRollback(t.Context(), "nobody"), workspace.ErrNotFound)
		require.Equal(t, []string{"ann"}, users(t, m))

		require.NoError(t, m.Delete(t.Context(), "ann"))
		require.NoError(t, m.AcceptRollback(t.Context(), "ann"))
		require.Empty(t, users(t, m), "a deleted workspace stays deleted")
	})
}
