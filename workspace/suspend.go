package workspace

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/transcript"
)

// Suspend lets calls wait for a result from outside. They stay open when the run
// ends, however it ends, until the Answers of a message bring their results, or
// its Approve or Refuse a decision. A call is named by its
// id, or by the name of its tool if the provider gives calls no ids, and must
// be open in the conversation. A workspace has at most 64 suspended calls.
//
// Suspend is a change like any other: Commit and the end of the run store it, and
// undoing the run undoes it. A message that answers a call is refused until then,
// so commit before you tell anybody of the call.
//
// A call of a tool that returns [tool.Suspend], or that [tool.NeedsApproval] holds
// back, is suspended by itself if the context of its step is that of the run.
//
// [Manager.Cancel] of the run closes its suspended calls, and so do Reset and
// Delete.
func (r *Run) Suspend(callIDs ...string) error {
	return wrapError("suspend", r.user, r.suspended.add(r.runID, r.state, callIDs))
}

// answer puts the result of a suspended call behind it, with the rights of an
// agent, or of the host if agent is empty or the tool is the sender's. If it returns an error, nothing has
// changed.
func (c *liveContent) answer(agent string, m state.ToolResultMessage) error {
	key := runctx.Key(m.Call())
	was := c.suspended.get(key)
	if was.Calls <= was.Approved {
		return notSuspended(key)
	}
	open := openCalls(c.state)[key]
	branch := c.state.Fork()
	st := branch
	if agent != "" && was.Reason != errClient.Error() {
		st = branch.As(agent)
	}
	err := st.History().Answer(m)
	if errors.Is(err, state.ErrUnknownCall) || errors.Is(err, state.ErrAnswered) { // it is only in the conversation
		err = answerMessages(st, m)
	}
	if err != nil {
		return err
	}
	if openCalls(branch)[key] >= open {
		return &state.AccessError{Agent: agent, Op: "answer a call in", Field: state.Messages.Name}
	}
	if err := c.state.Join(branch); err != nil {
		return err
	}
	c.suspended.takeOne(key)
	return nil
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

// decide does what a message decides about suspended calls. It returns the
// message without what cannot be done, with the first error.
func (c *liveContent) decide(msg Message) (Message, error) {
	var failed error
	done := func(err error) bool {
		failed = cmp.Or(failed, err)
		return err == nil
	}
	msg.Answers = kept(msg.Answers, func(a state.ToolResultMessage) bool { return done(c.answer(msg.Agent, a)) })
	msg.Refuse = kept(msg.Refuse, func(key string) bool { return done(c.refuse(key)) })
	msg.Approve = kept(msg.Approve, func(key string) bool {
		if !c.suspended.approve(key, msg.Agent) {
			return done(notSuspended(key))
		}
		return true
	})
	return msg, failed
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

func notSuspended(key string) error { return fmt.Errorf("%w: %s", ErrNotSuspended, fault.Quote(key)) }

// refuse answers a call that waits as refused, whoever has made it.
func (c *liveContent) refuse(key string) error {
	for _, s := range c.suspended.calls(c.state) {
		if runctx.Key(s.ToolCall) == key {
			return c.answer("", runctx.Refusal(s.ToolCall))
		}
	}
	return notSuspended(key)
}
