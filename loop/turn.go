package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// Turn is the turn of one agent on a State: the tools that it may use, what its
// model has said, and the calls that are left to make. A [Loop] gives one to the
// agents that it asks, and the adapters of frameworks stand on it. A program with
// its own loop makes one with [NewTurn]: it sends the model what Prompt
// returns, records the answer by Said, and makes the Pending calls by Run, until
// there are none.
//
// What the model says is recorded before its calls are made, and their results
// before the model is asked again. In a run of package workspace, which the
// context of [NewTurn] carries, both are committed, so that another process goes
// on where this one has died. A call whose function returns [tool.Suspend] stays open
// and is not pending in this turn; in a run, it is suspended until a message
// answers it.
//
// A framework that makes the calls of a message itself uses Call, in any order
// and at the same time, and End: the outputs are written in the order of the
// calls. All methods are safe for concurrent use.
type Turn struct {
	base, st *state.State
	tools    []*tool.Tool
	run      runctx.Run // nil without a workspace, and on a branch of its state
	host     runctx.Run // run, also on a branch
	inner    bool       // within another turn, in the call of a tool, or on a branch
	called   bool       // within another turn, or in the call of a tool

	// Of a Loop, or nil:
	stored func(context.Context) error            // Loop.Commit
	heard  func(output []state.Message, e ending) // is told of each answer
	route  func(*state.State) (string, bool)      // Loop.Route
	purse  *purse                                 // of Loop.Budget, or of the agent that has called this one

	mu sync.Mutex
	// The calls of the last answer that are for tools, for Call.
	calls     []state.ToolCall
	taken     []bool
	open      int        // how many of calls have not returned
	step      *tool.Step // of calls, since the first of them was made
	begun     uint64     // the version at which step has begun
	others    bool       // the answer may have calls of other tools
	suspended []suspendedCall
	late      []state.ToolCall // whose results the model has not been shown at the end of a prompt
	failure   *passingError    // of the last request, or nil
	ended     *ending          // what comes after the last answer, or nil
	cut       []tool.Result    // of the calls of the last answer, if it was cut
}

// suspendedCall is a call that waits.
type suspendedCall struct {
	state.ToolCall
	reason string
	digest string // of its arguments and of what is injected
}

type turnKey struct{}

// NewTurn begins the turn of an agent on the State that ctx carries, with the
// rights of the agent. If agent is "", they are those of the handle in ctx. An
// agent that is called by a tool of another turn works on the State of that turn
// with its own rights. Without a State, the error is [state.ErrInvalid].
func NewTurn(ctx context.Context, agent string, tools ...*tool.Tool) (*Turn, error) {
	base, ok := state.FromContext(ctx)
	if !ok {
		return nil, invalid("no state in the context: use state.NewContext")
	}
	if err := checkTools(agent, tools); err != nil {
		return nil, err
	}
	t := &Turn{base: base, st: base, tools: slices.Clone(tools), others: true}
	outer, nested := TurnOf(ctx)
	if nested && outer.st.Agent() == base.Agent() && inside.Branch(outer.st) == inside.Branch(base) {
		t.base = outer.base
	}
	if nested {
		t.purse = outer.purse
	}
	if agent != "" {
		t.st = t.base.As(agent)
	}
	_, called := tool.CallOf(ctx)
	t.called = nested || called
	t.inner = t.called
	t.run = runctx.RunOf(ctx)
	if t.host = t.run; t.run == nil {
		return t, nil
	}
	if inside.Branch(t.run.State()) != inside.Branch(base) { // what is done there is not stored before it is joined
		t.run, t.inner = nil, true
		return t, nil
	}
	if answers, _ := t.run.Progress(); answers == 0 && !t.inner {
		t.late = t.run.Decided()
	}
	return t, nil
}

// Context returns a context that carries the turn, for [TurnOf], and its State,
// for [state.FromContext].
func (t *Turn) Context(ctx context.Context) context.Context {
	ctx = runctx.WithFailures(state.NewContext(ctx, t.st), t.noteFailure)
	return context.WithValue(ctx, turnKey{}, t)
}

// TurnOf returns the turn that ctx carries.
func TurnOf(ctx context.Context) (*Turn, bool) {
	t, ok := ctx.Value(turnKey{}).(*Turn)
	return t, ok
}

// State returns the State with the rights of the agent.
func (t *Turn) State() *state.State { return t.st }

// Window returns the window for the messages that a framework sends the model: w,
// or else that of the workspace in whose run, which ctx carries, the turn is. It is
// nil for an agent that is called by a tool: what it says is its own.
func (t *Turn) Window(ctx context.Context, w *transcript.Window) *transcript.Window {
	if run := runctx.RunOf(ctx); w == nil && run != nil {
		w, _ = run.Window().(*transcript.Window)
	}
	if t.called {
		return nil
	}
	return w
}

// Tools returns the tools that the agent may use now, see [tool.Usable].
func (t *Turn) Tools() []*tool.Tool { return tool.Usable(t.st, t.tools) }

// Has reports whether a tool of the turn has the name. The model may have called
// it although the agent may not use it.
func (t *Turn) Has(name string) bool {
	return slices.ContainsFunc(t.tools, func(own *tool.Tool) bool { return own != nil && own.Name() == name })
}

