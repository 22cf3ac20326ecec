package tool

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Call runs the tool. It checks the arguments, adds the injected fields, all
// from one version of the state, calls the function, and writes the outputs as
// one version. It returns the whole result as JSON. Missing arguments, "" and
// null, count as {}.
//
// If there is an error, nothing is written. The error is an [*ArgumentError] if
// the arguments are wrong, a [*PanicError] if the function panicked, and
// otherwise the error of the function or of a read or write of the state. The
// text of an error contains no injected value unless the function put it there.
//
// st has the rights of the caller. The outputs are journalled with its agent
// and cause, see [state.State.WithCause].
func (t *Tool) Call(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error) {
	input, err := t.prepare(st, args)
	if err != nil {
		return "", err
	}
	out, err := t.invoke(ctx, st, input)
	if err != nil {
		return "", err
	}
	if err := t.writeOutputs(st, out); err != nil {
		return "", err
	}
	return out, nil
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
		return nil, t.errorf("%w", err)
	}
	return in.input(), nil
}

// readArguments reads the arguments of the model and returns what is wrong with
// them.
func (t *Tool) readArguments(in arguments, args state.JSON) (errs []error) {
	data := []byte(args)
	if err := jsontext.Check(data, argumentLimits); err != nil && args != "" {
		return []error{argumentFault("arguments", err)}
	}
	var members jsontext.Object
	switch kind := jsontext.Kind(data); kind {
	case "nothing", "null":
	case "object":
		members, _ = jsontext.Members(data)
	default:
		return []error{&fault.Error{Path: "arguments", Want: "an object", Got: kind}}
	}
	for _, m := range members {
		p := t.param(m.Name)
		switch {
		case t.injects(m.Name):
			errs = append(errs, badArgument(m.Name, "is not an argument, it is filled in by the program"))
		case p == nil && (!t.open || t.similarParam(m.Name) != ""):
			errs = append(errs, t.unknownArgument(m.Name))
		default:
			if err := in.addArgument(p, m); err != nil {
				errs = append(errs, argumentFault(fault.Quote(m.Name), err))
			}
		}
	}
	for i := range t.params {
		p := &t.params[i]
		if p.required && members.Get(p.name) == nil && !t.injects(p.name) {
			errs = append(errs, badArgument(p.name, "want "+p.kind+", got nothing"))
		}
	}
	return errs
}

// similarParam returns the parameter that differs from name only in case.
func (t *Tool) similarParam(name string) string {
	for _, p := range t.params {
		if strings.EqualFold(p.name, name) && !t.injects(p.name) {
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
func (t *Tool) invoke(ctx context.Context, st *state.State, input any) (state.JSON, error) {
	if t.stateful {
		ctx = state.NewContext(ctx, st)
	} else {
		st = nil
		if _, ok := state.FromContext(ctx); ok {
			ctx = state.NewContext(ctx, nil)
		}
	}
	out, err := t.recoverPanic(func() (state.JSON, error) { return t.call(ctx, st, input) })
	if err == nil {
		return out, nil
	}
	switch e := err.(type) {
	case *PanicError:
		return "", err
	case *ArgumentError:
		if e.Tool == t.name {
			return "", err
		}
	}
	return "", t.errorf("%w", err)
}

// recoverPanic calls fn, which runs code of the tool's author: its function, or
// methods of its types. A panic is a PanicError.
func (t *Tool) recoverPanic(fn func() (state.JSON, error)) (out state.JSON, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = "", &PanicError{Tool: t.name, Value: p, Stack: debug.Stack()}
		}
	}()
	return fn()
}

// writeOutputs writes the result to its fields as one version.
func (t *Tool) writeOutputs(st *state.State, out state.JSON) error {
	if len(t.sinks) == 0 {
		return nil
	}
	data := []byte(out)
	var members jsontext.Object
	if t.keyed {
		var err error
		if members, err = jsontext.Members(data); err != nil {
			return t.errorf("the result is not an object but %s: its keys cannot be written to fields", jsontext.Kind(data))
		}
	}
	write := func(st *state.State) error {
		for _, s := range t.sinks {
			text := data
			if s.key != "" {
				text = members.Get(s.key)
			}
			if text == nil {
				continue
			}
			if err := s.write(st, text); err != nil {
				return t.errorf("%w", fieldFault(fmt.Sprintf("field %q", s.field), err))
			}
		}
		return nil
	}
	if len(t.sinks) == 1 { // one write is one version anyway
		return write(st)
	}
	return st.Update(write)
}
