package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
)

// Loop lets agents work on a State until nobody has anything left to do: it makes
// the calls that are left, asks the model of the agent whose turn it is, records
// the answer, makes its calls, and so on.
//
//	loop := &loop.Loop{Agents: map[string]loop.Agent{
//		"billing": {Ask: ask, Tools: []*tool.Tool{refund, search}},
//	}}
//	err := st.UserSays("Refund my order.")
//	reply, err := loop.Run(ctx, st)
//
// In a run of package workspace, whose function Loop makes one of it, each answer
// with calls is committed before its calls are made, and their results before a
// model is asked again. So a process that takes the run over goes on where the
// one before has died: it makes the calls that are left, with their ids, and does
// not ask again what was answered, nor after the last word.
//
// A Loop is safe for concurrent use, on one State as well if its agents are. Its
// fields must not change while it runs.
type Loop struct {
	// Agents are the agents by their names, with whose rights they work. One with
	// the name "" has those of the State that Run is given.
	Agents map[string]Agent
	// Route returns whose turn is next, or false if nobody's is, as Next of
	// [github.com/agentstate/state/route.Router] does (default: it is always that of
	// the only agent, until it has answered without a call).
	//
	// If calls of one answer write one field so that different agents are next, none
	// is: the field gets the value that it had before, and the results of the calls
	// say so. To see that, Route is called with the State as it was between them.
	//
	// If Route uses a field that the schema of the State does not have, which looks
	// unset to it, Run returns [state.ErrInvalid].
	Route func(st *state.State) (agent string, ok bool)
	// Commit is called before tool calls, after them, and after each answer,
	// for a program that stores the State itself. In a run of a workspace, the run
	// is committed before it.
	Commit func(ctx context.Context) error
	// MaxSteps is how many answers models may give in one run of a workspace, or in
	// one call of Run (default 50). Beyond it, the error is ErrMaxSteps. A negative
	// number is refused.
	MaxSteps int
	// MaxRepeats is how many times in a row, since the user has spoken, a call is made
	// with the same arguments and the same result (default 3). One more is not made, and
	// the model reads why; if it makes it all the same, Run ends with a StopError whose
	// Stop is [state.StopRepeated]. It is not for tools that are annotated as ReadOnly or
	// have [tool.Polls]. A negative number lets all calls be made.
	MaxRepeats int
	// Budget limits the tokens and the requests of a run, and those of a user in a
	// period (default: no limit).
	Budget Budget
	// CallTimeout is how long the function of a tool may take for one call, unless the
	// tool says so itself: see [tool.Timeout] (default: no limit).
	CallTimeout time.Duration
}

// Agent is an agent of a [Loop].
type Agent struct {
	// Ask sends one request to the model, with what t says, and records the answer
	// by t.Said. Package wire records it by itself. ctx carries the turn, for
	// [TurnOf], and its State, for [state.FromContext].
	//
	// If the error may pass, and no answer was recorded, Ask is called again after
	// a second, which doubles with each try up to a minute, or after the time that
	// the service has named, but not more than 10 minutes; at most six times in
	// all. See [Retryable].
	Ask func(ctx context.Context, t *Turn) error
	// Tools are those that the agent may use if it has the rights to their fields:
	// see [tool.Usable].
	Tools []*tool.Tool
}

// ErrMaxSteps is returned by [Loop.Run] if models have answered too often.
var ErrMaxSteps = errors.New("loop: too many steps")

// Run lets the agents work until the turn of none is next. It returns the last
// text that a model has said, also with an error: if Ask fails behind an answer that
// is recorded, the error says so.
//
// If calls of the last answer wait for a result from outside, no model is asked
// before they have one or the user has said more. The error is then ErrSuspended,
// with the calls and the reasons. A call that is left from an earlier Run is made
// first; if it has waited, its tool is asked again. An approved call of an agent
// that the Loop has no longer is answered as not made. Outside of a workspace, Run
// asks a model at least once otherwise: call it when there is something to
// answer.
//
// If the last answer has ended before the model had said all, no model is asked
// either: the error is a [*StopError] that matches ErrStopped, and what was said is
// in the conversation. So it is when a Budget is spent.
//
// Other errors are ErrMaxSteps, [state.ErrInvalid] for a Loop that cannot work,
// and those of Ask, Commit and the State. Run can be called again after each.
func (l *Loop) Run(ctx context.Context, st *state.State) (reply string, err error) {
	r, err := l.begin(ctx, st)
	if err != nil {
		return "", err
	}
	for more := true; more && err == nil; {
		var name string
		if err = r.makeOpenCalls(); err == nil {
			name, more, err = r.next()
		}
		if err == nil && more {
			err = r.ask(name)
		}
	}
	_, _, reply = r.progress()
	return reply, err
}

