package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Messages of impatient senders are handled exactly once while processes are
// replaced all the time, gracefully or not. No goroutine stays.
func TestProcessesThatAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, messages, ttl = 40, 3, 3 * time.Second
		db := &slowStore{Batcher: store.NewMemory()}
		start := func() *workspace.Manager {
			return open(t, db, workspace.Options{
				TTL: ttl, Runs: 8, Queue: messages, Attempts: 1000, Messages: -1,
				Run: func(ctx context.Context, run *workspace.Run) error {
					time.Sleep(rand.N(100 * time.Millisecond))
					if rand.IntN(20) == 0 {
						return workspace.RetryAfter(errors.New("later"), time.Millisecond)
					}
					if err := visits.Set(run.State(), 1); err != nil {
						return err
					}
					if rand.IntN(3) == 0 {
						if err := run.Commit(ctx); err != nil {
							return err
						}
						if err := notes.Set(run.State(), []string{run.Message().ID}); err != nil {
							return err
						}
					}
					return ctx.Err()
				},
				Takeover: workspace.TakeoverRestart,
			})
		}
		var mu sync.Mutex
		managers := []*workspace.Manager{start(), start()}
		either := func() *workspace.Manager {
			mu.Lock()
			defer mu.Unlock()
			return managers[rand.IntN(len(managers))]
		}
		ctx, cancel := context.WithCancel(t.Context())
		var replacing, senders sync.WaitGroup
		replacing.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(rand.N(ttl / 2))
				mu.Lock()
				old := managers[0]
				managers = []*workspace.Manager{managers[1], start()}
				mu.Unlock()
				if rand.IntN(2) == 0 {
					soon, cancel := context.WithTimeout(ctx, ttl/4)
					_ = old.Shutdown(soon)
					cancel()
				}
				require.NoError(t, old.Close())
			}
		})
		for i := range users * messages {
			senders.Go(func() {
				user, msg := fmt.Sprint("user", i%users), text(fmt.Sprint(i/users))
				for began := time.Now(); ; time.Sleep(rand.N(100 * time.Millisecond)) {
					require.Less(t, time.Since(began), time.Minute)
					soon, cancel := context.WithTimeout(ctx, rand.N(ttl))
					out, err := either().Handle(soon, user, msg)
					cancel()
					if err == nil && (out.Status == workspace.StatusDone || out.First == workspace.StatusDone) {
						return
					}
				}
			})
		}
		senders.Wait()
		cancel()
		replacing.Wait()
		for i := range users {
			v := view(t, either(), fmt.Sprint("user", i))
			require.Equal(t, messages, len(conversation(t, v)), v.DeadLetters)
			require.Equal(t, messages, visits.Or(v.State(), 0))
			require.Empty(t, v.DeadLetters)
		}
		for _, m := range managers {
			require.NoError(t, m.Close())
		}
	})
}
