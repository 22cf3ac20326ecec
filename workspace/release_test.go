package workspace_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run that ends because a context does, and not because its handling has
// ended, is continued at once. No attempt is counted, and it is not complete.
func TestReleasedRun(t *testing.T) {
	for name, end := range map[string]func(m *workspace.Manager, endHandle func()) error{
		"the context of Handle ends": func(_ *workspace.Manager, endHandle func()) error { endHandle(); return nil },
		"Close":                      func(m *workspace.Manager, _ func()) error { return m.Close() },
		"Shutdown, which is too short": func(m *workspace.Manager, _ func()) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			return m.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				first, second := &whichRun{}, &whichRun{}
				var functions atomic.Int32
				answer := func(ctx context.Context, w *whichRun, run *workspace.Run) error {
					require.EqualValues(t, 1, functions.Add(1))
					defer functions.Add(-1)
					w.Called(run)
					if len(notes.GetOr(run.State(), nil)) > 0 { // it continues
						return nil
					}
					if err := notes.Set(run.State(), []string{"committed"}); err != nil {
						return err
					}
					if err := run.Commit(ctx); err != nil {
						return err
					}
					<-ctx.Done()
					time.Sleep(2 * ttl / 3) // not as long as Close waits
					return ctx.Err()
				}
				m, err := workspace.Open(t.Context(), db, &workspace.Options{
					TTL:    ttl,
					Schema: schema, Hooks: first.Hooks(),
					Run: func(ctx context.Context, run *workspace.Run) error { return answer(ctx, first, run) },
				})
				require.NoError(t, err)
				other := open(t, db, workspace.Options{
					TTL:   ttl,
					Hooks: second.Hooks(),
					Run:   func(ctx context.Context, run *workspace.Run) error { return answer(ctx, second, run) },
				})

				ctx, endHandle := context.WithCancel(t.Context())
				sent := make(chan error, 1)
				go func() {
					_, err := m.Handle(ctx, "ann", text("1"))
					sent <- err
				}()
				time.Sleep(ttl)
				out, err := other.Submit(t.Context(), "ann", text("2"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusQueued, out.Status)
				began := time.Now()
				if err := end(m, endHandle); name == "the context of Handle ends" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, workspace.ErrBusy)
					require.ErrorContains(t, err, "runs that were cut off, and are left to other Managers: 1")
					require.Equal(t, m.Close(), m.Close())
				}
				require.Error(t, <-sent)

				waitUntil(t, ttl, func() bool { return view(t, other, "ann").Run == nil })
				requireWithin(t, began, ttl, "it is not handled at once")
				_ = m.Close()
				require.NoError(t, other.Wait(t.Context()))
				calls := append(first.Calls, second.Calls...)
				require.Equal(t, []string{"1 attempt 0", "1 attempt 0", "2 attempt 0"}, calls)
				require.Equal(t, []string{"1", "2"}, append(first.Complete, second.Complete...))
				endHandle()
			})
		})
	}
}

// The context of Open is for opening, and has values for what goes on in the
// background. Its end, such as that of signal.NotifyContext, ends no run: Shutdown
// waits for them, and says how many it has cut off.
func TestOpenContextEndsNoRun(t *testing.T) {
	type key struct{}
	for _, limit := range []time.Duration{time.Hour, time.Second} {
		onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
			opening, signal := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
			var values []any
			m, err := workspace.Open(opening, db, &workspace.Options{TTL: ttl, Runs: 3, Run: func(ctx context.Context, run *workspace.Run) error {
				values = append(values, ctx.Value(key{}))
				select {
				case <-time.After(time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}})
			require.NoError(t, err)
			_, err = m.Submit(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			synctest.Wait()
			signal()
			synctest.Wait()
			_, err = m.Submit(t.Context(), "ben", text("1"))
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, 2, m.Stats().Held)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err = m.Shutdown(ctx)
			require.Equal(t, []any{"trace", "trace"}, values)
			if limit == time.Hour {
				require.NoError(t, err)
				require.EqualValues(t, 2, m.Stats().Done)
				return
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, workspace.ErrBusy)
			require.ErrorContains(t, err, "runs that were cut off, and are left to other Managers: 2")
			require.Zero(t, m.Stats().Done)
		})
	}
}

