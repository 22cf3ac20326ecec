package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/runctx"
)

// Step is the calls of one message of a model, made one by one: in any order,
// concurrently or in sequence, and not necessarily all. It is for programs that
// have their own agent loop. [Run] makes a whole step.
//
// Whatever the order and the timing of the calls, their outputs are written to
// fields in the order of the message. The outputs of a call are written as soon
// as each call in front of it has returned, failed or been suspended, and by
// End at the latest.
//
// All methods are safe for concurrent use.
type Step struct {
	ctx   context.Context
	st    *state.State
	box   toolbox
	calls []stepCall
	// batches is how many batches Run makes of the calls; 0 without Run.
	batches int
	// untried is set if nobody is told what a call returned before End, so that
	// outputs need not be tried before they are written.
	untried bool

	mu    sync.Mutex
	order []*stepCall // the calls in the order in which outputs are written
	next  int         // in order: everything in front of it has been written
	held  int         // how many calls are held
	ended bool
	// writing is set while a goroutine writes outputs, without the lock. No
	// other writes meanwhile.
	writing bool
	idle    sync.Cond // writing is not set any more
}

// stepCall is a call of a step.
type stepCall struct {
	state.ToolCall        // with the key that it has in a history, which its result has too
	key            string // that, or else one that ends with the process
	index          int
	tool           *Tool        // nil if there is none
	st             *state.State // of the step, with the call as the cause; since it is made
	batch          int          // of Run, from 1
	trace          *callTrace   // until a Tracer is told of the end of the call
	phase          phase
	outputs        []output // while it is held
	result         Result   // since it is held
	reason         string   // why it is suspended
	digest         string   // of its arguments and of what is injected, if it is suspended
	verdict        *runctx.Verdict
}

// phase is the progress of a call.
type phase uint8

const (
	pending   phase = iota // not made
	running                // the function has not returned
	held                   // the outputs are not written yet
	suspended              // the function has returned Suspend
	done                   // the call has its result
)

// Result is the result of one call of a step.
type Result struct {
	// Index is the index of the call in its step.
	Index int
	// Message answers the call: with what the function returned, or with
	// [state.ToolError] and the text of Err. The model reads it.
	Message state.ToolResultMessage
	// Err is the reason why the call failed, or nil. The outputs of a failed
	// call have written nothing. What a stateful tool wrote itself stays.
	Err error
}

// ErrNotPending is returned by [Step.Call] for a call that cannot be made: it
// has been made already, its index is not that of a call, or the step has
// ended.
var ErrNotPending = errors.New("tool: the call is not pending")

// ErrSuspended is matched by the errors that [Suspend] returns.
var ErrSuspended = errors.New("tool: suspended")

// Suspend returns an error by which the function of a tool says that its call
// stays pending, because its result comes from outside. The call has no
// result in its step and its outputs are not written. It is answered later: by
// a call in another step, or by a message that the program makes itself. If the
// context of the step is that of a run of package workspace, the run suspends
// the call, as its method Suspend does. err is the reason, with the same text,
// and errors.Is and errors.As find it. For a nil err, Suspend returns
// ErrSuspended itself. A call that a person has to approve before it is made
// is for [NeedsApproval].
func Suspend(err error) error {
	if err == nil {
		return ErrSuspended
	}
	return &kindError{ErrSuspended, err}
}

