package workspacetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// In one process, the run that interrupts waits until the function of the other
// has returned, but not longer than the TTL.
func (s *suite) InterruptWaitsForTheFunction(t *testing.T) {
	for _, test := range []struct{ cleanup, want float64 }{{0, 0}, {0.5, 0.5}, {10, 1}} { // in TTLs
		t.Run(fmt.Sprint(test.cleanup), func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				cleanup, want := InTTLs(test.cleanup, ttl), InTTLs(test.want, ttl)
				var running atomic.Int32
				m := Open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
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
				_, err := m.Submit(t.Context(), "ann", Text("1"))
				require.NoError(t, err)
				time.Sleep(ttl / 10)
				began := time.Now()
				out, err := m.Handle(t.Context(), "ann", WhenBusy(workspace.BusyInterrupt, Text("2")))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				requireAbout(t, ttl, want, time.Since(began))
				require.NoError(t, m.Wait(t.Context()))
				waitUntil(t, ttl, func() bool { return running.Load() == 0 })
			})
		})
	}
}

// A store that reports changes tells the holder of a run at once that another
// process has ended the run. Otherwise the next heartbeat does.
func (s *suite) InterruptElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		view func(store.Store) store.Store
		want float64 // in TTLs
	}{
		"watched":     {func(db store.Store) store.Store { return db }, 0},
		"not watched": {func(db store.Store) store.Store { quiet, _ := AsProcess(db); return quiet }, 1.0 / 3},
	} {
		for what, end := range map[string]func(t testing.TB, m *workspace.Manager, run *workspace.Run){
			"interrupt": func(t testing.TB, m *workspace.Manager, _ *workspace.Run) {
				_, _, err := m.Begin(t.Context(), "ann", WhenBusy(workspace.BusyInterrupt, Text("2")))
				require.NoError(t, err)
			},
			"reset": func(t testing.TB, m *workspace.Manager, _ *workspace.Run) {
				_, err := m.Reset(t.Context(), "ann")
				require.NoError(t, err)
			},
			"cancel": func(t testing.TB, m *workspace.Manager, run *workspace.Run) {
				require.NoError(t, m.Cancel(t.Context(), "ann", run.ID(), "no longer wanted"))
			},
			"delete": func(t testing.TB, m *workspace.Manager, _ *workspace.Run) {
				require.NoError(t, m.Delete(t.Context(), "ann"))
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					run, _, err := Open(t, test.view(db), workspace.Options{TTL: ttl}).Begin(t.Context(), "ann", Text("1"))
					require.NoError(t, err)
					time.Sleep(ttl + ttl/15) // soon after a heartbeat
					began := time.Now()
					end(t, Open(t, db, workspace.Options{TTL: ttl}), run)
					<-run.Context().Done()
					require.ErrorIs(t, context.Cause(run.Context()), workspace.ErrInterrupted)
					want := test.want
					if !s.watched {
						want = 1.0 / 3
					}
					if s.real && want > 0 { // heartbeats drift: the next one may come early
						requireWithin(t, began, InTTLs(want, ttl)+ttl/4)
						return
					}
					requireAbout(t, ttl, InTTLs(want, ttl), time.Since(began))
				})
			})
		}
	}
}
