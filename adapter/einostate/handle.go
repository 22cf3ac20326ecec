package einostate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
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
// message with Answers for such calls resumes the agent where it was, if the
// runner has [Checkpoints] and the schema CheckpointField, and otherwise with
// the conversation. The answer is the result of a call of [Tools], which is not
// made again. Other tools of a resumed agent are called again, with the id of
// the call and the answer as their resume data, a string: what they return is
// the result. Approve resumes them with the text "approved". Refuse resumes the
// agent, and the refusal is the result: no tool is called. What was said while the
// call waited is in the prompt of the resumed agent, in front of the call. An
// interrupt outside of a call that is in the conversation is an error.
//
// onEvent is called with each event of the agent, such as to show its text while
// it is streamed; nil stands for none. The agent waits for it.
func Handle(
	r *adk.Runner, onEvent func(ctx context.Context, run *workspace.Run, event *adk.AgentEvent),
) func(ctx context.Context, run *workspace.Run) error {
	return func(ctx context.Context, run *workspace.Run) error {
		resumed, events, err := start(ctx, r, run)
		if err != nil {
			return fmt.Errorf("einostate: %w", err)
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
		if errors.Is(err, tool.ErrSuspended) { // a call that a process has left, and that eino did not make
			err = nil
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
		return suspend(ctx, run, resumed, interrupts)
	}
}

// start resumes the agent from the checkpoint of a call that the message
// decides about, and runs it with the conversation if there is none.
func start(ctx context.Context, r *adk.Runner, run *workspace.Run) (*resumption, *adk.AsyncIterator[*adk.AgentEvent], error) {
	if err := closeTaken(ctx, run); err != nil {
		return nil, nil, err
	}
	answers := map[string]any{}
	for _, m := range run.Message().Answers {
		answers[m.Call().ID] = m.Text()
	}
	for _, call := range run.Message().Refuse {
		answers[call] = "refused"
	}
	all := CheckpointField.GetOr(run.State(), nil)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		targets := map[string]any{}
		for call, in := range all[id].Interrupts {
			if text, ok := answers[call]; ok {
				targets[in.ID] = text
			} else if in.Foreign && slices.Contains(run.Message().Approve, call) {
				targets[in.ID] = "approved"
			}
		}
		if len(targets) == 0 {
			continue
		}
		resumed, err := newResumption(run, id, all[id])
		if err != nil {
			return nil, nil, err
		}
		if err := take(ctx, id); err != nil {
			return nil, nil, err
		}
		ctx = context.WithValue(ctx, resumptionKey{}, resumed)
		events, err := r.ResumeWithParams(ctx, id, &adk.ResumeParams{Targets: targets})
		return resumed, events, err
	}
	msgs, err := FromMessages(state.Messages.GetOr(run.State(), nil)...)
	if err != nil {
		return nil, nil, err
	}
	return &resumption{id: run.ID()}, r.Run(ctx, msgs, adk.WithCheckPointID(run.ID())), nil
}

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
			if _, outer := c.Interrupts[call.ID]; !outer {
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

// newResumption returns what the agents need to go on at a checkpoint. It opens
// the answered calls of foreign tools again: their results come from the tools.
func newResumption(run *workspace.Run, id string, c Checkpoint) (*resumption, error) {
	r := &resumption{id, c, map[string][]state.Message{}}
	msgs := state.Messages.GetOr(run.State(), nil)
	for call, in := range c.Interrupts {
		missed := behind(msgs, call)
		for seen := in.Seen; seen > 0 && len(missed) > 0; missed = missed[1:] {
			if _, ok := missed[0].(state.ToolResultMessage); !ok {
				seen--
			}
		}
		r.missed[call] = slices.Concat(in.Missed, withoutOrphans(missed))
	}
	for _, answer := range run.Message().Answers {
		if !c.Interrupts[answer.Call().ID].Foreign {
			continue
		}
		if err := reopen(run.State(), answer); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// behind returns the messages behind the latest call with an id.
func behind(msgs []state.Message, call string) []state.Message {
	for i, m := range slices.Backward(msgs) {
		if calls, ok := m.(state.ToolCallMessage); ok && hasCall(calls.Calls(), call) {
			return msgs[i+1:]
		}
	}
	return nil
}

// withoutOrphans returns messages without the results of calls that are not
// among them.
func withoutOrphans(msgs []state.Message) (kept []state.Message) {
	var calls []state.ToolCall
	for _, m := range msgs {
		if c, ok := m.(state.ToolCallMessage); ok {
			calls = append(calls, c.Calls()...)
		}
		if r, ok := m.(state.ToolResultMessage); !ok || hasCall(calls, r.Call().ID) {
			kept = append(kept, m)
		}
	}
	return kept
}

// reopen removes the answer of a call, which is then open again.
func reopen(st *state.State, answer state.ToolResultMessage) error {
	results := st.History().Results()
	for i := len(results) - 1; i >= 0; i-- {
		calls := results[i].ToolCalls
		if at := slices.IndexFunc(calls, func(m state.ToolResultMessage) bool { return m.Equal(answer) }); at >= 0 {
			results[i].ToolCalls = slices.Delete(slices.Clone(calls), at, at+1)
			break
		}
	}
	if err := st.History().Reset(results); err != nil {
		return err
	}
	msgs := state.Messages.GetOr(st, nil)
	for i, m := range slices.Backward(msgs) {
		if m.Equal(answer) {
			return state.Messages.Replace(st, slices.Delete(msgs, i, i+1))
		}
	}
	return nil
}

// suspend suspends the calls in which interrupts have happened, and notes them
// in the checkpoint. It deletes checkpoints of calls that wait no longer.
func suspend(ctx context.Context, run *workspace.Run, resumed *resumption, interrupts []*adk.InterruptCtx) error {
	calls := map[string]Interrupt{}
	msgs := state.Messages.GetOr(run.State(), nil)
	for _, in := range interrupts {
		found := false
		_, own := in.Info.(waiting)
		for _, at := range slices.Backward(in.Address) { // the calls around an agent wait with its own
			if at.Type != adk.AddressSegmentTool || run.Suspend(at.SubID) != nil {
				continue
			}
			call := Interrupt{ID: in.ID, Foreign: !own, Outer: found, Missed: resumed.missed[at.SubID]}
			for _, m := range behind(msgs, at.SubID) {
				if _, result := m.(state.ToolResultMessage); !result {
					call.Seen++
				}
			}
			found, own, calls[at.SubID] = true, false, call
		}
		if !found {
			return fmt.Errorf("einostate: interrupt at %s: no call of the conversation is open there", in.Address)
		}
	}
	all := CheckpointField.GetOr(run.State(), nil)
	if len(all) == 0 {
		return nil
	}
	waiting := map[string]bool{}
	for _, c := range run.Suspended() {
		waiting[c.ID] = true
	}
	return change(ctx, func(all map[string]Checkpoint) {
		if c, ok := all[resumed.id]; ok {
			c.Interrupts = calls
			all[resumed.id] = c
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

func hasCall(calls []state.ToolCall, id string) bool {
	return slices.ContainsFunc(calls, func(c state.ToolCall) bool { return c.ID == id })
}
