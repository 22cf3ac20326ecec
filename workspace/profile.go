package workspace

import (
	"context"
	"runtime/pprof"
	"runtime/trace"

	"github.com/agentstate/state/internal/profile"
)

// newProfiled returns the context of a run for profiles and execution traces,
// in which the run is a task until end is called.
func (m *Manager) newProfiled(ctx context.Context) (profiled context.Context, end func()) {
	end = func() {}
	if trace.IsEnabled() {
		var task *trace.Task
		ctx, task = trace.NewTask(ctx, "agentstate.run")
		end = task.End
	}
	if m.opts.ProfileLabels {
		ctx = pprof.WithLabels(ctx, pprof.Labels(profile.Label, profile.Run))
	}
	return ctx, end
}

// callProfiled calls the function that handles a run. The goroutine has the
// profile labels of the run meanwhile.
func (r *Run) callProfiled(fn func(ctx context.Context, run *Run) error) (err error) {
	if !r.m.opts.ProfileLabels {
		return fn(r.ctx, r)
	}
	// Do returns to the labels of its context: of the parent, not of the run.
	pprof.Do(r.parent, pprof.Labels(profile.Label, profile.Run), func(context.Context) { err = fn(r.ctx, r) })
	return err
}

// startCommitRegion makes a commit a region of an execution trace.
func startCommitRegion(ctx context.Context) *trace.Region {
	return trace.StartRegion(ctx, "agentstate.commit")
}