// BeginStep begins the step of calls, which are those of one message of the
// model. Nothing is called yet. When ctx has ended, no further call is made.
//
//	step, err := tool.BeginStep(ctx, st, tools, message.Calls())
//	for i := range message.Calls() { // or concurrently, or not all of them
//		r, err := step.Call(ctx, i)
//	}
//	results, err := step.Answer() // in the order of the calls
//
// An error is a mistake of the program: it has an [*InputError] or an
// [*OutputError] for each field that an option of one of the tools, called or
// not, names and that the schema of st does not have, or has with another type.
//
// Others may use st at the same time.
func BeginStep(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall) (*Step, error) {
	var errs []error
	for _, t := range tools {
		if err := t.checkFields(st); err != nil {
			errs = append(errs, err)
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	s := &Step{ctx: ctx, st: st, box: newToolbox(tools), calls: make([]stepCall, len(calls))}
	s.idle.L = &s.mu
	s.order = make([]*stepCall, len(calls))
	for i, call := range recordedCalls(ctx, st, calls) {
		s.calls[i].ToolCall, s.calls[i].index = call, i
		if s.calls[i].key = call.Key; call.Key == "" {
			s.calls[i].key = newKey(ctx)
		}
		s.calls[i].tool, _ = s.box.named(call.Name)
		s.order[i] = &s.calls[i]
	}
	return s, nil
}

// recordedCalls returns calls with the keys that they have in the history of st.
// One without a key is the first open call of the latest answer that has its id,
// name and input, or else its id and name. What the function of a call makes is in
// no history.
func recordedCalls(ctx context.Context, st *state.State, calls []state.ToolCall) []state.ToolCall {
	if callIn(ctx) != nil || !slices.ContainsFunc(calls, func(c state.ToolCall) bool { return c.Key == "" }) {
		return calls
	}
	open, taken := openCalls(st), map[string]bool{}
	for _, c := range calls {
		taken[c.Key] = true
	}
	calls = slices.Clone(calls)
	for _, exact := range []bool{true, false} {
		for i := range calls {
			c := &calls[i]
			at := slices.IndexFunc(open, func(o state.ToolCall) bool {
				return !taken[o.Key] && o.ID == c.ID && o.Name == c.Name && (o.Input.Equal(c.Input) || !exact && c.ID != "")
			})
			if c.Key == "" && at >= 0 {
				c.Key = open[at].Key
				taken[c.Key] = true
			}
		}
	}
	return calls
}

// openCalls returns the open calls of a history, those of the latest answer first.
func openCalls(st *state.State) (open []state.ToolCall) {
	pending := map[string]bool{}
	for _, c := range st.History().Pending() {
		pending[c.Key] = true
	}
	if len(pending) == 0 {
		return nil
	}
	for _, r := range st.History().All() {
		own := slices.DeleteFunc(inside.CallsOf(r.Output...), func(c state.ToolCall) bool { return !pending[c.Key] })
		open = append(own, open...)
	}
	return open
}

// Call makes the call with index i and returns its result, whose Message and Err
// say what [Tool.Call] would have returned. It reads the injected fields when it
// begins, and it waits for no other call. Each call can be made once.
//
// When the function has returned, the outputs are tried on a copy of the state.
// If the state refuses them, the call fails.
//
// The function of a stateful tool uses the state directly. No function is
// guaranteed to see what other calls of the step write: only Run makes readers
// wait for writers.
//
// An error means that the call has no result. It is ErrNotPending if the call
// cannot be made, or if the step has ended before the function returned. It is
// ErrSuspended, with the reason, if the function has suspended the call. All
// other errors are the Err of the result: ErrUnknownTool if there is no tool for
// the call, a PanicError if the function panics or ends its goroutine, and the
// error of the context if ctx, or that of BeginStep, has ended before the call was
// made. A nil context is [state.ErrInvalid].
func (s *Step) Call(ctx context.Context, i int) (Result, error) {
	if i < 0 || i >= len(s.calls) {
		return Result{}, &kindError{ErrNotPending, fmt.Errorf("tool: there is no call %d in a step of %d", i, len(s.calls))}
	}
	return s.make(ctx, &s.calls[i], s.st)
}

// make makes a call, with fields from reads.
func (s *Step) make(ctx context.Context, c *stepCall, reads *state.State) (r Result, err error) {
	if err := s.begin(c); err != nil {
		return Result{}, err
	}
	finished, traced := false, false
	defer func() {
		if !finished { // code of the user has ended the goroutine
			r, err = s.finish(c, answer{err: &PanicError{Tool: c.Name}})
		}
		if traced {
			s.endTrace(c, r, err)
		}
	}()
	ctx, traced = s.startTrace(ctx, c)
	r, err = s.finish(c, s.answer(ctx, c, reads))
	finished = true
	if errors.Is(err, ErrSuspended) {
		if run := runctx.RunOf(ctx, s.ctx); run != nil {
			run.Suspend(c.ToolCall, c.tool.suspension(s.st, c.reason, c.digest, err))
		}
	}
	return r, err
}

// answer calls the function of a call.
func (s *Step) answer(ctx context.Context, c *stepCall, reads *state.State) (a answer) {
	if c.tool == nil {
		return answer{err: s.box.missingTool(s.st, c.Name)}
	}
	if err := notCalled(c, ctx, s.ctx); err != nil {
		return answer{err: err}
	}
	if err := c.tool.checkOutputs(s.st); err != nil { // a model has called what it was not shown
		return answer{err: err}
	}
	c.st = s.st.WithCause(callkey.IDOf(c.ID, c.key))
	call := &callState{Call: Call{Key: c.key, ID: c.ID, Name: c.Name, Index: c.index, Agent: c.st.Agent()}}
	call.approval, call.Approved = runctx.ApprovalOf(c.key, ctx, s.ctx)
	call.ApprovedBy = call.approval.By
	a = c.tool.answer(context.WithValue(ctx, callKey{}, call), c.st, reads, call, c.Input)
	s.mu.Lock() // the step may have given the call up
	defer s.mu.Unlock()
	if call.Approved {
		c.verdict = &runctx.Verdict{
			Kind: string(DecisionApprove), By: call.ApprovedBy, Input: json.RawMessage(call.approval.Input),
		}
	}
	c.digest = a.digest
	return a
}

// notCalled is the error of a call that was not made because a context has
// ended or is nil.
func notCalled(c *stepCall, contexts ...context.Context) error {
	for _, ctx := range contexts {
		if ctx == nil {
			return errNilContext(c.Name)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("tool %q: not called: %w", c.Name, err)
		}
	}
	return nil
}

// begin notes that a call is being made.
func (s *Step) begin(c *stepCall) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return s.notPending(c, "the step has ended")
	case c.phase != pending:
		return s.notPending(c, "it has been made already")
	}
	c.phase = running
	return nil
}

