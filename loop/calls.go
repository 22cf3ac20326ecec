package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
)

// suspendedCall is a call that waits.
type suspendedCall struct {
	state.ToolCall
	reason string
	digest string // of its arguments and of what is injected
}

// Suspended returns the calls that wait for a result from outside: in a run, those
// of the run, and otherwise those that functions of this turn have suspended.
func (t *Turn) Suspended() []state.ToolCall {
	waiting := t.waiting()
	calls := make([]state.ToolCall, len(waiting))
	for i, c := range waiting {
		calls[i] = c.ToolCall
	}
	return calls
}

// waiting is Suspended with the reasons that are known.
func (t *Turn) waiting() (calls []suspendedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropAnswered()
	if t.run == nil {
		return slices.Clone(t.suspended)
	}
	for _, c := range t.run.Waiting() {
		calls = append(calls, suspendedCall{ToolCall: c})
	}
	return calls
}

// dropAnswered forgets the suspended calls that have a result now.
func (t *Turn) dropAnswered() {
	if len(t.suspended) == 0 {
		return
	}
	open := t.st.History().Pending()
	t.suspended = slices.DeleteFunc(t.suspended, func(c suspendedCall) bool { return !hasCall(open, c.ToolCall) })
}

// digestOf returns the digest of a call that waits, or "".
func (t *Turn) digestOf(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.suspended {
		if c.Key == key {
			return c.digest
		}
	}
	return ""
}

// forget forgets that calls are suspended.
func (t *Turn) forget(calls []state.ToolCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspended = slices.DeleteFunc(t.suspended, func(c suspendedCall) bool { return hasCall(calls, c.ToolCall) })
}

// Pending returns the calls that are left to make before the model is asked
// again, also those that an earlier process has left; see
// [state.History.Pending]. Those that wait are not among them.
func (t *Turn) Pending() []state.ToolCall { return t.st.History().Pending(t.Suspended()...) }

// Run makes calls that are open in the history as [tool.Answer] does, and commits
// before and after. So a process that has lost its run makes no call. Suspended
// calls have no result.
//
// No function is called for a call that has a result, which is
// [state.ErrAnswered], that is in no answer of the agent, which is
// [state.ErrUnknownCall], or that waits, which is [tool.ErrSuspended].
func (t *Turn) Run(ctx context.Context, calls ...state.ToolCall) ([]tool.Result, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	calls, err := t.openCalls(ctx, calls)
	if err != nil {
		return nil, err
	}
	if err := t.commitRun(ctx); err != nil {
		return nil, err
	}
	begun := t.st.Version()
	step, err := tool.BeginStep(ctx, t.st, t.tools, calls)
	if err != nil {
		return nil, err
	}
	step.Run(ctx)
	results, err := t.endStep(step, begun)
	if err != nil {
		return results, err
	}
	t.noteStep(step, results)
	if t.joins {
		return results, t.commit(ctx, t.run.Join)
	}
	return results, t.Commit(ctx)
}

// openCalls returns calls as the history has them, with their keys. The error says
// which of them is not to be made.
func (t *Turn) openCalls(ctx context.Context, calls []state.ToolCall) ([]state.ToolCall, error) {
	open, waiting := t.st.History().Pending(), t.Suspended()
	found := make([]state.ToolCall, 0, len(calls))
	for _, c := range calls {
		i := indexOfCall(open, c)
		if i < 0 { // it is not for this agent to make, or not at all
			if err := inside.CheckAnswers(t.st, []state.ToolCall{c}); err != nil {
				return nil, err
			}
			found = append(found, c)
			continue
		}
		if _, approved := runctx.ApprovalOf(open[i].Key, ctx); !approved && hasCall(waiting, open[i]) {
			return nil, errWaiting(suspendedCall{ToolCall: open[i]})
		}
		found, open = append(found, open[i]), slices.Delete(open, i, i+1)
	}
	return found, nil
}

// noteStep notes which calls have a result and which wait.
func (t *Turn) noteStep(step *tool.Step, results []tool.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range results {
		t.late = append(t.late, r.Message.Call())
	}
	for c, s := range step.Suspended() {
		t.suspended = append(t.suspended, suspendedCall{c, s.Reason, s.Digest})
	}
}

// Call makes a call of the last answer, or one that is left of an earlier one.
// The call that returns last adds the results of all to the history, in their
// order. Each call is made once: one that has a result is [state.ErrAnswered], also
// without its key if its id, name and input are those of an answered call of the
// last answer. A call that is in no answer is a step of its own without a place in
// the history. The error is that of [tool.Step.Call], or that of
// [state.History.Answer].
func (t *Turn) Call(ctx context.Context, c state.ToolCall) (tool.Result, error) {
	if cut, ok := t.cutResult(c); ok {
		return cut, nil
	}
	step, i, c, err := t.take(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := step.Call(ctx, i)
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, tool.ErrSuspended) {
		t.suspended = append(t.suspended, suspendedCall{c, err.Error(), step.Suspension(i).Digest})
	}
	if step != t.step {
		return result, err
	}
	if t.open--; t.open == 0 {
		if err := t.answer(); err != nil {
			return result, err
		}
	}
	return result, err
}

