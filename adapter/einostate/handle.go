package einostate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/tool"
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
// message with Decisions about such calls resumes the agent where it was, if the
// runner has [Checkpoints] and the schema CheckpointField, and otherwise with
// the conversation. An answer is the result of a call of [Tools], which is not
// made again. Other tools of a resumed agent are called again, with the id of
// the call and the answer as their resume data, a string: what they return is
// the result. An approval resumes them with the text "approved"; other arguments
// than those of the model are an error, and the call waits. A refusal resumes
// the agent, and is the result: no tool is called. What was said while the
// call waited is in the prompt of the resumed agent, in front of the call. An
// interrupt outside of a call that is in the conversation is an error, and so is a
// runner with Checkpoints and a schema without CheckpointField, before a model is
// asked.
//
// onEvent is called with each event of the agent, such as to show its text while
// it is streamed; nil stands for none. The agent waits for it.
func Handle(
	r *adk.Runner, onEvent func(ctx context.Context, run *workspace.Run, event *adk.AgentEvent),
) func(ctx context.Context, run *workspace.Run) error {
	needsField := keeps(r)
	return func(ctx context.Context, run *workspace.Run) error {
		if needsField {
			if err := checkSchema(run.State()); err != nil {
				return fmt.Errorf("einostate: %w", err)
			}
		}
		if err := closeTaken(ctx, run); err != nil {
			return fmt.Errorf("einostate: %w", err)
		}
		decided, err := decidedCheckpoints(run)
		if err != nil {
			return fmt.Errorf("einostate: %w", err)
		}
		if len(decided) == 0 {
			decided = []*resumption{{id: run.ID()}}
		}
		for i, at := range decided {
			if err := at.play(ctx, r, run, onEvent, decided[i+1:]); err != nil {
				return fmt.Errorf("einostate: %w", err)
			}
		}
		return nil
	}
}

// play lets the agent go on, or begin, until it ends or is interrupted. Those that
// are resumed next keep their checkpoints.
func (at *resumption) play(
	ctx context.Context, r *adk.Runner, run *workspace.Run, onEvent func(context.Context, *workspace.Run, *adk.AgentEvent),
	next []*resumption,
) error {
	events, err := at.start(ctx, r, run)
	if err != nil {
		return err
	}
	var interrupts []*adk.InterruptCtx
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if onEvent != nil {
			onEvent(ctx, run, event)
		}
		err = errors.Join(err, event.Err)
		if event.Action != nil && event.Action.Interrupted != nil {
			interrupts = event.Action.Interrupted.InterruptContexts
		}
	}
	if err != nil && !errors.Is(err, tool.ErrSuspended) { // by a call that a process has left, and that eino did not make
		return err
	}
	if last, ok := run.State().History().Last(); ok {
		for _, m := range last.Output {
			if text, ok := m.(state.TextMessage); ok {
				run.SetReply(text.Text())
			}
		}
	}
	return at.suspend(ctx, run, interrupts, next)
}

// decidedCheckpoints returns where agents go on because of what the message
// decides: wherever eino has to make a call, or else at one of the checkpoints, as
// all other results are in the conversation.
func decidedCheckpoints(run *workspace.Run) (decided []*resumption, err error) {
	var other *resumption
	decisions := map[string]tool.Decision{}
	for _, d := range run.Message().Decisions {
		decisions[d.Key] = d
	}
	all := CheckpointField.GetOr(run.State(), nil)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		nested := slices.ContainsFunc(slices.Collect(maps.Values(all[id].Interrupts)), func(in Interrupt) bool {
			return in.Outer
		})
		targets, made := map[string]any{}, nested
		for key, in := range all[id].Interrupts {
			if len(key) < minKey {
				return nil, fmt.Errorf("checkpoint %s: an earlier version of this package has made it, whose calls have no keys: delete it", id)
			}
			switch d, ok := decisions[key]; {
			case !ok:
			case d.Input != "" && in.Foreign:
				return nil, fmt.Errorf("the call %s cannot be made with other arguments: eino makes it with those of its checkpoint", key)
			case d.Kind == tool.DecisionAnswer:
				targets[in.ID] = d.Result.Text()
				made = made || in.Foreign
			case d.Kind == tool.DecisionRefuse:
				targets[in.ID] = "refused"
			case in.Foreign || nested: // else its agent makes it before it asks its model
				targets[in.ID], made = "approved", true
			}
		}
		switch at := (&resumption{id: id, checkpoint: all[id], targets: targets}); {
		case len(targets) == 0:
		case made:
			decided = append(decided, at)
		case other == nil:
			other = at
		}
	}
	if decided == nil && other != nil {
		return []*resumption{other}, nil
	}
	return decided, nil
}

// start resumes the agent from its checkpoint, or runs it with the conversation.
func (at *resumption) start(
	ctx context.Context, r *adk.Runner, run *workspace.Run,
) (*adk.AsyncIterator[*adk.AgentEvent], error) {
	if at.targets == nil {
		msgs, err := FromMessages(state.Messages.GetOr(run.State(), nil)...)
		if err != nil {
			return nil, err
		}
		return r.Run(ctx, msgs, adk.WithCheckPointID(at.id)), nil
	}
	if err := at.prepare(run); err != nil {
		return nil, err
	}
	if err := take(ctx, at.id); err != nil {
		return nil, err
	}
	return r.ResumeWithParams(context.WithValue(ctx, resumptionKey{}, at), at.id, &adk.ResumeParams{Targets: at.targets})
}

// minKey is the length of the shortest key of a call.
const minKey = 15

