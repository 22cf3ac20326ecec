package tool

import (
	"context"
	"runtime/trace"

	"github.com/agentstate/state"
)

// answer makes a call, all but writing its outputs. Fields are injected from
// reads. In an execution trace, the call is a region.
func (t *Tool) answer(ctx context.Context, st, reads *state.State, args state.JSON) answer {
	if trace.IsEnabled() {
		defer trace.StartRegion(ctx, "agentstate.tool "+t.name).End()
	}
	return t.answerCall(ctx, st, reads, args)
}
