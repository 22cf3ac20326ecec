package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// slowWrites returns a store whose writes take a millisecond. It reports no
// changes.
func slowWrites(db store.Store) store.Store {
	return fakestore.New(fakestore.Bare{Store: db}, func(_ context.Context, c fakestore.Call, do func() error) error {
		if c.Writes != nil {
			time.Sleep(time.Millisecond)
		}
		return do()
	})
}

// The holder of a run and its heartbeats get their turns among the senders.
func TestARunAmongItsSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders = 64
		db := fakestore.Count(slowWrites(store.NewMemory()))
		m := open(t, db, workspace.Options{Queue: 2 * senders, TTL: 60 * time.Millisecond, Run: func(ctx context.Context, run *workspace.Run) error {
			for range 4 {
				if err := errors.Join(visits.Set(run.State(), 1), run.Commit(ctx)); err != nil {
					return err
				}
			}
			return nil
		}})
		var wg sync.WaitGroup
		for i := range senders {
			wg.Go(func() {
				out, err := m.Handle(t.Context(), "ann", text(fmt.Sprint("m", i)))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
			})
		}
		wg.Wait()
		require.Equal(t, 4*senders, visits.Or(view(t, m, "ann").State(), 0))
		require.Zero(t, db.Conflicts())
		require.NoError(t, m.Close())
	})
}

// A run that waits for a slot is taken by another process that has one.
func TestRunThatWaitsForASlotIsTakenElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		full := open(t, db, workspace.Options{Runs: 1, Run: func(ctx context.Context, run *workspace.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := full.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		out, err := full.Submit(t.Context(), "bob", text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status)
		m := open(t, db, workspace.Options{Run: slow})
		out, err = m.Await(t.Context(), "bob", "1")
		require.NoError(t, err)
		require.Equal(t, "reply to 1", out.Reply)
		require.NoError(t, full.Close())
		require.NoError(t, m.Close())
	})
}

// Begin waits for a slot, in order, and until its ctx ends.
func TestBeginWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Runs: 1})
		run, _, err := m.Begin(t.Context(), "ann", text("1"))
		require.NoError(t, err)

		before := entries(t, db)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = m.Begin(ctx, "bob", text("1"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, before, entries(t, db), "nothing was taken")

		var order []string
		var wg sync.WaitGroup
		for _, user := range []string{"bob", "cid", "dan"} {
			wg.Go(func() {
				next, _, err := m.Begin(t.Context(), user, text("1"))
				require.NoError(t, err)
				order = append(order, user)
				_, err = next.Finish(t.Context())
				require.NoError(t, err)
			})
			synctest.Wait()
		}
		_, err = run.Finish(t.Context())
		require.NoError(t, err)
		wg.Wait()
		require.Equal(t, []string{"bob", "cid", "dan"}, order)
		require.NoError(t, m.Close())
	})
}

// The slot of a run is free again, however the run has ended.
func TestSlotsAreFreedWithTheirRuns(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, m *workspace.Manager, run *workspace.Run) error{
		"done":   func(context.Context, *workspace.Manager, *workspace.Run) error { return nil },
		"failed": func(context.Context, *workspace.Manager, *workspace.Run) error { return errors.New("no good") },
		"panic":  func(context.Context, *workspace.Manager, *workspace.Run) error { panic("no good") },
		"again": func(_ context.Context, _ *workspace.Manager, run *workspace.Run) error {
			if run.Attempt() == 0 {
				return workspace.RetryAfter(errors.New("no good"), time.Second)
			}
			return nil
		},
		"cancelled": func(ctx context.Context, m *workspace.Manager, run *workspace.Run) error {
			_ = m.Cancel(ctx, run.UserID(), run.ID(), "")
			<-ctx.Done()
			return ctx.Err()
		},
		"reset": func(ctx context.Context, m *workspace.Manager, run *workspace.Run) error {
			_, _ = m.Reset(ctx, run.UserID())
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m *workspace.Manager
				var ended []string
				m = open(t, store.NewMemory(), workspace.Options{Runs: 2, Run: func(ctx context.Context, run *workspace.Run) error {
					if run.UserID() != "last" {
						return end(ctx, m, run)
					}
					ended = append(ended, run.Message().ID)
					return nil
				}})
				for i := range 10 {
					_, err := m.Submit(t.Context(), fmt.Sprint("user", i%5), text(fmt.Sprint(i)))
					require.NoError(t, err)
				}
				require.NoError(t, m.Wait(t.Context()))
				var want []string
				for i := range 4 {
					want = append(want, fmt.Sprint(i))
					_, err := m.Handle(t.Context(), "last", text(want[i]))
					require.NoError(t, err)
				}
				require.Equal(t, want, ended)
				slots := 0
				for range 2 { // both are free
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if _, _, err := m.Begin(ctx, fmt.Sprint("manual", slots), text("1")); err == nil {
						slots++
					}
				}
				require.Equal(t, 2, slots)
				require.True(t, slices.Equal(want, ended))
				require.NoError(t, m.Close())
			})
		})
	}
}

// A Manager that holds too many runs, because one has waited for another, begins
// no more until it is within its limit.
func TestNextRunWaitsForASlotOfACrowdedManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *workspace.Manager
		var mu sync.Mutex
		var events []string
		note := func(event string) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, event)
		}
		m = open(t, store.NewMemory(), workspace.Options{Runs: 1, Run: func(ctx context.Context, run *workspace.Run) error {
			if run.UserID() == "bob" {
				time.Sleep(time.Second)
				note("bob " + run.Message().ID)
				return nil
			}
			for i := range 3 {
				wait := m.Submit
				if i == 0 {
					wait = m.Handle
				}
				go func() { _, _ = wait(ctx, "bob", text(fmt.Sprint(i))) }()
				time.Sleep(time.Millisecond)
			}
			_, err := m.Await(ctx, "bob", "0")
			time.Sleep(10 * time.Second)
			note("ann")
			return err
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, []string{"bob 0", "bob 1", "ann", "bob 2"}, events)
		require.NoError(t, m.Close())
	})
}
