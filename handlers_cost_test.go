package state_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// A field that keeps its last elements must not keep the others alive, whatever
// its snapshots and forks show.
func TestKeepLastReleasesWhatItDrops(t *testing.T) {
	effort.Cost(t)
	blobs := &state.Field[[]keptBlob]{Name: "blobs", Handler: state.KeepLast[[]keptBlob](2)}
	texts := &state.Field[[]string]{Name: "texts", Handler: state.KeepLast[[]string](2)}
	schema := state.MustSchema(blobs, texts, state.Limits{Journal: 1})
	for name, write := range map[string]func(st *state.State, n int) error{
		"structs": func(st *state.State, n int) error {
			return blobs.Set(st, []keptBlob{{strings.Repeat(string(rune('a'+n%26)), 1<<20)}})
		},
		"strings": func(st *state.State, n int) error {
			return texts.Set(st, []string{strings.Repeat(string(rune('a'+n%26)), 1<<20)})
		},
		"several at once": func(st *state.State, n int) error {
			return texts.Set(st, []string{"small", strings.Repeat(string(rune('a'+n%26)), 1<<20), "small", ""})
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(schema)
			before := liveHeap()
			live := func() int { return int(liveHeap()-before) >> 20 }
			for n := range 255 {
				require.NoError(t, write(st, n))
			}
			require.LessOrEqual(t, live(), 8, "MB of a state that shows 2, with its journal")
			snapshot := st.Snapshot()
			for n := range 255 {
				require.NoError(t, write(st, n))
			}
			require.LessOrEqual(t, live(), 16, "MB with a snapshot")
			for range 20 {
				fork := st.Fork()
				for n := range 5 { // a fork keeps its writes until it is joined
					require.NoError(t, write(fork, n))
				}
				require.NoError(t, st.Join(fork))
			}
			require.NoError(t, write(st, 0))
			require.LessOrEqual(t, live(), 32, "MB with what the last join left in the journal")
			runtime.KeepAlive(snapshot)
			runtime.KeepAlive(st)
		})
	}
}
