package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// whichRun notes the calls of Options.Run.
type whichRun struct {
	mu       sync.Mutex
	calls    []string // message, attempt
	complete []string // messages for which OnRunComplete was called
}

func (w *whichRun) called(run *workspace.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprint(run.Message().ID, " attempt ", run.Attempt()))
}

func (w *whichRun) hooks() workspace.Hooks {
	return workspace.Hooks{OnRunComplete: func(_ context.Context, run *workspace.Run, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.complete = append(w.complete, run.Message().ID)
	}}
}

// A run that ends because a context does, and not because its handling has
// ended, is continued at once. No attempt is counted, and it is not complete.
func (s *suite) ReleasedRun(t *testing.T) {
	for name, end := range map[string]func(m *workspace.Manager, endHandle, endOpen func()){
		"the context of Handle ends": func(_ *workspace.Manager, endHandle, _ func()) { endHandle() },
		"the context of Open ends":   func(_ *workspace.Manager, _, endOpen func()) { endOpen() },
		"Close":                      func(m *workspace.Manager, _, _ func()) { _ = m.Close() },
		"Shutdown, which is too short": func(m *workspace.Manager, _, _ func()) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_ = m.Shutdown(ctx)
		},
	} {
		for how, send := range map[string]func(ctx context.Context, m *workspace.Manager, ttl time.Duration) error{
			"Handle": func(ctx context.Context, m *workspace.Manager, _ time.Duration) error {
				_, err := m.Handle(ctx, "ann", Text("1"))
				return err
			},
			"Begin": func(ctx context.Context, m *workspace.Manager, ttl time.Duration) error {
				run, _, err := m.Begin(ctx, "ann", Text("1"))
				if err != nil {
					return err
				}
				if err := Notes.Set(run.State(), []string{"committed"}); err != nil {
					return err
				}
				if err := run.Commit(ctx); err != nil {
					return err
				}
				<-run.Context().Done()
				time.Sleep(ttl / 30)
				if err := run.Commit(context.Background()); !errors.Is(err, workspace.ErrFenced) {
					return fmt.Errorf("a commit after the end of the context: %w", err)
				}
				return context.Cause(run.Context())
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					first, second := &whichRun{}, &whichRun{}
					var functions atomic.Int32
					answer := func(ctx context.Context, w *whichRun, run *workspace.Run) error {
						require.EqualValues(t, 1, functions.Add(1))
						defer functions.Add(-1)
						w.called(run)
						if len(Notes.Or(run.State(), nil)) > 0 { // it continues
							return nil
						}
						if err := Notes.Set(run.State(), []string{"committed"}); err != nil {
							return err
						}
						if err := run.Commit(ctx); err != nil {
							return err
						}
						<-ctx.Done()
						time.Sleep(2 * ttl / 3) // not as long as Close waits
						return ctx.Err()
					}
					openCtx, endOpen := context.WithCancel(t.Context())
					m, err := workspace.Open(openCtx, db, &workspace.Options{
						TTL:    ttl,
						Schema: Schema, Hooks: first.hooks(),
						Run: func(ctx context.Context, run *workspace.Run) error { return answer(ctx, first, run) },
					})
					require.NoError(t, err)
					other := Open(t, db, workspace.Options{
						TTL:   ttl,
						Hooks: second.hooks(),
						Run:   func(ctx context.Context, run *workspace.Run) error { return answer(ctx, second, run) },
					})

					ctx, endHandle := context.WithCancel(t.Context())
					sent := make(chan error, 1)
					go func() { sent <- send(ctx, m, ttl) }()
					time.Sleep(ttl)
					out, err := other.Submit(t.Context(), "ann", Text("2"))
					require.NoError(t, err)
					require.Equal(t, workspace.StatusQueued, out.Status)
					began := time.Now()
					end(m, endHandle, endOpen)
					require.Error(t, <-sent)

					waitUntil(t, ttl, func() bool { return View(t, other, "ann").Run == nil })
					requireWithin(t, began, ttl, "it is not handled at once")
					require.NoError(t, m.Close())
					require.NoError(t, other.Wait(t.Context()))
					calls := append(first.calls, second.calls...)
					if how == "Handle" {
						require.Equal(t, []string{"1 attempt 0", "1 attempt 0", "2 attempt 0"}, calls)
					} else {
						require.Equal(t, []string{"1 attempt 0", "2 attempt 0"}, calls)
					}
					require.Equal(t, []string{"1", "2"}, append(first.complete, second.complete...))
					endHandle()
					endOpen()
				})
			})
		}
	}
}

