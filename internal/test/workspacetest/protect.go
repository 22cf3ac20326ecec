package workspacetest

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
func (s *suite) CodeThatDoesNotReturn(t *testing.T) {
	const secret = "s3cret-value"
	for how, leave := range map[string]func(){
		"panics":              func() { panic("no luck with " + secret) },
		"ended its goroutine": runtime.Goexit,
	} {
		for _, place := range []string{
			"run", "OnRunStart", "OnRunComplete",
		} {
			t.Run(place+" "+how, func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					at := func(where string) {
						if where == place {
							leave()
						}
					}
					var log testkit.Buffer
					m := Open(t, db, workspace.Options{
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
						return Token.Set(w.State(), secret)
					}))
					began := time.Now()
					out, err := m.Handle(t.Context(), "ann", Text("1"))
					require.Error(t, err)
					require.Equal(t, workspace.StatusFailed, out.Status)
					requireWithin(t, began, ttl/2)
					if place == "run" {
						require.ErrorContains(t, err, "run "+map[string]string{"panics": "panicked"}[how])
					}
					began = time.Now()
					out, err = m.Handle(t.Context(), "ann", Text("last"))
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
func (s *suite) SlowHook(t *testing.T) {
	for _, hook := range []string{"OnRunStart", "OnRunComplete"} {
		t.Run(hook, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
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
				other := Open(t, db, options)
				options.Logger = slog.New(slog.NewTextHandler(&log, nil))
				m := Open(t, db, options)
				for _, id := range []string{"1", "2"} {
					_, err := m.Submit(t.Context(), "ann", Text(id))
					require.NoError(t, err)
				}
				require.NoError(t, Settle(t.Context(), other))
				require.EqualValues(t, 2, calls.Load())
				require.NoError(t, m.Wait(t.Context()))
				require.Contains(t, log.String(), "hook "+hook+" took ")
			})
		})
	}
}
