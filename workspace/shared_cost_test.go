package workspace_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// meter is a store that counts calls, and that takes as long as a database does
// that syncs a disk for each batch.
type meter struct{ gets, keys, batches atomic.Int64 }

func (c *meter) over(db store.Store) store.Store {
	return fakestore.New(plain{Store: db}, func(ctx context.Context, call fakestore.Call, do func() error) error {
		switch call.Op {
		case "Get":
			c.gets.Add(1)
			c.keys.Add(int64(len(call.Keys)))
			time.Sleep(200 * time.Microsecond)
		case "Batch":
			c.batches.Add(1)
			time.Sleep(2 * time.Millisecond)
		}
		return do()
	})
}

// messageCost is what a number of messages cost, each for one of some threads.
type messageCost struct {
	time                time.Duration
	gets, keys, batches int64
	slowest             time.Duration // the thread that was last
	first               time.Duration // the thread that was first
}

// costOf handles messages for threads at the same time. The threads that write
// change a shared field in each message.
func costOf(t *testing.T, schema *state.Schema, threads, writers, messages int) (cost messageCost) {
	synctest.Test(t, func(t *testing.T) {
		var c meter
		m := open(t, c.over(store.NewMemory()), workspace.Options{Schema: schema, Run: func(_ context.Context, run *workspace.Run) error {
			_, thread := workspace.SplitThread(run.UserID())
			if thread >= fmt.Sprint(writers) {
				return nil
			}
			return sharedCount.Set(run.State(), 1)
		}})
		handle := func(i, n int) {
			_, err := m.Handle(t.Context(), workspace.Thread("ann", fmt.Sprint(i)), hello(fmt.Sprint(n)))
			require.NoError(t, err)
		}
		if schema == sharedFields {
			require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error {
				return sharedTotal.Set(w.State(), 1)
			}))
		}
		for i := range threads { // a first message makes a workspace, which costs more
			handle(i, -1)
		}
		gets, keys, batches, began := c.gets.Load(), c.keys.Load(), c.batches.Load(), time.Now()
		var wg sync.WaitGroup
		ended := make([]time.Duration, threads)
		for i := range threads {
			wg.Go(func() {
				for n := range messages {
					handle(i, n)
				}
				ended[i] = time.Since(began)
			})
		}
		wg.Wait()
		cost = messageCost{time: time.Since(began), gets: c.gets.Load() - gets, keys: c.keys.Load() - keys, batches: c.batches.Load() - batches}
		cost.first, cost.slowest = ended[0], ended[0]
		for _, d := range ended {
			cost.first, cost.slowest = min(cost.first, d), max(cost.slowest, d)
		}
		if writers > 0 {
			require.Equal(t, min(threads, writers)*(messages+1), sharedCount.GetOr(sharedOf(t, m).State(), 0))
		}
	})
	return cost
}

// What threads share costs one read more in each message, and the writes of
// different threads take turns for half of a message only.
func TestSharedFieldsCostLittle(t *testing.T) {
	const messages = 40
	plain := costOf(t, state.MustSchema(ownNote, sharedUnshared), 1, 0, messages)
	unused := costOf(t, sharedFields, 1, 0, messages)
	written := costOf(t, sharedFields, 1, 1, messages)
	all := costOf(t, sharedFields, 8, 8, messages)
	one := costOf(t, sharedFields, 8, 1, messages)
	t.Logf("nothing shared %+v", plain)
	t.Logf("not written    %+v", unused)
	t.Logf("written        %+v", written)
	t.Logf("8 of 8 write   %+v", all)
	t.Logf("1 of 8 writes  %+v", one)
	require.Equal(t, plain.batches, unused.batches)
	require.Equal(t, plain.keys+messages, unused.keys, "the head of the user part")
	require.Equal(t, plain.batches, written.batches, "both heads are in one batch")
	ratio := func(a, b time.Duration) float64 { return float64(a) / float64(b) }
	require.LessOrEqual(t, ratio(written.time, plain.time), 1.3)
	require.GreaterOrEqual(t, 8*ratio(written.time, all.time), 1.3, "the throughput of eight threads that all write")
	require.LessOrEqual(t, ratio(all.slowest, all.first), 1.5, "none starves")
	require.GreaterOrEqual(t, 8*ratio(written.time, one.time), 4.0)
}

// The user part is read in a Get of its own, one for each message. A Manager that
// has written the head of a thread last does not read that again, so that there is
// no Get which could read both. If others have written it, all else costs six
// round trips.
func TestRoundTripsOfSharedFields(t *testing.T) {
	const messages = 40
	trips := func(schema *state.Schema, managers int) (gets, keys, batches int) {
		synctest.Test(t, func(t *testing.T) {
			c := fakestore.Count(plain{Store: store.NewMemory()})
			var all []*workspace.Manager
			for range managers {
				all = append(all, open(t, c, workspace.Options{Schema: schema, Run: func(context.Context, *workspace.Run) error { return nil }}))
			}
			handle := func(n int) {
				_, err := all[n%managers].Handle(t.Context(), workspace.Thread("ann", "1"), hello(fmt.Sprint(n)))
				require.NoError(t, err)
			}
			for n := range managers {
				handle(n)
			}
			synctest.Wait() // the Managers have looked for runs
			gets, keys, batches = c.Calls("Get"), c.Read(), c.Calls("Batch")
			for n := range messages {
				handle(managers + n)
			}
			gets, keys, batches = c.Calls("Get")-gets, c.Read()-keys, c.Calls("Batch")-batches
		})
		t.Logf("%d Managers: %d Gets of %d keys and %d Batches for %d messages", managers, gets, keys, batches, messages)
		return gets, keys, batches
	}
	for managers := range 2 {
		gets, keys, batches := trips(state.MustSchema(ownNote, sharedUnshared), managers+1)
		sharedGets, sharedKeys, sharedBatches := trips(sharedFields, managers+1)
		require.Equal(t, batches, sharedBatches)
		require.Equal(t, gets+messages, sharedGets)
		require.Equal(t, keys+messages, sharedKeys)
	}
}

// sharedUnshared is a field like sharedCount that is not shared.
var sharedUnshared = &state.Field[int]{Name: "count", Handler: state.Sum[int]()}
