package tool

import (
	"context"
	"errors"

	"github.com/agentstate/state"
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
	if _, ok := CallOf(ctx); ok { // of a call that makes this one
		ctx = context.WithValue(ctx, callKey{}, (*Call)(nil))
	}
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
	a := t.answer(ctx, st, st, args)
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
}

// answer makes a call, all but writing its outputs. Fields are injected from
// reads.
func (t *Tool) answer(ctx context.Context, st, reads *state.State, args state.JSON) (a answer) {
	defer recoverPanic(t.name, &a.err)
	m, reads := t.newMask(reads)
	input, err := t.prepare(reads, args)
	if err != nil {
		return answer{err: m.with(t, st).error(err)}
	}
	if t.approval != nil {
		if err := t.checkApproval(ctx, input); err != nil {
			return answer{err: m.with(t, st).error(err)}
		}
	}
	r, err := t.invoke(ctx, st, input)
	m = m.with(t, st)
	if err != nil {
		return answer{err: m.error(err)}
	}
	outputs, err := t.outputs(r)
	if r.empty { // null would read as a result that was not found
		return answer{text: state.JSONText(t.name + " successfully executed"), outputs: outputs, err: err}
	}
	return answer{text: m.json(r.text), outputs: outputs, err: err}
}