// take finds the step of a call, and returns the call as the history has it.
func (t *Turn) take(ctx context.Context, c state.ToolCall) (step *tool.Step, i int, known state.ToolCall, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil { // the turn goes on with an earlier answer
		t.others = true
		t.setCalls(t.left(c))
	}
	if t.step == nil && t.open > 0 {
		t.begun = t.st.Version()
		// The context of each call ends it, too.
		if t.step, err = tool.BeginStep(context.WithoutCancel(ctx), t.st, t.tools, t.calls); err != nil {
			return nil, 0, c, err
		}
	}
	for _, exact := range []bool{true, false} { // of equal calls without a key, those with the input first
		for i, known := range t.calls {
			if !t.taken[i] && sameCall(known, c) && (!exact || known.Input == c.Input) {
				t.taken[i] = true
				return t.step, i, known, nil
			}
		}
	}
	if c.Key == "" {
		c.Key = t.repeated(c)
	}
	if _, answered := t.Answered(c.Key); answered {
		return nil, 0, c, &kindError{state.ErrAnswered, fmt.Errorf("loop: the call %s has a result", c.Key)}
	}
	step, err = tool.BeginStep(ctx, t.st, t.tools, []state.ToolCall{c})
	return step, 0, c, err
}

// repeated returns the key of the call in the agent's last answer that a call
// without a key is, or "": a framework makes it again.
func (t *Turn) repeated(c state.ToolCall) (key string) {
	for _, r := range t.st.History().All() {
		if r.Agent != t.st.Agent() {
			continue
		}
		if said := inside.CallsOf(r.Output...); len(said) > 0 {
			i := slices.IndexFunc(said, func(o state.ToolCall) bool {
				return c.ID != "" && sameCall(o, c) && o.Input.Equal(c.Input)
			})
			if key = ""; i >= 0 {
				key = said[i].Key
			}
		}
	}
	return key
}

// left returns the open calls for tools in the last answer that has a call open.
func (t *Turn) left(c state.ToolCall) (calls []state.ToolCall) {
	open := t.st.History().Pending()
	for _, r := range t.st.History().All() {
		said := inside.CallsOf(r.Output...)
		if r.Agent == t.st.Agent() && slices.ContainsFunc(said, func(o state.ToolCall) bool { return sameCall(o, c) && hasCall(open, o) }) {
			calls = said
		}
	}
	return slices.DeleteFunc(calls, func(c state.ToolCall) bool { return !hasCall(open, c) || !t.Has(c.Name) })
}

// answer ends the step and adds its results to the history.
func (t *Turn) answer() error {
	step := t.step
	t.setCalls(nil)
	if step == nil {
		return nil
	}
	_, err := t.endStep(step, t.begun)
	return err
}

// End ends the step of an answer of which a framework has not made all calls, and
// adds the results. others reports whether the answer may have calls of other
// tools, whose results are for Answer. It is true once for each answer.
func (t *Turn) End() (others bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	others, t.others = t.others, false
	return others, t.answer()
}

// Answer adds the results of calls to the history that the program has made
// itself, such as those of a framework's own tools. It leaves out the results of
// calls that are not open in the answers of the agent: a prompt has those of other
// agents, too. A result without a key answers the call that requests name by its
// id: an id that an earlier call had is that call's alone.
func (t *Turn) Answer(results ...state.ToolResultMessage) error {
	for _, r := range results {
		open, c := t.st.History().Pending(), r.Call()
		i := slices.IndexFunc(open, func(o state.ToolCall) bool {
			if c.Key != "" {
				return c.Key == o.Key
			}
			return (c.ID == callkey.IDOf(o.ID, o.Key) || c.ID == "" && o.ID == "") && (c.Name == "" || c.Name == o.Name)
		})
		if i < 0 {
			continue
		}
		err := t.st.History().Answer(inside.WithKey(r, open[i].Key))
		if err != nil && !errors.Is(err, state.ErrAnswered) && !errors.Is(err, state.ErrUnknownCall) {
			return err
		}
	}
	return nil
}

// Answered returns the result that the history has for a call, by its key.
func (t *Turn) Answered(key string) (r state.ToolResultMessage, ok bool) {
	for _, m := range slices.Backward(t.st.History().Format(nil)) {
		if r, ok := m.(state.ToolResultMessage); ok && key != "" && r.Call().Key == key {
			return r, true
		}
	}
	return r, false
}

// sameCall reports whether two calls are the same one. If one has no key, because
// a framework does not keep it, the id and the name decide.
func sameCall(a, b state.ToolCall) bool {
	if a.Key != "" && b.Key != "" {
		return a.Key == b.Key
	}
	return (a.ID == b.ID || a.ID == callkey.IDOf(b.ID, b.Key) || b.ID == callkey.IDOf(a.ID, a.Key)) && a.Name == b.Name
}

// indexOfCall returns the index of a call in a list, or -1. Of several that a call
// without a key may be, it is one with the same input.
func indexOfCall(calls []state.ToolCall, c state.ToolCall) int {
	same := func(o state.ToolCall) bool { return sameCall(o, c) && o.Input == c.Input }
	if i := slices.IndexFunc(calls, same); i >= 0 {
		return i
	}
	return slices.IndexFunc(calls, func(o state.ToolCall) bool { return sameCall(o, c) })
}

// hasCall reports whether a list has a call.
func hasCall(calls []state.ToolCall, c state.ToolCall) bool {
	return slices.ContainsFunc(calls, func(o state.ToolCall) bool { return sameCall(o, c) })
}

// removeCall removes a call from a list. It reports whether the list had it.
func removeCall(calls *[]state.ToolCall, c state.ToolCall) bool {
	i := indexOfCall(*calls, c)
	if i < 0 {
		return false
	}
	*calls = slices.Delete(*calls, i, i+1)
	return true
}
