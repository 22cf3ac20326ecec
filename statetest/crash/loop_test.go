package crash_test

import (
	"cmp"
	"testing"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
)

func TestLoopSurvivesCrashes(t *testing.T) { runEach(t, looptest.OneAgent()) }

func TestLoopOfTwoAgentsSurvivesCrashes(t *testing.T) { runEach(t, looptest.TwoAgents()) }

// runEach runs tests with each single fault, and with as many pairs as STATE_EFFORT says.
func runEach(t *testing.T, tests map[string]crash.Test) {
	for name, test := range tests {
		test.Pairs = cmp.Or(test.Pairs, effort.Runs(100))
		t.Run(name, test.Run)
	}
}

func TestLoopSurvivesOutagesOfTheModel(t *testing.T) {
	effort.SkipShort(t)
	for vendor, ask := range map[string]looptest.Asker{
		"OpenAI": looptest.OverOpenAI, "Anthropic": looptest.OverAnthropic, "Ask": looptest.ByAsk,
	} {
		for name, test := range looptest.ModelOutages(ask) {
			t.Run(vendor+"/"+name, test.Run)
		}
	}
}

func TestLoopSurvivesOutagesOfTheStore(t *testing.T) {
	effort.SkipShort(t)
	for name, test := range looptest.StoreOutages(func(testing.TB) func() store.Store {
		db := store.NewMemory()
		return func() store.Store { return db.Open() }
	}) {
		t.Run(name, test.Run)
	}
}
