package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Suspend lets calls wait for a result from outside, by their keys. They stay open
// when the run ends, however it ends, until a [tool.Decision] of a message decides.
// They must be open in the conversation. A workspace has at most 64 suspended
// calls.
//
// Suspend is a change like any other: Commit and the end of the run store it, and
// undoing the run undoes it. A message that decides about a call is refused until
// then, so commit before you tell anybody of the call.
//
// A call of a tool that returns [tool.Suspend], or that [tool.NeedsApproval] holds
// back, is suspended by itself if the context of its step is that of the run.
//
// [Manager.Cancel] of the run closes its suspended calls, and so do Reset and
// Delete.
func (r *Run) Suspend(keys ...string) error {
	return wrapError("suspend", r.user, r.suspended.add(r.state, keys, r.suspension()))
}

// decide does what a message decides about suspended calls. It returns the
// message without what cannot be done, with the first error. What is stored is
// done; stored may be nil.
func (c *liveContent) decide(msg Message, stored func(tool.Decision) bool) (Message, error) {
	var failed error
	msg.keepDecisions(func(d tool.Decision) bool {
		if stored != nil && stored(d) {
			return true
		}
		err := c.decideCall(msg.Agent, d)
		failed = cmp.Or(failed, err)
		return err == nil
	})
	return msg, failed
}

// storedDecisions returns a function that reports whether the content has what was
// decided about a call. A call that was closed in another way has a result, too.
func (c *liveContent) storedDecisions() func(tool.Decision) bool {
	verdicts := map[string]string{} // of the results, by the keys of their calls
	for _, m := range state.Messages.GetOr(c.state, nil) {
		if m, ok := m.(state.ToolResultMessage); ok {
			v, _ := runctx.VerdictOf(m)
			verdicts[m.Call().Key] = v.Kind
		}
	}
	return func(d tool.Decision) bool {
		verdict, closed := verdicts[d.Key]
		switch d.Kind {
		case tool.DecisionApprove, tool.DecisionAgain:
			was, waits := c.suspended.get(d.Key)
			return closed || waits && !was.Waits()
		}
		return verdict == string(d.Kind)
	}
}

// decideCall does what an agent decides about one call.
func (c *liveContent) decideCall(agent string, d tool.Decision) error {
	waiting := c.suspended.calls(c.state)
	i := indexOfCall(waiting, d.Key)
	if i < 0 {
		return c.notSuspended(d.Key, waiting)
	}
	call := waiting[i]
	if d.Kind == runctx.VerdictExpired {
		return c.answer(call, runctx.Expiry(call.ToolCall))
	}
	if err := c.mayDecide(agent, call, d.Kind); err != nil {
		return err
	}
	switch d.Kind {
	case tool.DecisionRefuse:
		return c.answer(call, runctx.Refusal(call.ToolCall, agent, d.Reason))
	case tool.DecisionAnswer:
		return c.answer(call, runctx.Answer(call.ToolCall, agent, d.Result, d.Failed))
	case tool.DecisionApprove:
		if call.Begun {
			return fmt.Errorf("%w: the call %s was begun before, and its result is not known: answer it, refuse it or let it be made again",
				ErrNotSuspended, call.Key)
		}
	}
	was, _ := c.suspended.get(d.Key)
	was.Approval = &document.Approval{By: agent, Input: d.Input, Again: d.Kind == tool.DecisionAgain}
	c.suspended.set(d.Key, was)
	return nil
}

// checkInTime returns ErrExpired if a message that is about to be accepted decides
// about a call whose time is over. A decision that was accepted before counts,
// however long its message waits.
func (c *liveContent) checkInTime(msg Message) error {
	waiting, now := c.suspended.calls(c.state), ledger.CurrentTime()
	for _, d := range msg.Decisions {
		i := indexOfCall(waiting, d.Key)
		if i >= 0 && !waiting[i].Until.IsZero() && !waiting[i].Until.After(now) {
			return fmt.Errorf("%w: the call %s of %s", ErrExpired, d.Key, fault.Quote(waiting[i].Name))
		}
	}
	return nil
}

// notSuspended returns the error of a decision about a call that does not wait,
// with the keys of those that do: ErrNotSuspended if there is such a call.
func (c *liveContent) notSuspended(key string, waiting []Suspended) error {
	kind := state.ErrUnknownCall
	all := slices.Concat(inside.CallsOf(state.Messages.GetOr(c.state, nil)...),
		inside.CallsOf(c.state.History().Format(nil)...))
	if slices.ContainsFunc(all, func(call state.ToolCall) bool { return call.Key == key }) {
		kind = ErrNotSuspended
	}
	return fmt.Errorf("%w: %s%s", kind, fault.Quote(key), keysOf(waiting))
}

// answer puts the result of a suspended call behind it. If it returns an error,
// nothing has changed.
func (c *liveContent) answer(call Suspended, m state.ToolResultMessage) error {
	err := answerCall(c.state, m)
	if err == nil {
		c.suspended.drop(call.Key)
	}
	return err
}

// answerCall puts a result behind its call.
func answerCall(st *state.State, m state.ToolResultMessage) error {
	err := st.History().Answer(m)
	if errors.Is(err, state.ErrUnknownCall) || errors.Is(err, state.ErrAnswered) { // it is only in the conversation
		err = answerMessages(st, m)
	}
	return err
}

// answerMessages puts a result behind its call in the conversation.
func answerMessages(st *state.State, m state.ToolResultMessage) error {
	msgs, err := state.Messages.Get(st)
	if err != nil {
		return err
	}
	if msgs, err = transcript.Answer(msgs, m); err != nil {
		return err
	}
	return state.Messages.Replace(st, msgs)
}

// closeEdited answers, in the history, the calls that have waited and whose
// message was edited or removed since: nobody was shown what would be made.
func (c *liveContent) closeEdited() error {
	edited := c.suspended.closed(c.state)
	if len(edited) == 0 {
		return nil
	}
	var answers []state.ToolResultMessage
	for _, call := range inside.CallsOf(c.state.History().Format(nil)...) {
		if edited[call.Key] && !isAnswered(c.state, call.Key) {
			answers = append(answers, state.ToolError(call,
				"The call was not made: its message was edited or removed while it waited."))
		}
	}
	return c.state.History().Answer(answers...)
}

// isAnswered reports whether the history has a result of a call.
func isAnswered(st *state.State, key string) bool {
	return slices.ContainsFunc(st.History().Format(nil), func(m state.Message) bool {
		r, ok := m.(state.ToolResultMessage)
		return ok && r.Call().Key == key
	})
}

// kept returns the elements of a list for which keep returns true.
func kept[T any](list []T, keep func(T) bool) (left []T) {
	for _, v := range list {
		if keep(v) {
			left = append(left, v)
		}
	}
	return left
}