// Shutdown waits for runs, hands the queue over and refuses further messages.
// Other Managers handle everything else at once.
func (s *suite) Shutdown(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var mu sync.Mutex
		var handled []string
		answer := func(who string) func(context.Context, *workspace.Run) error {
			return func(ctx context.Context, run *workspace.Run) error {
				time.Sleep(ttl)
				mu.Lock()
				defer mu.Unlock()
				handled = append(handled, fmt.Sprint(who, " ", run.UserID(), " ", run.Message().ID, " attempt ", run.Attempt()))
				return ctx.Err()
			}
		}
		old := Open(t, db, workspace.Options{TTL: ttl, Run: answer("old")})
		for _, id := range []string{"1", "2"} {
			_, err := old.Submit(t.Context(), "ann", Text(id))
			require.NoError(t, err)
		}
		run, _, err := old.Begin(t.Context(), "bob", Text("1"))
		require.NoError(t, err)
		fresh := Open(t, db, workspace.Options{TTL: ttl, Run: answer("new")})
		time.Sleep(ttl / 10)

		began, done := time.Now(), make(chan error)
		go func() { done <- old.Shutdown(t.Context()) }()
		waitUntil(t, ttl, func() bool {
			_, err := old.Submit(t.Context(), "ann", Text("2"))
			return err != nil
		})
		for _, send := range []func() error{
			func() error { _, err := old.Handle(t.Context(), "ann", Text("3")); return err },
			func() error { _, err := old.Submit(t.Context(), "ann", Text("3")); return err },
			func() error { _, _, err := old.Begin(t.Context(), "eve", Text("3")); return err },
		} {
			require.ErrorIs(t, send(), workspace.ErrClosed)
		}
		out, err := fresh.Submit(t.Context(), "ann", Text("3"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status)
		time.Sleep(2 * ttl)
		_, err = run.Finish(t.Context())
		require.NoError(t, err, "Shutdown waits for runs of Begin, too")
		require.NoError(t, <-done)
		require.NoError(t, fresh.Wait(t.Context()))
		require.Equal(t, []string{"old ann 1 attempt 0", "new ann 2 attempt 0", "new ann 3 attempt 0"}, handled)
		requireAbout(t, ttl, 3*ttl-ttl/10, time.Since(began), "nothing waits for a lease")
	})
}

// A Manager takes a released run when it begins to look for runs, and else at once
// when it comes across the run, whatever is asked of it.
func (s *suite) VacantLeaseIsTakenAtOnce(t *testing.T) {
	for name, look := range map[string]func(testing.TB, *workspace.Manager){
		"nothing": nil,
		"Submit": func(t testing.TB, m *workspace.Manager) {
			_, err := m.Submit(t.Context(), "ann", Text("2"))
			require.NoError(t, err)
		},
		"a message that is rejected": func(t testing.TB, m *workspace.Manager) {
			out, err := m.Submit(t.Context(), "ann", WhenBusy(workspace.BusyReject, Text("2")))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusRejected, out.Status)
		},
		"the same message": func(t testing.TB, m *workspace.Manager) {
			out, err := m.Submit(t.Context(), "ann", Text("1"))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDuplicate, out.Status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				w := &whichRun{}
				gone := Open(t, db, workspace.Options{TTL: ttl})
				_, _, err := gone.Begin(t.Context(), "ann", Text("1"))
				require.NoError(t, err)
				open := func() *workspace.Manager {
					return Open(t, fakestore.Bare{Store: db}, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
						w.called(run)
						return nil
					}})
				}
				var m *workspace.Manager
				if look != nil {
					m = open()
					time.Sleep(ttl / 8) // it has looked, and looks again after 3/4 TTL
				}
				require.NoError(t, gone.Close())
				began := time.Now()
				if look == nil {
					m = open()
				} else {
					look(t, m)
				}
				waitUntil(t, ttl, func() bool { return View(t, m, "ann").Run == nil })
				requireWithin(t, began, ttl/2)
				require.NoError(t, m.Wait(t.Context()))
				require.Contains(t, w.calls, "1 attempt 0")
			})
		})
	}
}

// Close within a function of the Manager does not wait for that function
// permanently, nor does Shutdown.
func (s *suite) CloseWithinARun(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var m *workspace.Manager
		errs := make(chan error, 2)
		m = Open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, _ *workspace.Run) error {
			errs <- m.Shutdown(ctx)
			errs <- m.Close()
			return ctx.Err()
		}})
		began := time.Now()
		_, err := m.Handle(t.Context(), "ann", Text("1"))
		require.ErrorIs(t, err, workspace.ErrClosed)
		require.ErrorIs(t, <-errs, workspace.ErrBusy)
		require.ErrorIs(t, <-errs, workspace.ErrBusy)
		requireAbout(t, ttl, ttl, time.Since(began))
		require.NoError(t, m.Close())

		next := Open(t, db, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error { return nil }})
		require.NoError(t, Settle(t.Context(), next))
		requireAbout(t, ttl, ttl, time.Since(began))
		require.Nil(t, View(t, next, "ann").Run)
	})
}