func (s *Step) notPending(c *stepCall, reason string) error {
	return &kindError{ErrNotPending, fmt.Errorf("tool: call %d is not pending: %s", c.index, reason)}
}

// finish notes the outcome of a call, writes the outputs that are due, and
// returns the result of the call, or an error if it has none.
func (s *Step) finish(c *stepCall, a answer) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.err == nil {
		a.err = s.hold(c, a)
	}
	switch {
	case a.err == nil && c.phase == held:
	case s.ended || c.phase != running:
		return Result{}, s.notPending(c, "the step has ended")
	case errors.Is(a.err, ErrSuspended):
		c.phase, c.reason = suspended, strings.TrimPrefix(a.err.Error(), toolPrefix(c.Name))
	default:
		s.fail(c, a.err)
	}
	s.writeDue()
	if c.phase == suspended {
		return Result{}, a.err
	}
	return c.result, nil // which has the error of the outputs, if they have been written now
}

// hold keeps the outputs of a call until they are due. It returns an error if
// the state would refuse them. Code of users runs without the lock.
func (s *Step) hold(c *stepCall, a answer) error {
	if c.phase == running && !s.ended && !s.untried && len(a.outputs) > 0 && !s.isNext(c) {
		if err := s.unlocked(func() error { return c.tool.try(c.st, a.outputs) }); err != nil {
			return err
		}
	}
	if s.ended || c.phase != running {
		return nil
	}
	c.phase, c.outputs = held, a.outputs
	c.result = Result{Index: c.index, Message: s.recorded(c, state.ToolResult(c.ToolCall, a.text))}
	s.held++
	return nil
}

