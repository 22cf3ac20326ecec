package processes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A message costs two writes and hardly a read, and its cost does not grow with
// the messages before it.
func TestCost(t *testing.T) {
	effort.SkipShort(t)
	c := &counter{Store: store.NewMemory()}
	m, err := workspace.Open(t.Context(), batchCounter{c}, &workspace.Options{Run: func(_ context.Context, r *workspace.Run) error {
		r.SetReply("Good evening, Ann.")
		return r.State().History().Append(state.InferenceResult{
			Agent: "porter", History: state.Messages.Or(r.State(), nil), Output: []state.Message{state.AssistantText("What can I do for you?")},
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
	require.LessOrEqual(t, after, 1000.0, "allocations")
	require.LessOrEqual(t, after, before*1.1, "allocations")
	require.NoError(t, m.Close())
}
