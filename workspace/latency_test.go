package workspace_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// withLatency returns a store whose answers take time. It makes one write at a
// time, and reports no changes.
func withLatency(db store.Store, delay func(key string, writes bool) time.Duration) store.Store {
	return fakestore.New(plain{Store: db}, func(ctx context.Context, c fakestore.Call, do func() error) error {
		err := do()
		switch c.Op {
		case "Get":
			if late := nap(ctx, delay(c.Keys[0], false)); late != nil {
				return late
			}
		case "Batch":
			if nap(ctx, delay(c.Writes[0].Key, true)) != nil {
				return &store.Error{Store: "latency", Op: "write", Key: c.Writes[0].Key, Err: store.ErrUnknownOutcome}
			}
		}
		return err
	})
}

func nap(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Handle hears of its message from the feed of the user. What the feed has read
// before the message was accepted does not know it.
func TestHandleOverASlowStore(t *testing.T) {
	const head = "agent:workspace:ann"
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		first := open(t, db, workspace.Options{TTL: time.Minute, Run: func(context.Context, *workspace.Run) error {
			time.Sleep(time.Minute)
			return nil
		}})
		var mu sync.Mutex
		slow, accepted := false, false
		var told time.Time // when the feed has told what it has read slowly
		second := open(t, withLatency(db, func(key string, writes bool) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case writes:
				accepted = accepted || key == head
			case slow && strings.HasPrefix(key, "agent:blob:ann/"): // how message 1 has ended
				slow = false
				told = time.Now().Add(10 * time.Second)
				return 10 * time.Second
			case accepted && key == head:
				return max(0, time.Until(told.Add(time.Millisecond)))
			}
			return 0
		}), workspace.Options{TTL: time.Minute, Run: runNothing})

		for _, id := range []string{"1", "2"} {
			_, err := first.Submit(t.Context(), "ann", text(id))
			require.NoError(t, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			out, err := second.Await(t.Context(), "ann", "1")
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status)
		})
		time.Sleep(time.Minute - time.Second)
		mu.Lock()
		slow = true
		mu.Unlock()
		time.Sleep(5 * time.Second)
		mu.Lock()
		require.False(t, slow, "the feed reads how the run has ended")
		mu.Unlock()
		out, err := second.Handle(t.Context(), "ann", text("3"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		wg.Wait()
		require.NoError(t, first.Close())
		require.NoError(t, second.Close())
	})
}

// A message whose holder is too slow for its heartbeats was accepted all the same,
// and another one handles it.
func TestSubmitOverASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		db := store.NewMemory()
		start := time.Now()
		slow := withLatency(db, func(string, bool) time.Duration {
			if time.Since(start) > 11*time.Second { // the message is accepted
				return 20 * time.Second
			}
			return 4 * time.Second
		})
		first := open(t, slow, workspace.Options{TTL: ttl, Run: runNothing})
		out, err := first.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusStarted, out.Status)
		second := open(t, db, workspace.Options{TTL: ttl, Run: runNothing})
		out, err = second.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.NoError(t, second.Close())
		closeEarly(t, first)
	})
}

// What is asked of a run during its commit waits for the store. In virtual time
// that must be a wait for a channel, or the store never answers.
func TestRunIsAskedDuringCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := withLatency(store.NewMemory(), func(string, bool) time.Duration { return time.Second })
		m := open(t, db, workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			if err := run.Memory().Set("order", "W1"); err != nil {
				return err
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(time.Second / 2)
				run.SetReply(strconv.Itoa(run.Step()))
			})
			err := run.Commit(ctx)
			wg.Wait()
			return err
		}})
		reply, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.Equal(t, "1", reply.Reply)
	})
}
