package tool

import (
	"context"

	"github.com/agentstate/state"
)

// Tracer is told of the calls of tools that [Run], [Step.Call] and [Tool.Call]
// make, as they begin and end. They find it in their context; see [WithTracer].
//
// A Tracer must be safe for concurrent use. It is called without a lock, and
// should be fast. A panic in it is recovered: the call is made as without a
// Tracer.
type Tracer interface {
	// StartCall is called on the goroutine of the call, before the arguments
	// are checked. It returns the context in which the call goes on: ctx, or a
	// context derived from it.
	StartCall(ctx context.Context, c CallInfo) context.Context
	// EndCall is called once for each StartCall that has returned, with the
	// context that it has returned. r is the result as the caller gets it,
	// without secrets.
	//
	// The call of a function that is still running when ctx ends is abandoned
	// by Run. EndCall is then called on another goroutine than StartCall. A
	// call that is suspended, or whose step has ended in the meantime, has no
	// result: r.Message is the zero message, and r.Err matches ErrSuspended or
	// ErrNotPending.
	//
	// In a step, outputs that wait for those of calls in front of them are
	// written after EndCall. If the state refuses them, only [Step.End] and Run
	// return the error.
	EndCall(ctx context.Context, c CallInfo, r Result)
}

// CallInfo describes a call to a [Tracer].
type CallInfo struct {
	// Tool is nil if there is no tool for the call. The model has made up its
	// name then.
	Tool *Tool
	// Call is the call of the model. Input is what the model has written, without
	// injected values. ID is "" for a call by [Tool.Call].
	Call state.ToolCall
	// Agent is that of the state, which signs what the call writes; "" for the
	// host.
	Agent string
	// Batch counts the batches of the step from 1, of which there are Batches.
	// Both are 0 if the call is not made by [Run]. Batch is 0 if Tool is nil.
	Batch, Batches int
	// Redact masks all secrets of the state in a text, also those that the agent
	// may not read. Input may contain some, and so may the result of a tool that
	// was made with [Reveal].
	Redact func(text string) string
}

// newCallInfo returns what a Tracer is told of a call.
func newCallInfo(t *Tool, call state.ToolCall, st *state.State) CallInfo {
	return CallInfo{
		Tool: t, Call: call, Agent: st.Agent(), Redact: func(text string) string {
			return inside.HostRedactor(st).Redact(text)
		},
	}
}

type tracerKey struct{}

// WithTracer returns a context in which calls of tools are told to t. A nil t
// ends the tracing by a Tracer of ctx.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// tracerIn returns the Tracer of the first context that has one.
func tracerIn(contexts ...context.Context) Tracer {
	for _, ctx := range contexts {
		if ctx == nil {
			continue
		}
		if t, ok := ctx.Value(tracerKey{}).(Tracer); ok {
			return t
		}
	}
	return nil
}

// callTrace is a call that a Tracer has been told of.
type callTrace struct {
	tracer Tracer
	ctx    context.Context // returned by StartCall
	info   CallInfo
}

// startTrace tells a tracer of a call. It returns nil if the tracer has
// panicked.
func startTrace(ctx context.Context, tracer Tracer, info CallInfo) (t *callTrace) {
	defer func() {
		if recover() != nil {
			t = nil
		}
	}()
	started := tracer.StartCall(ctx, info)
	if started == nil {
		started = ctx
	}
	return &callTrace{tracer, started, info}
}

// end tells the tracer of the end of the call.
func (t *callTrace) end(r Result) {
	if t == nil {
		return
	}
	defer func() { _ = recover() }()
	t.tracer.EndCall(t.ctx, t.info, r)
}

// callTraced is the call of a tool outside of steps, told to a tracer.
func (t *Tool) callTraced(
	ctx context.Context, tracer Tracer, st *state.State, args state.JSON,
) (text state.JSON, err error) {
	call := state.ToolCall{Name: t.name, Input: args, Key: callIn(ctx).Key}
	trace := startTrace(ctx, tracer, newCallInfo(t, call, st))
	if trace != nil {
		ctx = trace.ctx
	}
	err = &PanicError{Tool: t.name} // if code of the user ends the goroutine
	defer func() {
		if err != nil {
			trace.end(Result{Message: state.ToolError(call, err.Error()), Err: err})
			return
		}
		trace.end(Result{Message: state.ToolResult(call, text)})
	}()
	return t.callOnce(ctx, st, args)
}

// startTrace tells the Tracer of the contexts of a call, if there is one, that
// the call is being made. It returns the context of the call, and whether the
// Tracer is to be told of its end.
func (s *Step) startTrace(ctx context.Context, c *stepCall) (traced context.Context, ok bool) {
	tracer := tracerIn(ctx, s.ctx)
	if tracer == nil || ctx == nil || c.tool != nil && notCalled(c, ctx, s.ctx) != nil {
		return ctx, false
	}
	call := c.ToolCall
	call.Key = c.key
	info := newCallInfo(c.tool, call, s.st)
	info.Batch, info.Batches = c.batch, s.batches
	trace := startTrace(ctx, tracer, info)
	if trace == nil {
		return ctx, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.trace = trace
	return trace.ctx, true
}

// endTrace tells the Tracer of the end of a call, unless that has been done
// when the call was given up. r and err are what the call has returned.
func (s *Step) endTrace(c *stepCall, r Result, err error) {
	s.mu.Lock()
	trace := c.trace
	c.trace = nil
	switch {
	case err != nil && c.phase == done: // given up before trace was set
		r = c.result
	case err != nil:
		r = Result{Index: c.index, Err: err}
	}
	s.mu.Unlock()
	trace.end(r)
}
