package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
		require.Equal(t, 4*senders, visits.GetOr(view(t, m, "ann").State(), 0))
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
				var slots atomic.Int32
				m = open(t, store.NewMemory(), workspace.Options{Runs: 2, Run: func(ctx context.Context, run *workspace.Run) error {
					switch run.UserID() {
					case "last":
						ended = append(ended, run.Message().ID)
						return nil
					case "one", "two":
						slots.Add(1)
						<-ctx.Done()
						return ctx.Err()
					}
					return end(ctx, m, run)
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
				for _, user := range []string{"one", "two"} {
					_, err := m.Submit(t.Context(), user, text("1"))
					require.NoError(t, err)
				}
				synctest.Wait()
				require.EqualValues(t, 2, slots.Load(), "both are free")
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

// A process holds Options.Runs runs at most. The others wait in the store, and
// all messages are handled.
func TestManyUsersAtOnce(t *testing.T) {
	const limit, users = 8, 1000
	for name, send := range map[string]func(context.Context, *workspace.Manager, string) error{
		"Submit": func(ctx context.Context, m *workspace.Manager, user string) error {
			out, err := m.Submit(ctx, user, text("1"))
			if err == nil && out.Status != workspace.StatusStarted && out.Status != workspace.StatusQueued {
				err = errors.New(string(out.Status))
			}
			return err
		},
		"Handle": func(ctx context.Context, m *workspace.Manager, user string) error {
			out, err := m.Handle(ctx, user, text("1"))
			if err == nil && out.Status != workspace.StatusDone {
				err = errors.New(string(out.Status))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				var running, most, handled atomic.Int64
				m := open(t, db, workspace.Options{TTL: ttl, Runs: limit, Run: func(context.Context, *workspace.Run) error {
					n := running.Add(1)
					defer running.Add(-1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					time.Sleep(ttl / 30)
					handled.Add(1)
					return nil
				}})
				began := time.Now()
				var wg sync.WaitGroup
				for i := range users {
					wg.Go(func() { require.NoError(t, send(t.Context(), m, fmt.Sprint("user", i))) })
				}
				wg.Wait()
				require.NoError(t, m.Wait(t.Context()))
				require.EqualValues(t, users, handled.Load())
				require.EqualValues(t, limit, most.Load())
				require.InDelta(t, users/limit, (time.Since(began) / (ttl / 30)), 2, "no slot is idle")
			})
		})
	}
}

// A run whose holder has died blocks its user no longer than 1.5 TTL, even if
// all messages that arrive are refused or are duplicates.
func TestRefusedMessagesFindDeadHolder(t *testing.T) {
	for name, send := range map[string]func(m *workspace.Manager) (workspace.Outcome, error){
		"rejected": func(m *workspace.Manager) (workspace.Outcome, error) {
			return m.Handle(context.Background(), "ann", whenBusy(workspace.BusyReject, text("2")))
		},
		"duplicate": func(m *workspace.Manager) (workspace.Outcome, error) {
			return m.Handle(context.Background(), "ann", text("1"))
		},
		"queue is full": func(m *workspace.Manager) (workspace.Outcome, error) {
			return m.Handle(context.Background(), "ann", text("3"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				process, kill := asProcess(db)
				dying := open(t, process, workspace.Options{TTL: ttl, Queue: 1, Run: func(ctx context.Context, _ *workspace.Run) error {
					<-ctx.Done()
					return ctx.Err()
				}})
				for _, id := range []string{"1", "queued"} {
					_, err := dying.Submit(t.Context(), "ann", text(id))
					require.NoError(t, err)
				}
				kill()
				m := open(t, db, workspace.Options{TTL: ttl, Queue: 1, Run: visit})
				_, _ = send(m)
				time.Sleep(2 * ttl)
				require.Equal(t, 2, visits.GetOr(view(t, m, "ann").State(), 0))
			})
		})
	}
}

// A run that waits for another user's message does not hold the slot that the
// message needs.
func TestWaitingRunLendsSlot(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, m *workspace.Manager) error{
		"Handle": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Handle(ctx, "bob", text("2"))
			return err
		},
		"Await": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Await(ctx, "bob", "1")
			return err
		},
		"Do": func(ctx context.Context, m *workspace.Manager) error { return m.Do(ctx, "bob", visit) },
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				var m *workspace.Manager
				var running, most atomic.Int32
				m = open(t, db, workspace.Options{TTL: ttl, Runs: 1, Run: func(ctx context.Context, run *workspace.Run) error {
					if run.Message().ID == "first" {
						if _, err := m.Submit(ctx, "bob", text("1")); err != nil {
							return err
						}
						return wait(ctx, m)
					}
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(ttl / 10)
					running.Add(-1)
					return nil
				}})
				ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
				defer cancel()
				out, err := m.Handle(ctx, "ann", text("first"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				for _, user := range []string{"eve", "kim", "joe"} {
					_, err := m.Submit(t.Context(), user, text("1"))
					require.NoError(t, err)
				}
				require.NoError(t, m.Wait(t.Context()))
				require.EqualValues(t, 1, most.Load(), "the slot is taken back")
			})
		})
	}
}
