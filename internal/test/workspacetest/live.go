package workspacetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// LiveText: with Options.Live, a process that watches is at most about a second
// behind the text that another one is told, for two writes a second. Without it,
// nothing is written.
func (s *suite) LiveText(t *testing.T) {
	for name, live := range map[string]bool{"Live": true, "not Live": false} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) { liveText(t, db, ttl, live) })
		})
	}
}

func liveText(t testing.TB, db store.Store, ttl time.Duration, live bool) {
	const piece, every, pieces = "word ", 50 * time.Millisecond, 60
	var writes atomic.Int64
	counting := WithFaults(db, func(list []store.Write) (bool, error) {
		for _, w := range list {
			if w.Key == "agent:busy:run:ann" {
				writes.Add(1)
			}
		}
		return false, nil
	})
	var mu sync.Mutex
	var emitted []time.Time
	watching, seen := make(chan struct{}), make(chan struct{})
	m := Open(t, counting, workspace.Options{TTL: ttl, Live: live, Run: func(ctx context.Context, run *workspace.Run) error {
		<-watching
		before := writes.Load()
		for range pieces {
			mu.Lock()
			emitted = append(emitted, time.Now())
			mu.Unlock()
			run.Emit(piece)
			time.Sleep(every)
		}
		if live {
			<-seen
		}
		count, most := writes.Load()-before, int64(0)
		mu.Lock()
		defer mu.Unlock()
		if live {
			most = int64(time.Since(emitted[0])/(500*time.Millisecond)) + 2
		}
		t.Logf("%d writes of text in %s", count, time.Since(emitted[0]).Round(time.Millisecond))
		require.LessOrEqual(t, count, most)
		return nil
	}})
	reader := Open(t, db, workspace.Options{TTL: ttl, Live: live})
	_, err := m.Submit(t.Context(), "ann", Text("1"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = m.Await(ctx, "ann", "1")
		cancel()
	}()
	length, latest, begun := 0, time.Duration(0), false
	for e, err := range reader.Watch(ctx, "ann") {
		if !begun {
			begun = true
			close(watching)
		}
		if err != nil {
			break
		}
		if e.Kind != workspace.EventDelta {
			continue
		}
		mu.Lock()
		latest = max(latest, time.Since(emitted[length/len(piece)]))
		mu.Unlock()
		if length += len(e.Delta); length == pieces*len(piece) {
			close(seen)
		}
	}
	if !live {
		require.Zero(t, length)
		return
	}
	t.Logf("at most %s behind", latest.Round(time.Millisecond))
	require.Equal(t, pieces*len(piece), length)
	RequireAbout(t, ttl, time.Second, max(latest, time.Second), "behind")
}