// A Manager takes a released run when it begins to look for runs, and else at once
// when it comes across the run, whatever is asked of it.
func TestVacantLeaseIsTakenAtOnce(t *testing.T) {
	for name, look := range map[string]func(testing.TB, *workspace.Manager){
		"nothing": nil,
		"Submit": func(t testing.TB, m *workspace.Manager) {
			_, err := m.Submit(t.Context(), "ann", text("2"))
			require.NoError(t, err)
		},
		"a message that is rejected": func(t testing.TB, m *workspace.Manager) {
			out, err := m.Submit(t.Context(), "ann", whenBusy(workspace.BusyReject, text("2")))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusRejected, out.Status)
		},
		"the same message": func(t testing.TB, m *workspace.Manager) {
			out, err := m.Submit(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDuplicate, out.Status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				w := &whichRun{}
				gone, runs := hold(t, db, workspace.Options{TTL: ttl})
				runs.Begin(t, "ann", text("1"))
				open := func() *workspace.Manager {
					return open(t, fakestore.Bare{Store: db}, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
						w.Called(run)
						return nil
					}})
				}
				var m *workspace.Manager
				if look != nil {
					m = open()
					time.Sleep(ttl / 8) // it has looked, and looks again after 3/4 TTL
				}
				_ = gone.Close()
				began := time.Now()
				if look == nil {
					m = open()
				} else {
					look(t, m)
				}
				waitUntil(t, ttl, func() bool { return view(t, m, "ann").Run == nil })
				requireWithin(t, began, ttl/2)
				require.NoError(t, m.Wait(t.Context()))
				require.Contains(t, w.Calls, "1 attempt 0")
			})
		})
	}
}

// Close within a function of the Manager does not wait for that function
// permanently, nor does Shutdown.
func TestCloseWithinARun(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var m *workspace.Manager
		errs := make(chan error, 2)
		m = open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, _ *workspace.Run) error {
			errs <- m.Shutdown(ctx)
			errs <- m.Close()
			return ctx.Err()
		}})
		began := time.Now()
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.ErrorIs(t, err, workspace.ErrClosed)
		require.ErrorIs(t, <-errs, workspace.ErrBusy)
		require.ErrorIs(t, <-errs, workspace.ErrBusy)
		requireAbout(t, ttl, ttl, time.Since(began))
		synctest.Wait() // until the function has returned
		require.NoError(t, m.Close())

		next := open(t, db, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error { return nil }})
		require.NoError(t, settle(t.Context(), next))
		requireAbout(t, ttl, ttl, time.Since(began))
		require.Nil(t, view(t, next, "ann").Run)
	})
}

// In one process, the run that interrupts waits until the function of the other
// has returned, but not longer than the TTL.
func TestInterruptWaitsForTheFunction(t *testing.T) {
	for _, test := range []struct{ cleanup, want float64 }{{0, 0}, {0.5, 0.5}, {10, 1}} { // in TTLs
		t.Run(fmt.Sprint(test.cleanup), func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				cleanup, want := inTTLs(test.cleanup, ttl), inTTLs(test.want, ttl)
				var running atomic.Int32
				m := open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
					n := running.Add(1)
					defer running.Add(-1)
					if run.Message().ID == "1" {
						<-ctx.Done()
						require.ErrorIs(t, context.Cause(ctx), workspace.ErrInterrupted)
						time.Sleep(cleanup)
						return ctx.Err()
					}
					require.Equal(t, cleanup > ttl, n > 1)
					return nil
				}})
				_, err := m.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				time.Sleep(ttl / 10)
				began := time.Now()
				out, err := m.Handle(t.Context(), "ann", whenBusy(workspace.BusyInterrupt, text("2")))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				requireAbout(t, ttl, want, time.Since(began))
				require.NoError(t, m.Wait(t.Context()))
				waitUntil(t, ttl, func() bool { return running.Load() == 0 })
			})
		})
	}
}

// A message whose holders all die becomes a dead letter, and the messages
// behind it are handled.
func TestDead(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		first, killFirst := asProcess(db)
		m, runs := hold(t, first, workspace.Options{TTL: ttl})
		runs.Begin(t, "ann", text("poison"))
		_, err := m.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		killFirst()
		closeEarly(t, m)
		var handled []string
		for range 3 {
			var dying *workspace.Manager
			process, kill := asProcess(db)
			dying, err = workspace.Open(t.Context(), process, &workspace.Options{
				Schema: schema, TTL: ttl,
				Run: func(ctx context.Context, run *workspace.Run) error {
					if run.Message().ID != "poison" {
						handled = append(handled, run.Message().ID)
						return nil
					}
					kill()
					<-ctx.Done() // its lease is not renewed
					return ctx.Err()
				},
			})
			require.NoError(t, err)
			_ = settle(t.Context(), dying)
			_ = dying.Close()
			kill()
		}
		require.Equal(t, []string{"2"}, handled)
		v := view(t, open(t, db, workspace.Options{TTL: ttl}), "ann")
		require.Len(t, v.DeadLetters, 1)
		require.Equal(t, "text of poison", v.DeadLetters[0].Message.Content.(state.TextMessage).Text())
	})
}
