package state_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// Many calls of one output, answered one by one, do not make each answer
// dearer.
func TestAnswersOneByOneAreLinear(t *testing.T) {
	effort.Cost(t)
	mallocs := func(n int, order func(i int) int) uint64 {
		calls := make([]state.ToolCall, n)
		results := make([]state.ToolResultMessage, n)
		for i := range calls {
			calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "search", Input: "{}"}
			results[i] = partDone(calls[i])
		}
		st := state.New(nil)
		partOpen(t, st, "1", calls...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range results {
			if err := st.History().Answer(results[order(i)]); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		last, _ := st.History().Last()
		require.Equal(t, results, last.ToolCalls)
		said := state.Messages.Or(st, nil)
		require.Len(t, said, 1+n)
		for i, m := range said[1:] {
			require.Equal(t, state.Message(results[i]), m)
		}
		return after.Mallocs - before.Mallocs
	}
	for name, order := range map[string]func(i int) int{
		"in call order":  func(i int) int { return i },
		"in other order": func(i int) int { return i ^ 1 },
	} {
		few, many := mallocs(200, order), mallocs(2000, order)
		require.LessOrEqual(t, many, 12*few, name)
	}
}
