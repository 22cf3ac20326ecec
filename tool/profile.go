package tool

import (
	"context"
	"runtime/pprof"
	"runtime/trace"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/profile"
)

// answer makes a call, all but writing its outputs. Fields are injected from
// reads. If the context has the profile label of runs, the goroutine has a label
// with the name of the tool meanwhile. In an execution trace, the call is a
// region.
func (t *Tool) answer(ctx context.Context, st, reads *state.State, args state.JSON) answer {
	if _, labelled := pprof.Label(ctx, profile.Label); !labelled && !trace.IsEnabled() {
		return t.answerCall(ctx, st, reads, args)
	}
	return t.answerProfiled(ctx, st, reads, args)
}

func (t *Tool) answerProfiled(ctx context.Context, st, reads *state.State, args state.JSON) (a answer) {
	defer trace.StartRegion(ctx, "agentstate.tool "+t.name).End()
	if _, labelled := pprof.Label(ctx, profile.Label); !labelled {
		return t.answerCall(ctx, st, reads, args)
	}
	pprof.Do(ctx, pprof.Labels("tool", t.name), func(ctx context.Context) {
		a = t.answerCall(ctx, st, reads, args)
	})
	return a
}
