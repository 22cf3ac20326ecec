package workspacetest

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Those who send to one user at once are served in the order in which they come,
// and do not collide.
func (s *suite) SendersToOneUser(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		const senders = 64
		counted := fakestore.Count(fakestore.Bare{Store: db})
		m, runs := Hold(t, counted, workspace.Options{Queue: senders, TTL: time.Hour})
		runs.Begin(t, "ann", Text("first"))
		var mu sync.Mutex
		var served []string
		var wg sync.WaitGroup
		for i := range senders {
			wg.Go(func() {
				out, err := m.Submit(t.Context(), "ann", Text(fmt.Sprint("m", i)))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusQueued, out.Status)
				mu.Lock()
				defer mu.Unlock()
				served = append(served, fmt.Sprint("m", i))
			})
			if !s.real {
				synctest.Wait() // it waits for its turn
			}
		}
		wg.Wait()
		require.Zero(t, counted.Conflicts())
		var want, queue []string
		for i := range senders {
			want = append(want, fmt.Sprint("m", i))
		}
		for _, msg := range View(t, m, "ann").Queue {
			queue = append(queue, msg.ID)
		}
		require.ElementsMatch(t, want, queue)
		if !s.real {
			require.Equal(t, want, served)
			require.Equal(t, want, queue)
		}
	})
}
