package tool_test

import (
	"testing"

	"github.com/agentstate/state/tool"
)

// benchPlan is the row tool-plan: the plan of a step of 32 calls with chains,
// cycles and a barrier.
func benchPlan(b *testing.B) {
	b.Run("subject", func(b *testing.B) {
		const part = ":a :b a:c b:c c:d :e e:f f: :g g:g g:g h:i i:h :j jk:l "
		tools, calls := step(b, part+"- "+part+":k", idle)
		if len(calls) != 32 {
			b.Fatal("a step of ", len(calls), " calls")
		}
		b.ReportAllocs()
		for b.Loop() {
			tool.Plan(tools, calls)
		}
	})
}
