package crash_test

import (
	"testing"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/store"
)

func TestLoopSurvivesCrashes(t *testing.T) {
	for name, test := range looptest.OneAgent() {
		t.Run(name, test.Run)
	}
}

func TestLoopOfTwoAgentsSurvivesCrashes(t *testing.T) {
	for name, test := range looptest.TwoAgents() {
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
