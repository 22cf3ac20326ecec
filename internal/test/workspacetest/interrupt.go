package workspacetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

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
		// One writes the head, and one deletes it.
		for what, end := range map[string]func(t testing.TB, m *workspace.Manager){
			"interrupt": func(t testing.TB, m *workspace.Manager) {
				_, err := m.Submit(t.Context(), "ann", WhenBusy(workspace.BusyInterrupt, Text("2")))
				require.NoError(t, err)
			},
			"delete": func(t testing.TB, m *workspace.Manager) {
				require.NoError(t, m.Delete(t.Context(), "ann"))
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					_, runs := Hold(t, test.view(db), workspace.Options{TTL: ttl})
					run := runs.Begin(t, "ann", Text("1"))
					time.Sleep(ttl + ttl/15) // soon after a heartbeat
					began := time.Now()
					end(t, Open(t, db, workspace.Options{TTL: ttl, Run: Nothing}))
					<-run.Context().Done()
					require.ErrorIs(t, context.Cause(run.Context()), workspace.ErrInterrupted)
					want := test.want
					if !s.watched {
						want = 1.0 / 3
					}
					if s.real && want > 0 { // heartbeats drift: the next one may come early
						RequireWithin(t, began, InTTLs(want, ttl)+ttl/4)
						return
					}
					RequireAbout(t, ttl, InTTLs(want, ttl), time.Since(began))
				})
			})
		}
	}
}
