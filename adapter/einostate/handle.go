package einostate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/cloudwego/eino/adk"
)

// Handle returns a function for [workspace.Options.Run] that lets the agent of a
// runner answer the message of a run. The agent gets the conversation, and its
// last text is the reply. Its agents have [Middleware], which commits their
// steps: after the death of the process, the agent goes on with the conversation
// that was committed.
//
// An interrupt suspends the calls in which it has happened, and ends the run. A
// message with Answers for such calls resumes the agent where it was, if the
// runner has [Checkpoints] and the schema CheckpointField, and otherwise with
// the conversation. The answer is the result of the call: the tool is not called
// again. An interrupt outside of a call that is in the conversation is an error.
func Handle(r *adk.Runner) func(ctx context.Context, run *workspace.Run) error {
	return func(ctx context.Context, run *workspace.Run) error {
		checkpoint, events, err := start(ctx, r, run)
		if err != nil {
			return fmt.Errorf("einostate: %w", err)
		}
		var interrupts []*adk.InterruptCtx
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			err = errors.Join(err, event.Err)
			if event.Action != nil && event.Action.Interrupted != nil {
				interrupts = event.Action.Interrupted.InterruptContexts
			}
		}
		if err != nil {
			return fmt.Errorf("einostate: %w", err)
		}
		if last, ok := run.State().History().Last(); ok {
			for _, m := range last.Output {
				if text, ok := m.(state.TextMessage); ok {
					run.SetReply(text.Text())
				}
			}
		}
		return suspend(ctx, run, checkpoint, interrupts)
	}
}

// start resumes the agent from the checkpoint of a call that the message
// answers, and runs it with the conversation if there is none. It returns the id
// for further checkpoints.
func start(ctx context.Context, r *adk.Runner, run *workspace.Run) (string, *adk.AsyncIterator[*adk.AgentEvent], error) {
	answers := map[string]any{}
	for _, m := range run.Message().Answers {
		answers[m.Call().ID] = m.Text()
	}
	all := CheckpointField.Or(run.State(), nil)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		targets := map[string]any{}
		for call, interrupt := range all[id].Interrupts {
			if text, ok := answers[call]; ok {
				targets[interrupt] = text
			}
		}
		if len(targets) == 0 {
			continue
		}
		// A later process goes on with what this one commits.
		if err := (checkpoints{}).Delete(ctx, id); err != nil {
			return "", nil, err
		}
		ctx = context.WithValue(ctx, resumedKey{}, all[id].Data)
		events, err := r.ResumeWithParams(ctx, id, &adk.ResumeParams{Targets: targets})
		return id, events, err
	}
	msgs, err := FromMessages(state.Messages.Or(run.State(), nil)...)
	if err != nil {
		return "", nil, err
	}
	return run.ID(), r.Run(ctx, msgs, adk.WithCheckPointID(run.ID())), nil
}

// suspend suspends the calls in which interrupts have happened, and notes them
// in the checkpoint. It deletes checkpoints of calls that wait no longer.
func suspend(ctx context.Context, run *workspace.Run, checkpoint string, interrupts []*adk.InterruptCtx) error {
	calls := map[string]string{}
	for _, in := range interrupts {
		found := false
		for _, at := range in.Address { // the calls around an agent wait with its own
			if at.Type == adk.AddressSegmentTool && run.Suspend(at.SubID) == nil {
				found, calls[at.SubID] = true, in.ID
			}
		}
		if !found {
			return fmt.Errorf("einostate: interrupt at %s: no call of the conversation is open there", in.Address)
		}
	}
	all := CheckpointField.Or(run.State(), nil)
	if len(all) == 0 {
		return nil
	}
	waiting := map[string]bool{}
	for _, c := range run.Suspended() {
		waiting[c.ID] = true
	}
	return change(ctx, func(all map[string]Checkpoint) {
		if c, ok := all[checkpoint]; ok && len(calls) > 0 {
			c.Interrupts = calls
			all[checkpoint] = c
		}
		maps.DeleteFunc(all, func(_ string, c Checkpoint) bool {
			for call := range c.Interrupts {
				if waiting[call] {
					return false
				}
			}
			return true
		})
	})
}
