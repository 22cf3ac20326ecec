package workspace

import (
	"context"
	"runtime/trace"
)

// newTraceTask returns the context of a run, which is a task of an execution
// trace until end is called.
func newTraceTask(ctx context.Context) (traced context.Context, end func()) {
	if !trace.IsEnabled() {
		return ctx, func() {}
	}
	ctx, task := trace.NewTask(ctx, "agentstate.run")
	return ctx, task.End
}

// startCommitRegion makes a commit a region of an execution trace.
func startCommitRegion(ctx context.Context) *trace.Region {
	return trace.StartRegion(ctx, "agentstate.commit")
}
