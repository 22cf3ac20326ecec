package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Call runs the tool. It checks the arguments, adds the injected fields, all
// from one version of the state, calls the function, and writes the outputs as
// one version. It returns the whole result as JSON. A function that returns
// nothing, which is a nil interface, a struct without members or, for [Raw], "",
// has the text "NAME successfully executed". Missing arguments, "" and null,
// count as {}.
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

// answerCall makes a call, all but writing its outputs. Fields are injected from
// reads.
func (t *Tool) answerCall(ctx context.Context, st, reads *state.State, args state.JSON) (a answer) {
	defer recoverPanic(t.name, &a.err)
	m, reads := t.newMask(reads)
	input, err := t.prepare(reads, args)
	if err != nil {
		return answer{err: m.with(t, st).error(err)}
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

// prepare checks the arguments, reads the injected fields, and returns the
// input of the function.
func (t *Tool) prepare(st *state.State, args state.JSON) (any, error) {
	in := t.newArguments()
	if errs := t.readArguments(in, args); len(errs) > 0 {
		if t.review != nil {
			errs = append(errs, t.review(st, in.input())...)
		}
		return nil, &ArgumentError{Tool: t.name, Errs: errs}
	}
	if len(t.sources) > 1 { // one read is of one version anyway
		st = st.Snapshot()
	}
	if err := t.inject(st, in); err != nil {
		return nil, err
	}
	return in.input(), nil
}

// inject adds the values of the fields that st holds to the arguments.
func (t *Tool) inject(st *state.State, args arguments) error {
	for _, source := range t.sources {
		p := t.param(source.param)
		v, err := source.read(st)
		if errors.Is(err, state.ErrNotFound) && (p == nil || !p.required) {
			continue
		}
		switch {
		case err != nil:
		case internal.IsReference(st, source.field):
			err = &state.TypeError{Field: source.field, Path: "$", Want: "a value that is JSON", Got: "a reference"}
		default:
			err = args.addField(p, source.param, v)
		}
		if err != nil {
			return &InputError{Tool: t.name, Parameter: source.param, Field: source.field, Err: err}
		}
	}
	return nil
}

// readArguments reads the arguments of the model and returns what is wrong with
// them.
func (t *Tool) readArguments(in arguments, args state.JSON) (errs []error) {
	data := []byte(args)
	if err := jsontext.Check(data, argumentLimits); err != nil && args != "" {
		return []error{argumentFault("arguments", err)}
	}
	switch kind := jsontext.Kind(data); kind {
	case "nothing", "null":
		data = []byte("{}")
	case "object":
	default:
		return []error{&fault.Error{Path: "arguments", Want: "an object", Got: kind}}
	}
	var room [16]bool
	given := append(room[:0], make([]bool, len(t.params))...)
	_ = jsontext.EachMember(data, func(name []byte, value jsontext.Span) error { // checked above
		var p *param
		m := jsontext.Member{Value: value.In(data)}
		if i := t.paramIndex(string(name)); i >= 0 {
			p, given[i] = &t.params[i], true
			m.Name = p.name
		} else {
			m.Name = string(name)
		}
		switch {
		case t.hides(m.Name):
			errs = append(errs, badArgument(m.Name, "is not an argument, it is filled in by the program"))
		case p == nil && (!t.open || t.similarParam(m.Name) != ""):
			errs = append(errs, t.unknownArgument(m.Name))
		default:
			if err := in.addArgument(p, m); err != nil {
				errs = append(errs, argumentFault(fault.Quote(m.Name), err))
			}
		}
		return nil
	})
	for i := range t.params {
		if p := &t.params[i]; p.required && !given[i] && !t.injects(p.name) {
			errs = append(errs, badArgument(p.name, "want "+p.kind+", got nothing"))
		}
	}
	if more := len(errs) - maxBadArguments; more > 0 {
		errs = append(errs[:maxBadArguments:maxBadArguments], fmt.Errorf("and %d more", more))
	}
	return errs
}

// maxBadArguments is how many bad arguments an error names. The model chooses
// how many there are, and reads the error.
const maxBadArguments = 50

// similarParam returns the parameter that a decoder may take name for, or "".
func (t *Tool) similarParam(name string) string {
	for _, p := range t.params {
		if sameName(p.name, name) && !t.injects(p.name) {
			return p.name
		}
	}
	return ""
}

// unknownArgument says that the tool has no such parameter, and which it has.
func (t *Tool) unknownArgument(name string) error {
	if similar := t.similarParam(name); similar != "" {
		return badArgument(name, "is unknown, it is spelled "+fault.Quote(similar))
	}
	var known []string
	for _, p := range t.params {
		if !t.injects(p.name) {
			known = append(known, fault.Quote(p.name))
		}
	}
	if len(known) == 0 {
		return badArgument(name, "is unknown, there are no arguments")
	}
	return badArgument(name, "is unknown, there are "+strings.Join(known, ", "))
}

// invoke calls the function.
func (t *Tool) invoke(ctx context.Context, st *state.State, input any) (result, error) {
	if t.stateful {
		if t.annotations.ReadOnly {
			st = st.Snapshot()
		}
		ctx = state.NewContext(ctx, st)
	} else {
		st = nil
		if _, ok := state.FromContext(ctx); ok {
			ctx = state.NewContext(ctx, nil)
		}
	}
	r, err := t.call(ctx, st, input)
	switch e := err.(type) {
	case nil:
		return r, nil
	case *OutputError:
		if e.Tool == t.name {
			return r, err
		}
	case *ArgumentError:
		if e.Tool == t.name {
			return r, err
		}
	}
	return r, t.errorf("%w", err)
}

// Call identifies the call of a step for which a function was called.
type Call struct {
	ID    string // of the call; not unique, and "" with some providers
	Name  string // of the tool
	Index int    // of the call in its step
	Agent string // of the state, which signs what the call writes; "" for the host
}

type callKey struct{}

// CallOf returns the call of a step for which the function that was given ctx
// was called, by [Run] or by [Step.Call]. It returns false elsewhere, such as
// in a function called by [Tool.Call], which knows of no step.
func CallOf(ctx context.Context) (Call, bool) {
	if ctx == nil {
		return Call{}, false
	}
	call, _ := ctx.Value(callKey{}).(*Call)
	if call == nil {
		return Call{}, false
	}
	return *call, true
}
