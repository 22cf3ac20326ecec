package einostate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

type (
	turnKey struct{}
	baseKey struct{}
)

// narrowed is a handle that the context of an agent carries, with the handle
// that it was made of.
type narrowed struct{ base, st *state.State }

// baseState returns the handle of the context as it was before an agent has
// narrowed it.
func baseState(ctx context.Context) (*state.State, bool) {
	st, ok := state.FromContext(ctx)
	if n, narrow := ctx.Value(baseKey{}).(narrowed); narrow && n.st == st {
		return n.base, true
	}
	return st, ok
}

// turn is one run of an agent, or its resumption.
type turn struct {
	base  *state.State
	st    *state.State // base with the rights of the agent
	tools []*tool.Tool
	run   *workspace.Run // or nil
	inner bool           // a tool of another agent runs this one
	begun bool           // the model was asked; before, calls are those of an interrupt

	mu    sync.Mutex
	step  *tool.Step       // of the latest answer of the model; nil if no call of it is one of tools
	calls []state.ToolCall // of step
	taken []bool           // of calls: being made or made
	open  int              // how many of calls have not returned
	// foreign says that the answer has calls of other tools, or was given before
	// an interrupt.
	foreign bool
}

func (t *turn) commit(ctx context.Context) error {
	if t.run == nil {
		return nil
	}
	return t.run.Commit(ctx)
}

// begin records an answer of the model, and begins the step of its calls.
func (t *turn) begin(ctx context.Context, m *schema.Message) error {
	output, err := Messages(m)
	if err != nil {
		return err
	}
	if err := t.st.History().Append(state.InferenceResult{Output: output}); err != nil {
		return err
	}
	if len(m.ToolCalls) == 0 {
		return nil
	}
	calls := make([]state.ToolCall, 0, len(m.ToolCalls))
	for _, c := range m.ToolCalls {
		if hasTool(t.tools, c.Function.Name) {
			calls = append(calls, callOf(c))
		}
	}
	t.mu.Lock()
	err = t.setStep(calls)
	t.foreign = len(calls) < len(m.ToolCalls)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return t.commit(ctx)
}

func (t *turn) setStep(calls []state.ToolCall) (err error) {
	// The context of each call is that of the run, too.
	t.step, err = tool.Begin(context.Background(), t.st, t.tools, calls)
	t.calls, t.taken, t.open = calls, make([]bool, len(calls)), len(calls)
	return err
}

