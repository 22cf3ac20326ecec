package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// A schema with many agents or fields is made in linear time. Quadratic time
// showed as allocations: a set for each walk up the hierarchy, and a list of
// names for each question whether it has one.
func TestSchemaOfManyAgentsIsMadeInLinearTime(t *testing.T) {
	effort.Cost(t)
	agent := func(i int) string { return fmt.Sprint("a", i) }
	for name, parts := range map[string]func(n int) []state.Part{
		"flat": func(n int) []state.Part {
			return []state.Part{state.Team{"lead": names(n, agent)}, &state.Field[int]{Name: "x", Read: state.Public}}
		},
		"chain": func(n int) []state.Part {
			return []state.Part{chain(n, agent), &state.Field[int]{Name: "x", Read: state.Public}}
		},
		"a private field each": func(n int) []state.Part {
			parts := []state.Part{state.Team{"lead": names(n, agent)}}
			for i := range n {
				parts = append(parts, &state.Field[int]{Name: fmt.Sprint("f", i), Owner: agent(i), Read: state.Only("lead")})
			}
			return parts
		},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				p := parts(n)
				return testing.AllocsPerRun(1, func() { state.MustSchema(p...) })
			}
			require.Less(t, cost(4000), 5*cost(1000))
		})
	}
}
