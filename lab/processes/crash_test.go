package processes

import (
	"testing"

	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
)

// The loops whose processes die at every point in memory, in package crash, do so
// on SQLite.
func TestLoopSurvivesCrashes(t *testing.T) {
	handles := func(t testing.TB) func() store.Store {
		address := sqlite(t)
		return func() store.Store { return open(t, address) }
	}
	parts := map[string]map[string]crash.Test{"two agents": looptest.TwoAgents()}
	if !underRace() { // which SQLite takes long for, and which sees the same loops in memory
		parts["one agent"] = looptest.OneAgent()
	}
	if !underRace() && !testing.Short() {
		parts["no model"] = looptest.ModelOutages(looptest.OverOpenAI)
		parts["no store"] = looptest.StoreOutages(handles)
	}
	for part, tests := range parts {
		for name, test := range tests {
			t.Run(part+"/"+name, func(t *testing.T) {
				t.Parallel()
				test.Pairs = -1
				if test.OpenStore == nil {
					test.OpenStore = handles
				}
				test.Run(t)
			})
		}
	}
}