// call makes a call of the step. The last call that returns ends the step.
func (t *turn) call(ctx context.Context, c state.ToolCall) (tool.Result, error) {
	step, i, err := t.take(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := step.Call(ctx, i)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open == 0 {
		if err := t.answer(); err != nil {
			return result, err
		}
	}
	return result, err
}

// take finds a call in the step.
func (t *turn) take(ctx context.Context, c state.ToolCall) (*tool.Step, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.step == nil { // the agent was resumed
		t.foreign = true
		if err := t.setStep(t.openStep(c.ID)); err != nil {
			return nil, 0, err
		}
	}
	for i, known := range t.calls {
		if !t.taken[i] && known.ID == c.ID && known.Name == c.Name {
			t.taken[i] = true
			return t.step, i, nil
		}
	}
	step, err := tool.Begin(ctx, t.st, t.tools, []state.ToolCall{c})
	return step, 0, err
}

// answer ends the step and adds its results to the history.
func (t *turn) answer() error {
	_, err := t.step.Answer()
	t.step = nil
	return err
}

// end ends the step, if a call of it was not made, and adds the results of
// foreign tools, which are the last messages of the agent.
func (t *turn) end(msgs []*schema.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.step != nil {
		if err := t.answer(); err != nil {
			return err
		}
	}
	if !t.foreign {
		return nil
	}
	t.foreign = false
	first := len(msgs)
	for first > 0 && msgs[first-1].Role == schema.Tool {
		first--
	}
	return t.answerForeign(msgs[first:]...)
}

// answerForeign adds the results of foreign tools to the history, if it does not
// have them.
func (t *turn) answerForeign(msgs ...*schema.Message) error {
	results, err := Messages(msgs...)
	if err != nil {
		return err
	}
	for _, m := range results {
		result, ok := m.(state.ToolResultMessage)
		if !ok {
			continue
		}
		err := t.st.History().Answer(result)
		if err != nil && !errors.Is(err, state.ErrAnswered) && !errors.Is(err, state.ErrUnknownCall) {
			return err
		}
	}
	return nil
}

// answered returns the answer that the history has to a call, if it is not open.
func (t *turn) answered(id string) (text string, ok bool) {
	if hasCall(t.st.History().Pending(), id) {
		return "", false
	}
	for _, m := range slices.Backward(t.st.History().Format(nil)) {
		if result, is := m.(state.ToolResultMessage); is && result.Call().ID == id {
			return result.Text(), true
		}
	}
	return "", false
}

// openStep returns the open calls of tools in the last answer that has a call.
func (t *turn) openStep(id string) (calls []state.ToolCall) {
	for _, r := range t.st.History().All() {
		if said := transcript.Pending(r.Output); r.Agent == t.st.Agent() && hasCall(said, id) {
			calls = said
		}
	}
	open := t.st.History().Pending()
	return slices.DeleteFunc(calls, func(c state.ToolCall) bool { return !hasCall(open, c.ID) || !hasTool(t.tools, c.Name) })
}

func hasCall(calls []state.ToolCall, id string) bool {
	return slices.ContainsFunc(calls, func(c state.ToolCall) bool { return c.ID == id })
}

// hear adds the messages of the user with which a prompt ends to the conversation
// of a state, if they are not in it and st may write it.
func hear(st *state.State, msgs []*schema.Message) error {
	writable := slices.ContainsFunc(st.Fields(), func(f state.FieldInfo) bool { return f.Name == state.Messages.Name && f.Writable })
	first := len(msgs)
	for first > 0 && msgs[first-1].Role == schema.User {
		if first--; strings.HasPrefix(msgs[first].Content, "For context: [") {
			return nil // so eino tells what another agent has said, who was first
		}
	}
	said, err := Messages(msgs[first:]...)
	if err != nil || !writable {
		return err
	}
	known := state.Messages.Or(st, nil)
	n := min(len(said), len(known))
	for n > 0 && !slices.EqualFunc(known[len(known)-n:], said[:n], state.Message.Equal) {
		n--
	}
	if n == len(said) {
		return nil
	}
	return state.Messages.Set(st, said[n:])
}

// settle gives results to the calls in a prompt that have none. Those of the
// agent that an earlier process has left are made. Suspended ones wait, and
// others fail, in the prompt alone.
func (t *turn) settle(ctx context.Context, msgs []*schema.Message) ([]*schema.Message, error) {
	var suspended []state.ToolCall
	if t.run != nil {
		suspended = t.run.Suspended()
	}
	open := map[string]bool{}
	for _, c := range transcript.ShapesFunc(msgs, Format.Shape).Pending(suspended...) {
		open[c.ID] = true
	}
	if len(open)+len(suspended) == 0 {
		return msgs, nil
	}
	prompt, err := Messages(msgs...)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(t.st.History().Pending(suspended...), func(c state.ToolCall) bool {
		return !open[c.ID] || !hasTool(t.tools, c.Name)
	})
	results, err := tool.Answer(ctx, t.st, t.tools, left)
	for _, r := range results {
		if err == nil {
			prompt, err = transcript.Answer(prompt, r.Message)
		}
	}
	if err != nil {
		return nil, err
	}
	prompt, _ = transcript.Repair(prompt, transcript.Profile{}, transcript.Policy{AnswerCalls: true, Suspended: suspended})
	return FromMessages(prompt...)
}
