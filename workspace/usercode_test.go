package workspace_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Code of the user may panic, and may end its goroutine as t.FailNow does: the
// process lives, and the user's other messages are handled at once.
func TestCodeThatDoesNotReturn(t *testing.T) {
	const secret = "s3cret-value"
	for how, leave := range map[string]func(){
		"panics":              func() { panic("no luck with " + secret) },
		"ended its goroutine": runtime.Goexit,
	} {
		for _, place := range []string{
			"run", "OnRunStart", "OnRunComplete",
		} {
			t.Run(place+" "+how, func(t *testing.T) {
				onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
					at := func(where string) {
						if where == place {
							leave()
						}
					}
					var log testkit.Buffer
					m := open(t, db, workspace.Options{
						TTL:    ttl,
						Logger: slog.New(slog.NewTextHandler(&log, nil)),
						Run: func(_ context.Context, run *workspace.Run) error {
							if run.Message().ID == "last" {
								return nil
							}
							at("run")
							return errors.New("broken")
						},
						Hooks: workspace.Hooks{
							OnRunStart:    func(context.Context, *workspace.Run) { at("OnRunStart") },
							OnRunComplete: func(context.Context, *workspace.Run, error) { at("OnRunComplete") },
						},
					})
					require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
						return token.Set(w.State(), secret)
					}))
					began := time.Now()
					out, err := m.Handle(t.Context(), "ann", text("1"))
					require.Error(t, err)
					require.Equal(t, workspace.StatusFailed, out.Status)
					requireWithin(t, began, ttl/2)
					if place == "run" {
						require.ErrorContains(t, err, "run "+map[string]string{"panics": "panicked"}[how])
					}
					began = time.Now()
					out, err = m.Handle(t.Context(), "ann", text("last"))
					require.NoError(t, err)
					require.Equal(t, workspace.StatusDone, out.Status)
					requireWithin(t, began, ttl/2)
					if place != "run" {
						require.Contains(t, log.String(), place)
					}
					require.NotContains(t, log.String(), secret)
				})
			})
		}
	}
}

// While a hook takes its time, the next run is held: nobody takes it over, and
// its function is not called twice.
func TestSlowHook(t *testing.T) {
	for _, hook := range []string{"OnRunStart", "OnRunComplete"} {
		t.Run(hook, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				var log testkit.Buffer
				var running, calls atomic.Int32
				slow := func(where string) {
					if where == hook {
						time.Sleep(5 * ttl / 2)
					}
				}
				options := workspace.Options{
					TTL: ttl,
					Run: func(_ context.Context, run *workspace.Run) error {
						require.EqualValues(t, 1, running.Add(1))
						defer running.Add(-1)
						require.Zero(t, run.Attempt())
						calls.Add(1)
						time.Sleep(ttl)
						return nil
					},
					Hooks: workspace.Hooks{
						OnRunStart:    func(context.Context, *workspace.Run) { slow("OnRunStart") },
						OnRunComplete: func(context.Context, *workspace.Run, error) { slow("OnRunComplete") },
					},
				}
				other := open(t, db, options)
				options.Logger = slog.New(slog.NewTextHandler(&log, nil))
				m := open(t, db, options)
				for _, id := range []string{"1", "2"} {
					_, err := m.Submit(t.Context(), "ann", text(id))
					require.NoError(t, err)
				}
				require.NoError(t, settle(t.Context(), other))
				require.EqualValues(t, 2, calls.Load())
				require.NoError(t, m.Wait(t.Context()))
				require.Contains(t, log.String(), "hook "+hook+" took ")
			})
		})
	}
}

// nilError is an error that can only be used if it is not nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// An error that panics when it is used counts as a panic of the function that
// has returned it.
func TestErrorThatPanics(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var fine atomic.Bool
		m := open(t, db, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error {
			if fine.Load() {
				return nil
			}
			var err *nilError
			return err
		}})
		_, err := m.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		out, err := m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.Contains(t, out.Reason, "nil pointer")
		require.Panics(t, func() {
			_ = m.Do(t.Context(), "ann", func(context.Context, *workspace.Run) error {
				var err *nilError
				return err
			})
		})
		fine.Store(true)
		began := time.Now()
		out, err = m.Handle(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		requireSoon(t, ttl, began)
	})
}

// A hook of a run cannot wait for the message of the next run, which waits for
// the hook.
func TestHandleInHook(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var m *workspace.Manager
		var hookErr error
		m = open(t, db, workspace.Options{
			TTL: ttl,
			Run: func(context.Context, *workspace.Run) error { time.Sleep(ttl / 30); return nil },
			Hooks: workspace.Hooks{OnRunComplete: func(ctx context.Context, run *workspace.Run, _ error) {
				if run.Message().ID == "1" {
					_, hookErr = m.Handle(ctx, "ann", text("3"))
				}
			}},
		})
		for _, id := range []string{"1", "2"} {
			_, err := m.Submit(t.Context(), "ann", text(id))
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		require.NoError(t, m.Wait(ctx))
		require.ErrorIs(t, hookErr, workspace.ErrBusy)
	})
}
