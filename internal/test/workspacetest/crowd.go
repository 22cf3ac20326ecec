package workspacetest

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

// Those who send to one user at once are served in the order in which they come,
// and do not collide.
func (s *suite) SendersToOneUser(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		const senders = 64
		counted := fakestore.Count(fakestore.Bare{Store: db})
		m := Open(t, counted, workspace.Options{Queue: senders, TTL: time.Hour})
		_, _, err := m.Begin(t.Context(), "ann", Text("first"))
		require.NoError(t, err)
		var mu sync.Mutex
		var served []string
		var wg sync.WaitGroup
		for i := range senders {
			wg.Go(func() {
				_, out, err := m.Begin(t.Context(), "ann", Text(fmt.Sprint("m", i)))
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

// A process holds Options.Runs runs at most. The others wait in the store, and
// all messages are handled.
func (s *suite) ManyUsersAtOnce(t *testing.T) {
	limit, users := 8, 1000
	if s.real {
		users = 100
	}
	for name, send := range map[string]func(context.Context, *workspace.Manager, string) error{
		"Submit": func(ctx context.Context, m *workspace.Manager, user string) error {
			out, err := m.Submit(ctx, user, Text("1"))
			if err == nil && out.Status != workspace.StatusStarted && out.Status != workspace.StatusQueued {
				err = errors.New(string(out.Status))
			}
			return err
		},
		"Handle": func(ctx context.Context, m *workspace.Manager, user string) error {
			out, err := m.Handle(ctx, user, Text("1"))
			if err == nil && out.Status != workspace.StatusDone {
				err = errors.New(string(out.Status))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				var running, most, handled atomic.Int64
				m := Open(t, db, workspace.Options{TTL: ttl, Runs: limit, Run: func(context.Context, *workspace.Run) error {
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
				if !s.real { // the writes take no time
					require.InDelta(t, users/limit, (time.Since(began) / (ttl / 30)), 2, "no slot is idle")
				}
			})
		})
	}
}
