package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The bytes that a step writes depend on its changes and not on the length of the
// run. The head stays small, whatever waits and has ended.
func TestBytes(t *testing.T) {
	commits := min(10_000, max(1000, effort.Runs(1000)))
	if underRace() {
		commits = 500
	}
	c := &counter{Store: store.NewMemory()}
	m, held := workspacetest.Hold(t, c, workspace.Options{
		Schema: state.MustSchema(state.AllowUndeclared), TTL: time.Hour, // no renewal of the lease in between
	})
	message := workspace.Message{Content: state.UserText("Write a book, please.")}
	const runs, waiting = 40, 20
	for range runs { // for the head to know many messages
		held.Begin(t, "ann", message).Finish(t)
	}
	run := held.Begin(t, "ann", message)
	for range waiting {
		out, err := m.Submit(t.Context(), "ann", message)
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status)
	}
	written := make([]int64, commits)
	for i := range written {
		require.NoError(t, step(run.State(), i))
		before := c.bytes.Load()
		require.NoError(t, run.Commit(t.Context()))
		written[i] = c.bytes.Load() - before
	}
	records, n := 0, 0
	for r, err := range m.Records(t.Context(), "ann", runs) {
		require.NoError(t, err)
		data, err := json.Marshal(r)
		require.NoError(t, err)
		records += len(data)
		n++
	}
	require.Equal(t, commits, n)
	record := float64(records) / float64(n)
	head, err := store.Get(t.Context(), c, "agent:workspace:ann")
	require.NoError(t, err)
	window := commits / 10
	first, last, all := mean(written[200:200+window]), mean(written[commits-window:]), mean(written)
	t.Logf("a commit with a record of %.0f bytes writes %.0f bytes, %.0f in the beginning and %.0f in the end; the head has %d", record, all, first, last, len(head.Value))
	require.InDelta(t, 1024, record, 300)
	require.LessOrEqual(t, last, 1.2*first)
	require.LessOrEqual(t, all, record+6<<10)
	// A list of records grows by up to three names per power of four.
	require.LessOrEqual(t, len(head.Value), 1536)
	run.Finish(t)
}

// counter is a store that counts the bytes of the values that are put.
type counter struct {
	store.Store
	bytes, reads, writes atomic.Int64
}

func (c *counter) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, keys...)
}

func (c *counter) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	c.writes.Add(1)
	for _, w := range writes {
		c.bytes.Add(int64(len(w.Value)))
	}
	return c.Store.Batch(ctx, writes)
}

// step does what an agent does between two commits: it appends the result of a
// call of the model and sets three fields.
func step(st *state.State, i int) error {
	err := st.History().Append(state.InferenceResult{
		Agent: "writer", Prompt: prompt, History: state.Messages.GetOr(st, nil),
		Output: []state.Message{state.AssistantText(fmt.Sprintf("Chapter %d. %s", i, strings.Repeat("And so on. ", 40)))},
	})
	for _, key := range []string{"chapter", "page", "mood"} {
		if err == nil {
			err = st.KV().Set(key, fmt.Sprint(key, " ", i))
		}
	}
	return err
}

var prompt = []state.Message{state.SystemText("You write books.")}

func mean(numbers []int64) float64 {
	var sum int64
	for _, n := range numbers {
		sum += n
	}
	return float64(sum) / float64(len(numbers))
}
