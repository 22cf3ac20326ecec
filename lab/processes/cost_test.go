package processes

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A message costs two writes and hardly a read, and its cost does not grow with
// the messages before it.
func TestCost(t *testing.T) {
	effort.SkipShort(t)
	c := &counter{Store: store.NewMemory()}
	m, err := workspace.Open(t.Context(), c, &workspace.Options{Run: func(_ context.Context, r *workspace.Run) error {
		r.SetReply("Good evening, Ann.")
		return r.State().History().Append(state.InferenceResult{
			Agent: "porter", History: state.Messages.GetOr(r.State(), nil), Output: []state.Message{state.AssistantText("What can I do for you?")},
		})
	}})
	require.NoError(t, err)
	handle := func() {
		_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("Good evening! I have lost my key.")})
		require.NoError(t, err)
	}
	for range 200 {
		handle()
	}
	const n = 520 // ten compactions
	reads, writes, bytes := c.reads.Load(), c.writes.Load(), c.bytes.Load()
	for range n {
		handle()
	}
	require.LessOrEqual(t, float64(c.reads.Load()-reads)/n, 0.1, "reads")
	require.LessOrEqual(t, float64(c.writes.Load()-writes)/n, 2.1, "writes")
	require.LessOrEqual(t, float64(c.bytes.Load()-bytes)/n, 5000.0, "bytes")
	before := testing.AllocsPerRun(200, handle)
	for range 2000 {
		handle()
	}
	after := testing.AllocsPerRun(200, handle)
	t.Logf("%d bytes, %v and %v allocations", (c.bytes.Load()-bytes)/(n+2400), before, after)
	require.LessOrEqual(t, after, 560.0, "allocations")
	require.LessOrEqual(t, after, before*1.1, "allocations")
	require.NoError(t, m.Close())
}

// Without limits, a message costs the same however long the conversation and
// the history are, even if each result holds the whole conversation.
func TestCostWithoutLimits(t *testing.T) {
	effort.SkipShort(t)
	for name, whole := range map[string]bool{"own messages": false, "whole conversation": true} {
		t.Run(name, func(t *testing.T) {
			c := &counter{Store: store.NewMemory()}
			handle, closeAll := endless(t, c, whole)
			runs := 0
			// Some runs compact, and the least is that of the others.
			measure := func(until int) (allocs, bytes float64) {
				for ; runs < until; runs++ {
					handle()
				}
				allocs, bytes = math.Inf(1), math.Inf(1)
				for range 20 {
					before := c.bytes.Load()
					allocs = min(allocs, testing.AllocsPerRun(1, handle))
					bytes = min(bytes, float64(c.bytes.Load()-before)/2) // it calls it twice
					runs += 2
				}
				return allocs, bytes
			}
			allocs, bytes := measure(200)
			manyAllocs, manyBytes := measure(2000)
			t.Logf("%v allocations, later %v; %v bytes, later %v", allocs, manyAllocs, bytes, manyBytes)
			require.LessOrEqual(t, manyAllocs, allocs*1.1, "allocations")
			require.LessOrEqual(t, manyBytes, bytes*1.2, "bytes")
			closeAll()
		})
	}
}

// endless opens a Manager without limits on messages and results. Each call of
// handle adds two messages and a result.
func endless(t testing.TB, db store.Store, wholeHistory bool) (handle, closeAll func()) {
	run := func(_ context.Context, r *workspace.Run) error {
		answer := state.AssistantText("What can I do for you, " + r.ID() + "?")
		result := state.InferenceResult{Agent: "porter", Prompt: prompt, Output: []state.Message{answer}}
		if wholeHistory {
			result.History = state.Messages.GetOr(r.State(), nil)
		}
		if err := state.Messages.Set(r.State(), []state.Message{answer}); err != nil {
			return err
		}
		return r.State().History().Append(result)
	}
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Run: run, KeepMessages: -1, KeepResults: -1})
	require.NoError(t, err)
	n := 0
	handle = func() {
		n++
		content := state.UserText(fmt.Sprintf("Good evening! I have lost my key number %d.", n))
		_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: content})
		require.NoError(t, err)
	}
	return handle, func() { require.NoError(t, m.Close()) }
}

// Loading a workspace costs a few allocations for each message.
func TestCostOfLoading(t *testing.T) {
	effort.SkipShort(t)
	const n = 2000
	db, opts := store.NewMemory(), &workspace.Options{KeepMessages: -1}
	m, err := workspace.Open(t.Context(), db, opts)
	require.NoError(t, err)
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		return state.Messages.Set(w.State(), manyMessages(n))
	}))
	require.NoError(t, m.Close())
	allocs := testing.AllocsPerRun(3, func() {
		m, err := workspace.Open(t.Context(), db, opts)
		require.NoError(t, err)
		_, err = m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.NoError(t, m.Close())
	})
	t.Logf("%v allocations for each message", allocs/n)
	require.LessOrEqual(t, allocs/n, 6.0)
}

func manyMessages(n int) []state.Message {
	msgs := make([]state.Message, n)
	for i := range msgs {
		msgs[i] = state.UserText(fmt.Sprintf("Message %d, which says nothing but this.", i))
	}
	return msgs
}
