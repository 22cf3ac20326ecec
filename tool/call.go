package tool

import (
	"context"
	"errors"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/runctx"
)

// Call runs the tool. It checks the arguments, adds the injected fields, all
// from one version of the state, calls the function, and writes the outputs as
// one version. It returns the whole result as JSON. A function without a result,
// whose type is a struct without members or, for [Raw], which returns "", has the
// text "NAME successfully executed"; nil is null, which a model reads as a value
// that was not found, and a nil list or map is empty. Missing arguments, "" and
// null, count as {}.
//
// In the result and in the texts of errors, [SECRET] stands for the value of
// each Secret field that st may read, unless the tool was made with [Reveal].
// [errors.Is] and [errors.As] find the wrapped errors, which are not masked.
// What outputs write to fields is not masked: the rights to the field protect
// it.
//
// If there is an error, nothing is written. The error is an [*ArgumentError] if
// the arguments are wrong, an [*InputError] or [*OutputError] if a field cannot
// be read or written, a [*PanicError] if the function panicked, and otherwise
// the error of the function. A nil ctx is [state.ErrInvalid]. The text of an
// error contains no injected value, whether or not it is a secret, unless the
// function put it there. A field that the schema does not have is an error
// before the function is called.
//
// st has the rights of the caller. The outputs are journalled with its agent
// and cause, see [state.State.WithCause].
func (t *Tool) Call(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error) {
	if t == nil || t.call == nil {
		return "", &kindError{ErrInvalidTool, errors.New("tool: the Tool is nil, or no constructor has made it")}
	}
	if ctx == nil {
		return "", errNilContext(t.name)
	}
	call := &callState{Call: Call{Key: newKey(ctx), Name: t.name, Agent: st.Agent()}}
	ctx = context.WithValue(ctx, callKey{}, call)
	if tracer := tracerIn(ctx); tracer != nil {
		return t.callTraced(ctx, tracer, st, args)
	}
	return t.callOnce(ctx, st, args)
}

// callOnce makes a call and writes its outputs.
func (t *Tool) callOnce(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error) {
	if err := t.checkFields(st); err != nil {
		return "", err
	}
	if err := t.checkOutputs(st); err != nil {
		return "", err
	}
	a := t.answer(ctx, st, st, callIn(ctx), args)
	if a.err == nil {
		a.err = t.write(st, a.outputs)
	}
	if a.err != nil {
		return "", a.err
	}
	return a.text, nil
}

// answer is the outcome of a call.
type answer struct {
	text    state.JSON // for the model
	outputs []output   // not written yet
	err     error
	digest  string // of the arguments and of what is injected, if the call waits
}

// answer makes a call, all but writing its outputs. Fields are injected from
// reads.
func (t *Tool) answer(ctx context.Context, st, reads *state.State, call *callState, args state.JSON) (a answer) {
	m, reads := t.newMask(reads)
	if len(t.sources) > 0 {
		reads = reads.Snapshot() // what is shown is what is injected
	}
	defer func() {
		if errors.Is(a.err, ErrSuspended) {
			a.digest = t.digest(reads, args)
		}
	}()
	defer recoverPanic(t.name, &a.err)
	input, err := t.approve(ctx, reads, call, args)
	if err == nil && t.once {
		err = t.beginOnce(ctx, st, call, args)
	}
	if err != nil {
		return answer{err: m.with(t, st).error(err)}
	}
	r, err := t.attempt(ctx, st, input, func() (any, error) { return t.approve(ctx, reads, call, args) })
	m = m.with(t, st)
	if err != nil {
		return answer{err: m.error(err)}
	}
	outputs, err := t.outputs(r)
	text := m.json(r.text)
	if r.empty { // null would read as a result that was not found
		text = state.JSONText(t.name + " successfully executed")
	}
	if edited := call.approval.Input; call.Approved && edited != "" {
		text = state.JSONText("A person has changed the arguments to " + string(m.json(edited)) + ". The result: " + string(text))
	}
	return answer{text: text, outputs: outputs, err: err}
}

// beginOnce stores that a call is about to be made. In a call that was begun
// before, it returns an error of Suspend, unless a person has said that it is to be
// made again.
func (t *Tool) beginOnce(ctx context.Context, st *state.State, call *callState, args state.JSON) error {
	run := runctx.RunOf(ctx)
	if run == nil {
		return nil
	}
	err := run.BeginOnce(ctx, state.ToolCall{ID: call.ID, Key: call.Key, Name: call.Name, Input: args},
		t.suspension(st, "", "", nil))
	if errors.Is(err, runctx.ErrBegun) {
		return Suspend(err)
	}
	return err
}

// suspension returns what is known of a call that waits.
func (t *Tool) suspension(st *state.State, reason, digest string, err error) runctx.Suspension {
	out := runctx.Suspension{
		Reason: reason, Expires: t.expires, Digest: digest,
		IsClients: errors.Is(err, runctx.ErrClients), HasBegun: errors.Is(err, runctx.ErrBegun),
	}
	if t.deciders != nil {
		out.Deciders = inside.Admitted(st, *t.deciders)
	}
	return out
}