// loopRun is one Run of a Loop.
type loopRun struct {
	*Loop
	ctx   context.Context
	st    *state.State
	run   runctx.Run // or nil
	names []string
	turns map[string]*Turn

	mu    sync.Mutex // Ask may record an answer on a goroutine of its own
	steps int        // the answers so far
	ended bool       // nobody is to be asked behind the last one
	reply string
	stop  *StopError // how the last one has ended, if that ends the run, or nil
	again *string    // the agent that is to be asked again, whatever Route says, or nil
}

func (l *Loop) begin(ctx context.Context, st *state.State) (*loopRun, error) {
	switch {
	case ctx == nil:
		return nil, invalid("Loop.Run: the context is nil")
	case st == nil:
		return nil, invalid("Loop.Run: the State is nil")
	case len(l.Agents) == 0:
		return nil, invalid("Loop has no Agents")
	case l.MaxSteps < 0:
		return nil, invalid("Loop has MaxSteps %d", l.MaxSteps)
	case l.CallTimeout < 0:
		return nil, invalid("Loop has CallTimeout %v", l.CallTimeout)
	case l.Route == nil && len(l.Agents) > 1:
		return nil, invalid("Loop has several Agents and no Route")
	}
	if err := l.check(st); err != nil {
		return nil, err
	}
	r, err := l.newRun(ctx, st)
	if err != nil {
		return nil, err
	}
	msgs := state.Messages.GetOr(st, nil)
	switch {
	case r.run == nil: // else the run knows
		for _, turn := range r.turns {
			turn.late = lateCalls(msgs)
		}
		r.resume(msgs)
	case r.steps > 0: // those before were given to a process that has died
		for _, m := range sinceUser(msgs) {
			if text := textOf(m); text != "" {
				r.reply = text
			}
		}
		r.resume(msgs)
	}
	return r, nil
}

// newRun returns a run of the loop with a Turn for each agent.
func (l *Loop) newRun(ctx context.Context, st *state.State) (*loopRun, error) {
	if l.CallTimeout > 0 {
		ctx = runctx.WithCallTimeout(ctx, l.CallTimeout)
	}
	r := &loopRun{
		Loop: l, ctx: state.NewContext(ctx, st), st: st, run: runctx.RunOf(ctx),
		names: slices.Sorted(maps.Keys(l.Agents)), turns: map[string]*Turn{},
	}
	for _, name := range r.names {
		agent := l.Agents[name]
		turn, err := NewTurn(r.ctx, name, agent.Tools...)
		if err != nil {
			return nil, err
		}
		turn.stored, turn.route = l.Commit, l.Route
		turn.heard = func(output []state.Message, e ending) { r.noteAnswer(name, output, e) }
		r.turns[name] = turn
		if turn.scope != scopeOwn {
			r.run = nil // the progress is that of another Loop, or of the trunk
		}
		turn.joins = turn.run != nil && turn.scope == scopeOwn
	}
	if r.run != nil {
		r.steps, r.ended = r.run.Progress()
	}
	p := r.turns[r.names[0]].purse
	if r.Budget != (Budget{}) {
		p = r.newPurse(p)
	}
	for _, turn := range r.turns {
		turn.purse = p
	}
	return r, nil
}

// noteAnswer is told of each answer of an agent that is recorded.
func (r *loopRun) noteAnswer(agent string, output []state.Message, e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	r.ended, r.stop, r.again = !e.more, e.err, nil
	if e.more && (e.cut || len(inside.CallsOf(output...)) == 0) {
		r.again = &agent
	}
	if text := textOf(output...); text != "" {
		r.reply = text
	}
}

// progress returns how many answers there are, whether the last one had no calls,
// and the last text.
func (r *loopRun) progress() (steps int, ended bool, reply string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps, r.ended, r.reply
}

// makeOpenCalls makes the calls that have no result yet, of whatever answer.
func (r *loopRun) makeOpenCalls() error {
	for _, name := range r.names {
		turn := r.turns[name]
		calls := turn.Pending()
		if len(calls) == 0 {
			continue
		}
		r.expectAnswer()
		calls, stuck, err := r.answerRepeats(turn, calls)
		if err == nil {
			_, err = turn.Run(turn.Context(r.ctx), calls...)
		}
		if err != nil {
			return err
		}
		if stuck {
			r.giveUp(turn.st.Agent())
			return turn.Commit(r.ctx)
		}
	}
	return r.answerOrphans()
}

// expectAnswer notes that a model is to be asked: there is something to answer.
func (r *loopRun) expectAnswer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.stop = false, nil
	if r.run != nil {
		r.run.SetProgress(r.steps, false)
	}
}