// fail notes the error that is the result of a call.
func (s *Step) fail(c *stepCall, err error) {
	c.phase = done
	text := err.Error()
	var agent *runctx.Unfinished
	if errors.As(err, &agent) && agent.Said != "" {
		text += "\nIt had said: " + agent.Said
	}
	c.result = Result{Index: c.index, Message: s.recorded(c, state.ToolError(c.ToolCall, text)), Err: err}
}

// recorded returns the result of a call as it is recorded, with what a person has
// decided about it.
func (s *Step) recorded(c *stepCall, m state.ToolResultMessage) state.ToolResultMessage {
	if c.verdict != nil {
		m = c.verdict.Of(m)
	}
	return inside.Sized(s.st, m).(state.ToolResultMessage)
}

// unlocked calls fn without the lock.
func (s *Step) unlocked(fn func() error) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	return fn()
}

// isNext reports whether the outputs of a running call would be written at
// once, with no others behind them. The write itself is the trial then.
func (s *Step) isNext(c *stepCall) bool {
	s.skipSettled()
	return !s.writing && s.held == 0 && s.next < len(s.order) && s.order[s.next] == c
}

// skipSettled moves next to the first call that may still write something.
func (s *Step) skipSettled() {
	for ; s.next < len(s.order); s.next++ {
		switch c := s.order[s.next]; {
		case c.phase == held:
			return
		case c.tool == nil, c.phase == suspended, c.phase == done, s.ended:
		default:
			return
		}
	}
}

// writeDue writes the outputs whose turn has come. If another goroutine is
// writing, that one goes on with them.
func (s *Step) writeDue() {
	if s.writing {
		return
	}
	s.writing = true
	defer func() {
		s.writing = false
		s.idle.Broadcast()
	}()
	for {
		s.skipSettled()
		if s.next == len(s.order) || s.order[s.next].phase != held {
			return
		}
		s.writeHeld(s.order[s.next])
	}
}

// writeHeld writes the outputs of a call, without the lock.
func (s *Step) writeHeld(c *stepCall) {
	var err error = &PanicError{Tool: c.Name} // if code of the user ends the goroutine
	defer func() {
		s.held--
		c.phase, c.outputs = done, nil
		if err != nil {
			s.fail(c, err)
		}
	}()
	err = s.unlocked(func() error { return c.tool.write(c.st, c.outputs) })
}

// End ends the step and returns the results in the order of the calls. It
// writes the outputs that are still held. A call that has not been made or is
// suspended has no result, and neither has one whose function is still running.
//
// A call that has returned a result fails with an [*OutputError] if the state
// has changed since then, by the outputs of calls in front of it or by others,
// and now refuses its outputs. This is the only case in which the result in the
// step differs from that of Call.
//
// End does not change the conversation: [Step.Answer] adds the results to it.
// Further calls of End return the same results.
func (s *Step) End() []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for s.writeDue(); s.writing; s.writeDue() {
		s.idle.Wait()
	}
	results := make([]Result, 0, len(s.calls))
	for i := range s.calls {
		if c := &s.calls[i]; c.phase == done {
			results = append(results, c.result)
		}
	}
	return results
}

// Suspension returns why the call with index i waits, and the digest of what it
// would be made with. It is for package loop.
func (s *Step) Suspension(i int) runctx.Suspension {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.calls[i]
	return runctx.Suspension{Reason: c.reason, Digest: c.digest}
}

// Suspended yields the calls that wait for a result from outside, and why. It is
// for package loop.
func (s *Step) Suspended() iter.Seq2[state.ToolCall, runctx.Suspension] {
	return func(yield func(state.ToolCall, runctx.Suspension) bool) {
		for i := range s.calls {
			if c := &s.calls[i]; c.phase == suspended &&
				!yield(c.ToolCall, runctx.Suspension{Reason: c.reason, Digest: c.digest}) {
				return
			}
		}
	}
}
