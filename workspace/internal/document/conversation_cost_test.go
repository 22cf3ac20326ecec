package document

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort"
)

// The cost of a commit, in bytes and in work, is that of what it adds. It
// depends neither on the length of the run nor on results that hold the whole
// conversation.
func TestLongRunStaysCheap(t *testing.T) {
	effort.Cost(t)
	const steps = 10_000
	d := New()
	st := load(t, d)
	size := map[int]int{}
	var work uint64
	for i := range steps {
		saved := st.Snapshot()
		text := "It is " + fmt.Sprintf("%05d", i)
		if i%500 == 7 {
			text = "ok" // a text that was used before
		}
		if i%100 == 0 {
			require.NoError(t, st.History().Append(state.InferenceResult{
				ID: fmt.Sprintf("%05d", i), Prompt: []state.Message{state.SystemText("You help.")},
				History: state.Messages.GetOr(st, nil), Output: []state.Message{state.AssistantText(text)},
				CreatedAt: time.Unix(1_800_000_000, 0).UTC(),
			}))
		} else {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(text)}))
		}
		now := st.Snapshot()
		step := func() {
			n, _ := commit(t, d, saved, now)
			size[i/1_000] += n
		}
		if i < steps-5 {
			step()
		} else {
			work = max(work, cost.Allocated(step))
		}
	}
	require.Less(t, float64(size[steps/1_000-1]), 1.2*float64(size[0]))
	require.Less(t, work, uint64(32<<10))
	require.Equal(t, steps+1, d.count(PartMessage))
	again := load(t, d)
	require.Equal(t, raws(state.Messages.GetOr(st, nil)), raws(state.Messages.GetOr(again, nil)))
	want, _ := st.History().Last()
	got, _ := again.History().Last()
	require.Equal(t, raws(want.History), raws(got.History))
}