// take takes a checkpoint at which the run goes on. A later process goes on with
// what this one commits, and the calls around agents have no place then.
func take(ctx context.Context, id string) error {
	return change(ctx, func(all map[string]Checkpoint) {
		outer := maps.Clone(all[id].Interrupts)
		maps.DeleteFunc(outer, func(_ string, in Interrupt) bool { return !in.Outer })
		if all[id] = (Checkpoint{Interrupts: outer}); len(outer) == 0 {
			delete(all, id)
		}
	})
}

// closeTaken answers the calls around the agents that a process was resuming when
// it died.
func closeTaken(ctx context.Context, run *workspace.Run) error {
	for id, c := range CheckpointField.GetOr(run.State(), nil) {
		if len(c.Data) > 0 {
			continue
		}
		for _, call := range run.Suspended() {
			if _, outer := c.Interrupts[call.Key]; !outer {
				continue
			}
			lost := state.ToolError(call.ToolCall, "The call was not completed.")
			if err := run.State().History().Answer(lost); err != nil {
				return err
			}
		}
		if err := (checkpoints{}).Delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// prepare notes what was said while the calls waited. It opens the answered calls
// of foreign tools again: their results come from the tools.
func (at *resumption) prepare(run *workspace.Run) error {
	at.missed = map[string][]state.Message{}
	msgs := state.Messages.GetOr(run.State(), nil)
	for key, in := range at.checkpoint.Interrupts {
		call, missed := behind(msgs, key)
		for seen := in.Seen; seen > 0 && len(missed) > 0; missed = missed[1:] {
			if _, ok := missed[0].(state.ToolResultMessage); !ok {
				seen--
			}
		}
		at.missed[callkey.IDOf(call.ID, key)] = slices.Concat(in.Missed, withoutOrphans(missed))
	}
	for _, d := range run.Message().Decisions {
		if d.Kind != tool.DecisionAnswer || !at.checkpoint.Interrupts[d.Key].Foreign {
			continue
		}
		if err := reopen(run.State(), d.Key); err != nil {
			return err
		}
	}
	return nil
}

// behind returns the call with a key, and the messages behind it.
func behind(msgs []state.Message, key string) (call state.ToolCall, after []state.Message) {
	for i, m := range slices.Backward(msgs) {
		if m, ok := m.(state.ToolCallMessage); ok {
			if at := indexOfKey(m.Calls(), key); at >= 0 {
				return m.Calls()[at], msgs[i+1:]
			}
		}
	}
	return call, nil
}

// withoutOrphans returns messages without the results of calls that are not
// among them.
func withoutOrphans(msgs []state.Message) (kept []state.Message) {
	var calls []state.ToolCall
	for _, m := range msgs {
		calls = append(calls, inside.CallsOf(m)...)
		if r, ok := m.(state.ToolResultMessage); !ok || indexOfKey(calls, r.Call().Key) >= 0 {
			kept = append(kept, m)
		}
	}
	return kept
}

// reopen removes the answer of a call, which is then open again.
func reopen(st *state.State, key string) error {
	answers := func(m state.ToolResultMessage) bool { return m.Call().Key == key }
	results := st.History().Results()
	for i := range results {
		results[i].ToolCalls = slices.DeleteFunc(slices.Clone(results[i].ToolCalls), answers)
	}
	if err := st.History().Reset(results); err != nil {
		return err
	}
	msgs := slices.DeleteFunc(state.Messages.GetOr(st, nil), func(m state.Message) bool {
		r, ok := m.(state.ToolResultMessage)
		return ok && answers(r)
	})
	return state.Messages.Replace(st, msgs)
}

// suspend suspends the calls in which interrupts have happened, and notes them
// in the checkpoint. It deletes checkpoints of calls that wait no longer, but for
// those that are resumed next.
func (at *resumption) suspend(
	ctx context.Context, run *workspace.Run, interrupts []*adk.InterruptCtx, next []*resumption,
) error {
	calls := map[string]Interrupt{}
	msgs := state.Messages.GetOr(run.State(), nil)
	for _, in := range interrupts {
		found := false
		_, own := in.Info.(waiting)
		for _, segment := range slices.Backward(in.Address) { // the calls around an agent wait with its own
			key := inside.KeyOfID(run.State(), segment.SubID)
			if segment.Type != adk.AddressSegmentTool || run.Suspend(key) != nil {
				continue
			}
			call := Interrupt{ID: in.ID, Foreign: !own, Outer: found, Missed: at.missed[segment.SubID]}
			_, after := behind(msgs, key)
			for _, m := range after {
				if _, result := m.(state.ToolResultMessage); !result {
					call.Seen++
				}
			}
			found, own, calls[key] = true, false, call
		}
		if !found {
			return fmt.Errorf("interrupt at %s: no call of the conversation is open there", in.Address)
		}
	}
	all := CheckpointField.GetOr(run.State(), nil)
	if len(all) == 0 {
		return nil
	}
	waiting := map[string]bool{}
	for _, c := range run.Suspended() {
		waiting[c.Key] = true
	}
	return change(ctx, func(all map[string]Checkpoint) {
		if c, ok := all[at.id]; ok {
			c.Interrupts = calls
			all[at.id] = c
		}
		maps.DeleteFunc(all, func(id string, c Checkpoint) bool {
			if slices.ContainsFunc(next, func(r *resumption) bool { return r.id == id }) {
				return false
			}
			for call := range c.Interrupts {
				if waiting[call] {
					return false
				}
			}
			return true
		})
	})
}

func indexOfKey(calls []state.ToolCall, key string) int {
	return slices.IndexFunc(calls, func(c state.ToolCall) bool { return c.Key == key && key != "" })
}

// inside is what this package sees of a State beside the exported methods.
var inside = state.Inside(internal.Key{})
