package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A Manager reads the heads of all workspaces that somebody follows together, if its
// store reports no changes.
func TestWatchOfManyWorkspaces(t *testing.T) {
	const watched, idle = 600, 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var reads, keys atomic.Int64
		db := store.NewMemory()
		m := open(t, fakestore.New(fakestore.Bare{Store: db}, func(_ context.Context, c fakestore.Call, do func() error) error {
			if c.Op == "Get" {
				reads.Add(1)
				keys.Add(int64(len(c.Keys)))
			}
			return do()
		}), workspace.Options{Run: slow})
		other := open(t, db, workspace.Options{Run: slow})

		ctx, cancel := context.WithCancel(t.Context())
		told := make([]chan uint64, watched)
		for i := range watched {
			told[i] = make(chan uint64, 100)
			go func() {
				defer close(told[i])
				for e, err := range m.Watch(ctx, fmt.Sprint("user", i)).AsHost() {
					if err == nil {
						told[i] <- e.Version
					}
				}
			}()
		}
		synctest.Wait()
		for i := range watched {
			require.Zero(t, <-told[i])
		}

		reads.Store(0)
		keys.Store(0)
		time.Sleep(idle)
		require.LessOrEqual(t, reads.Load(), int64(idle/(250*time.Millisecond)*3), "reads of %d keys", keys.Load())

		_, err := other.Handle(t.Context(), "user7", text("1"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		cancel()
		var last uint64
		for version := range told[7] {
			last = version
		}
		require.NotZero(t, last)
		for i := range watched {
			for version := range told[i] {
				require.Failf(t, "told", "user%d has version %d", i, version)
			}
		}
		require.NoError(t, other.Close())
		require.NoError(t, m.Close())
	})
}

// A follower hears of a store that does not come back, and of what has changed in one
// that does.
func TestWatchAmongFailingReads(t *testing.T) {
	for name, returns := range map[string]bool{"comes back": true, "stays away": false} {
		synctest.Test(t, func(t *testing.T) {
			var away atomic.Bool
			db := store.NewMemory()
			m := open(t, fakestore.New(fakestore.Bare{Store: db}, func(_ context.Context, c fakestore.Call, do func() error) error {
				if c.Op == "Get" && away.Load() {
					return &store.Error{Store: "fake", Op: "get", Key: c.Keys[0], Err: errors.New("the server is away")}
				}
				return do()
			}), workspace.Options{Run: slow, StoreTimeout: 10 * time.Second})
			other := open(t, db, workspace.Options{Run: slow})
			ctx, cancel := context.WithCancel(t.Context())
			var last uint64
			ended := make(chan error, 1)
			go func() {
				var failed error
				for e, err := range m.Watch(ctx, "ann").AsHost() {
					if failed = err; err == nil {
						last = e.Version
					}
				}
				ended <- failed
			}()
			time.Sleep(time.Second)
			away.Store(true)
			_, err := other.Handle(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
			away.Store(!returns)
			time.Sleep(30 * time.Second)
			cancel()
			if err := <-ended; returns {
				require.NoError(t, err, name)
				require.NotZero(t, last, name)
			} else {
				require.ErrorContains(t, err, "the server is away", name)
			}
			require.NoError(t, other.Close())
			away.Store(false)
			require.NoError(t, m.Close())
		})
	}
}
