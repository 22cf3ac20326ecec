package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// Popped results are released by bytes, not only by number.
func TestPoppedResultsAreReleased(t *testing.T) {
	effort.Cost(t)
	grew := ruleHeap(func() any {
		st := state.New(state.MustSchema(state.Limits{Journal: 1}))
		for i := range 100 {
			require.NoError(t, st.History().Append(state.InferenceResult{ID: fmt.Sprint(i)}))
		}
		for i := range 90 {
			large := state.SystemText(fmt.Sprint(i, strings.Repeat("x", 1<<20)))
			require.NoError(t, st.History().Append(state.InferenceResult{Prompt: []state.Message{large}, Raw: strings.Repeat("y", 1<<20)}))
			_, _, err := st.History().Pop()
			require.NoError(t, err)
		}
		require.Equal(t, 100, st.History().Len())
		return st
	})
	require.Less(t, grew, 12<<20, "91 MB were kept; the journal keeps 8 MB")
}
