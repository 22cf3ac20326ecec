package workspace

import (
	"context"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// Hooks observe what a Manager does. Each hook is called after the change was
// stored, without any lock, and at most once: it is not called if the process
// dies in between. The run waits for its hooks, so they should return soon. A
// nil hook is not called.
type Hooks struct {
	// OnRunStart is called when a run begins, and again when it is taken over.
	OnRunStart func(ctx context.Context, run *Run)
	// OnRunComplete is called when a run has ended. err is nil if the run is
	// finished, and otherwise the error with which it has failed.
	OnRunComplete func(ctx context.Context, run *Run, err error)
	// OnRunFailed is called after OnRunComplete when a run has failed.
	OnRunFailed func(ctx context.Context, run *Run, err error)
	// OnMessageDead is called when a message becomes a dead letter because the
	// processes that handled it have died too often.
	OnMessageDead func(ctx context.Context, userID string, msg Message)
	// OnMemorySet is called when an entry of the memory was set.
	OnMemorySet func(ctx context.Context, userID, key string)
	// OnMemoryDelete is called when an entry of the memory was deleted.
	OnMemoryDelete func(ctx context.Context, userID, key string)
}

func (h *Hooks) runStarted(ctx context.Context, run *Run) {
	if h.OnRunStart != nil {
		h.OnRunStart(ctx, run)
	}
}

func (h *Hooks) runCompleted(ctx context.Context, run *Run, err error) {
	if h.OnRunComplete != nil {
		h.OnRunComplete(ctx, run, err)
	}
	if err != nil && h.OnRunFailed != nil {
		h.OnRunFailed(ctx, run, err)
	}
}

// memoryChanged calls the hooks for the effects on the memory.
func (h *Hooks) memoryChanged(ctx context.Context, user string, effects []state.Effect) {
	for _, e := range effects {
		switch {
		case e.Part != document.PartMemory:
		case e.Kind == state.EffectDelete && h.OnMemoryDelete != nil:
			h.OnMemoryDelete(ctx, user, e.Field)
		case e.Kind == state.EffectSet && h.OnMemorySet != nil:
			h.OnMemorySet(ctx, user, e.Field)
		}
	}
}
