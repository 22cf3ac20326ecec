package processes

import (
	"testing"

	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
)

// The loops of the tests in memory, on SQLite: their processes die at every point.
func TestLoopSurvivesCrashes(t *testing.T) {
	handles := func(t testing.TB) func() store.Store {
		address := sqlite(t)
		return func() store.Store { return open(t, address) }
	}
	for part, tests := range map[string]map[string]crash.Test{
		"one agent": looptest.OneAgent(), "two agents": looptest.TwoAgents(),
		"no model": looptest.ModelOutages(looptest.OverOpenAI), "no store": looptest.StoreOutages(handles),
	} {
		t.Run(part, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test.Pairs = -1
					if test.OpenStore == nil {
						test.OpenStore = handles
					}
					test.Run(t)
				})
			}
		})
	}
}