// Commit commits the run of the workspace, if there is one, and calls the Commit
// of the [Loop] whose turn it is.
func (t *Turn) Commit(ctx context.Context) error {
	err := t.commitRun(ctx)
	if err == nil && t.stored != nil {
		err = t.stored(ctx)
	}
	return err
}

func (t *Turn) commitRun(ctx context.Context) error {
	if t.run == nil {
		return nil
	}
	return t.run.Commit(ctx)
}

// Hear adds what the user says to the conversation, but for messages with which
// it ends already. It does nothing in a run of a workspace, which has added its
// message, if the context is that of another turn or of the call of a tool, or
// has a branch of the run's State, and if the handle of the context may not write
// [state.Messages].
func (t *Turn) Hear(said ...state.Message) error {
	writable := func(f state.FieldInfo) bool { return f.Name == state.Messages.Name && f.Writable }
	if t.run != nil || t.inner || len(said) == 0 || !slices.ContainsFunc(t.base.Fields(), writable) {
		return nil
	}
	known := state.Messages.GetOr(t.base, nil)
	n := min(len(said), len(known))
	for n > 0 && !slices.EqualFunc(known[len(known)-n:], said[:n], state.Message.Equal) {
		n--
	}
	if n == len(said) {
		return nil
	}
	return state.Messages.Set(t.base, said[n:])
}

// Said records an answer of the model, as [state.History.Append] does, and commits
// it if the model is to be asked again.
//
// If the answer was cut in the middle of its calls, or was refused or filtered, none
// of them is pending: each gets a result that says so. An answer without calls that
// has failed, or that says nothing although nothing stands behind a result, is not
// recorded: the error is a [*StopError] that may pass. See [Turn.Next].
func (t *Turn) Said(ctx context.Context, r state.InferenceResult) error {
	more, err := t.record(r)
	if err != nil || !more {
		return err
	}
	return t.Commit(ctx)
}

// record adds an answer to the history, behind the results of the one before.
func (t *Turn) record(r state.InferenceResult) (more bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.answer(); err != nil {
		return false, err
	}
	if err := t.purse.spend(t, r); err != nil {
		return false, err
	}
	e, err := t.endingOf(r)
	if err != nil {
		t.failure = &passingError{Err: err}
		return false, t.failure
	}
	t.dropAnswered() // before a new call can have the same id
	if err := t.st.History().Append(r); err != nil {
		return false, err
	}
	calls := t.recorded(r)
	if t.ended, t.cut = &e, nil; e.cut {
		if err := t.answerCut(calls, r.Stop); err != nil {
			return false, err
		}
		calls = nil
	}
	t.setCalls(slices.DeleteFunc(slices.Clone(calls), func(c state.ToolCall) bool { return !t.Has(c.Name) }))
	t.others = len(t.calls) < len(calls)
	t.late, t.failure = nil, nil
	if t.run != nil && !t.inner {
		answers, _ := t.run.Progress()
		t.run.SetProgress(answers+1, !e.more)
	}
	if t.heard != nil {
		t.heard(r.Output, e)
	}
	return e.more, nil
}

// recorded returns the calls of an answer that was appended just now, with their
// keys.
func (t *Turn) recorded(r state.InferenceResult) []state.ToolCall {
	said := callsOf(r.Output)
	if len(said) == 0 {
		return nil
	}
	for i := t.st.History().Len() - 1; i >= 0; i-- {
		last, ok := t.st.History().At(i)
		calls := callsOf(last.Output)
		if ok && last.Agent == t.st.Agent() && slices.EqualFunc(calls, said, func(a, b state.ToolCall) bool {
			return a.ID == b.ID && a.Name == b.Name && a.Input == b.Input
		}) {
			return calls
		}
	}
	return said
}

// callsOf returns the calls in messages.
func callsOf(msgs []state.Message) (calls []state.ToolCall) {
	for _, m := range msgs {
		if m, ok := m.(state.ToolCallMessage); ok {
			calls = append(calls, m.Calls()...)
		}
	}
	return calls
}

// setCalls replaces the calls that Call makes.
func (t *Turn) setCalls(calls []state.ToolCall) {
	t.calls, t.taken, t.open, t.step = calls, make([]bool, len(calls)), len(calls), nil
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

// indexOfCall returns the index of a call in a list, or -1. Of several that a call
// without a key may be, it is one with the same input.
func indexOfCall(calls []state.ToolCall, c state.ToolCall) int {
	same := func(o state.ToolCall) bool { return sameCall(o, c) && o.Input == c.Input }
	if i := slices.IndexFunc(calls, same); i >= 0 {
		return i
	}
	return slices.IndexFunc(calls, func(o state.ToolCall) bool { return sameCall(o, c) })
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
		if said := callsOf(r.Output); len(said) > 0 {
			i := slices.IndexFunc(said, func(o state.ToolCall) bool { return c.ID != "" && sameCall(o, c) && o.Input.Equal(c.Input) })
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
		said := callsOf(r.Output)
		if r.Agent == t.st.Agent() && slices.ContainsFunc(said, func(o state.ToolCall) bool { return sameCall(o, c) && hasCall(open, o) }) {
			calls = said
		}
	}
	return slices.DeleteFunc(calls, func(c state.ToolCall) bool { return !hasCall(open, c) || !t.Has(c.Name) })
}

func hasCall(calls []state.ToolCall, c state.ToolCall) bool {
	return slices.ContainsFunc(calls, func(o state.ToolCall) bool { return sameCall(o, c) })
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
