package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

func TestJournalsOfAllAgentsHaveOneBudget(t *testing.T) {
	effort.Cost(t)
	for name, tt := range map[string]struct {
		value  func(i int) any
		writes int
		limit  int
	}{
		"small values": {func(i int) any { return map[string]any{"n": i} }, 4096, 16 << 20},
		"large values": {func(i int) any { return string(make([]byte, 100_000+i)) }, 40, 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 100)
			st := state.New(c.schema)
			grew := ruleHeap(func() any {
				for i := range tt.writes {
					for _, name := range c.names {
						require.NoError(t, st.KV().Set(name, tt.value(i)))
					}
				}
				return st
			})
			require.Less(t, grew, tt.limit)
		})
	}
}
