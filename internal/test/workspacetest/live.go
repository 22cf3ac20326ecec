package workspacetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// LiveText: with Options.Live, a process that watches is at most about a second
// behind the text that another one is told.
func (s *suite) LiveText(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		const piece, every, pieces = "word ", 50 * time.Millisecond, 60
		emitted := make(chan time.Time, pieces)
		watching, seen := make(chan struct{}), make(chan struct{})
		m := Open(t, db, workspace.Options{TTL: ttl, Live: true, Run: func(_ context.Context, run *workspace.Run) error {
			require.Zero(t, run.Attempt())
			<-watching
			for range pieces {
				emitted <- time.Now()
				run.Emit(piece)
				time.Sleep(every)
			}
			<-seen
			return nil
		}})
		reader := Open(t, db, workspace.Options{TTL: ttl, Live: true})
		_, err := m.Submit(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		begun, heard, rest, latest := false, 0, 0, time.Duration(0)
		for e, err := range reader.Watch(t.Context(), "ann").AsHost() {
			require.NoError(t, err)
			if !begun {
				begun = true
				close(watching)
			}
			for rest += len(e.Delta); rest >= len(piece); rest -= len(piece) {
				latest = max(latest, time.Since(<-emitted))
				heard++
			}
			if heard == pieces {
				break
			}
		}
		close(seen)
		t.Logf("at most %s behind", latest.Round(time.Millisecond))
		RequireAbout(t, ttl, time.Second, max(latest, time.Second), "behind")
		require.NoError(t, m.Wait(t.Context()))
	})
}
