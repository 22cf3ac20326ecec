package loop

import (
	"context"
	"slices"
	"sync"

	"github.com/agentstate/state"
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
	scope    scope

	// Of a Loop, or nil:
	stored func(context.Context) error            // Loop.Commit
	heard  func(output []state.Message, e ending) // is told of each answer
	route  func(*state.State) (string, bool)      // Loop.Route
	joins  bool                                   // messages may join the run behind results
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
	lost      error            // why its answer is not recorded, or nil
	ended     *ending          // what comes after the last answer, or nil
	cut       []tool.Result    // of the calls of the last answer, if it was cut
}

// scope is where a turn is made.
type scope uint8

const (
	scopeOwn    scope = iota // nowhere else
	scopeBranch              // on a branch of the State of the run
	scopeCalled              // within another turn, or in the call of a tool
)

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
	if _, called := tool.CallOf(ctx); nested || called {
		t.scope = scopeCalled
	}
	t.run = runctx.RunOf(ctx)
	if t.host = t.run; t.run == nil {
		return t, nil
	}
	if inside.Branch(t.run.State()) != inside.Branch(base) { // what is done there is not stored before it is joined
		t.run, t.scope = nil, max(t.scope, scopeBranch)
		return t, nil
	}
	if answers, _ := t.run.Progress(); answers == 0 && t.scope == scopeOwn {
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
	if t.scope == scopeCalled {
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
func (t *Turn) Commit(ctx context.Context) error { return t.commit(ctx, t.commitRun) }

func (t *Turn) commit(ctx context.Context, commitRun func(context.Context) error) error {
	err := commitRun(ctx)
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
	if t.run != nil || t.scope != scopeOwn || len(said) == 0 || !slices.ContainsFunc(t.base.Fields(), writable) {
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
	if t.purse != nil {
		if err := t.purse.spend(t, r); err != nil {
			return false, err
		}
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
	calls := inside.RecordedCalls(t.st, r.Output)
	if t.ended, t.cut = &e, nil; e.cut {
		if err := t.answerCut(calls, r.Stop); err != nil {
			return false, err
		}
		calls = nil
	}
	t.setCalls(slices.DeleteFunc(slices.Clone(calls), func(c state.ToolCall) bool { return !t.Has(c.Name) }))
	t.others = len(t.calls) < len(calls)
	t.late, t.failure = nil, nil
	if t.run != nil && t.scope == scopeOwn {
		answers, _ := t.run.Progress()
		t.run.SetProgress(answers+1, !e.more)
	}
	if t.heard != nil {
		t.heard(r.Output, e)
	}
	return e.more, nil
}

// setCalls replaces the calls that Call makes.
func (t *Turn) setCalls(calls []state.ToolCall) {
	t.calls, t.taken, t.open, t.step = calls, make([]bool, len(calls)), len(calls), nil
}