// next returns whose turn is next, if it is anybody's.
func (r *loopRun) next() (name string, more bool, err error) {
	if err := r.suspended(); err != nil {
		return "", false, err
	}
	if err := r.stopped(); err != nil {
		return "", false, err
	}
	if name, ok := r.goesOn(); ok {
		return name, true, nil
	}
	if r.Route == nil {
		_, ended, _ := r.progress()
		return r.names[0], !ended, nil
	}
	name, more, err = r.route()
	if _, known := r.turns[name]; err == nil && more && !known {
		return "", false, invalid("Loop has no agent %s, which Route has named", fault.Quote(name))
	}
	return name, more, err
}

// route calls Route. The error is that of a field which the schema lacks: to a
// function that answers yes or no it looks unset.
func (r *loopRun) route() (name string, more bool, err error) {
	var lacking atomic.Pointer[error]
	name, more = r.Route(inside.TellLacking(r.st, func(err error) { lacking.CompareAndSwap(nil, &err) }))
	if err := lacking.Load(); err != nil {
		return "", false, invalid("Route uses a field that the schema of the State does not have: %w", *err)
	}
	return name, more, nil
}

// suspended returns ErrSuspended if calls wait that a model has made since the user
// has spoken.
func (r *loopRun) suspended() error {
	calls := inside.CallsOf(sinceUser(state.Messages.GetOr(r.st, nil))...)
	var waits []suspendedCall
	for _, name := range r.names {
		for _, w := range r.turns[name].waiting() {
			if removeCall(&calls, w.ToolCall) {
				waits = append(waits, w)
			}
		}
		if r.run != nil { // whose calls those of each turn are
			break
		}
	}
	if waits == nil {
		return nil
	}
	return errWaiting(waits...)
}

// errWaiting returns ErrSuspended with the calls that wait, and why.
func errWaiting(calls ...suspendedCall) error {
	texts := make([]string, len(calls))
	for i, c := range calls {
		if texts[i] = fmt.Sprintf("%s %s", fault.Call(c.ID, c.Name), c.Key); c.reason != "" {
			texts[i] += ": " + c.reason
		}
	}
	return &kindError{tool.ErrSuspended, fmt.Errorf("loop: suspended: %s", strings.Join(texts, "; "))}
}

// ask asks a model, again and again if that may help.
func (r *loopRun) ask(name string) error {
	limit := r.MaxSteps
	if limit == 0 {
		limit = 50
	}
	before, _, _ := r.progress()
	if before >= limit {
		return &kindError{ErrMaxSteps, fmt.Errorf("loop: models have answered %d times, and there is more to do", before)}
	}
	turn := r.turns[name]
	for try := 1; ; try++ {
		if turn.purse != nil {
			if limit := turn.purse.refuses(turn); limit != "" {
				_, _, reply := r.progress()
				return &StopError{Agent: turn.st.Agent(), Stop: state.StopBudget, Word: limit, Reply: reply}
			}
		}
		turn.noteFailure(nil, 0)
		if r.run != nil {
			r.run.RestartText()
		}
		err := r.Agents[name].Ask(turn.Context(r.ctx), turn)
		steps, ended, _ := r.progress()
		if err == nil && steps == before {
			err = turn.unheard()
		}
		failed, may := passing(err, turn.lastFailure())
		switch {
		case err == nil && steps == before:
			return invalid("Ask of the agent %s has recorded no answer", fault.Quote(name))
		case steps > before && (err == nil || may && r.ctx.Err() == nil):
			if ended && (r.Route != nil || r.Commit != nil) { // the end of the run stores the last word
				return turn.Commit(r.ctx)
			}
			return nil
		case steps == before && may && try < maxTries && failed.Wait(r.ctx, try) == nil:
		case steps > before:
			return fmt.Errorf("loop: the agent %s: its answer is recorded, and then Ask has failed: %w", fault.Quote(name), err)
		default:
			return fmt.Errorf("loop: the agent %s: %w", fault.Quote(name), err)
		}
	}
}

// sinceUser returns what was said since the user has spoken.
func sinceUser(msgs []state.Message) []state.Message {
	n := len(msgs)
	for n > 0 && msgs[n-1].Role() != "user" {
		n--
	}
	return msgs[n:]
}

// textOf returns what a model has said as text.
func textOf(output ...state.Message) string {
	var texts []string
	for _, m := range output {
		m, ok := m.(state.TextMessage)
		if !ok || m.Role() != "assistant" {
			continue
		}
		if text := cmp.Or(m.Text(), refusalOf(m)); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// refusalOf returns the words with which a model refuses in the format of OpenAI's
// Chat Completions, which are no content.
func refusalOf(m state.TextMessage) string {
	kept, _ := origin.Of(m, origin.OpenAI)
	more, _ := jsontext.Members(kept.Get("more"))
	return more.String("refusal")
}
