package tool

import (
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// argumentLimits bound what a model may send: what a message holds.
var argumentLimits = jsontext.Limits{Bytes: 64 << 20, Depth: 64}

// Call runs the tool: it checks the arguments, adds the fields that are injected,
// as they are at one moment, calls the function, and writes its outputs as one
// version. It returns the whole result as JSON. Absent arguments, "" and null,
// count as {}.
//
// Nothing is written if there is an error. It is an [*ArgumentError] if the model
// is to blame, a [*PanicError] if the function panicked, and otherwise what the
// function returned, or what the state said to a read or a write. No text of an
// error holds an injected value, unless the function put it there.
//
// st has the rights of the caller. The outputs are journalled with its agent
// and cause, see [state.State.WithCause].
func (t *Tool) Call(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error) {
	in, err := t.prepare(st, args)
	if err != nil {
		return "", err
	}
	out, err := t.invoke(ctx, st, in)
	if err != nil {
		return "", err
	}
	if err := t.merge(st, out); err != nil {
		return "", err
	}
	return out, nil
}

// input is what a call gives to the function.
type input struct{ value any }

// prepare checks the arguments and reads the fields that are injected.
func (t *Tool) prepare(st *state.State, args state.JSON) (input, error) {
	in := t.receive()
	if errs := t.take(in, args); len(errs) > 0 {
		if t.review != nil {
			errs = append(errs, t.review(st, in.value())...)
		}
		return input{}, &ArgumentError{Tool: t.name, Errs: errs}
	}
	if len(t.sources) > 1 {
		st = st.Snapshot()
	}
	for i := range t.sources {
		if err := t.sources[i].inject(st, in); err != nil {
			return input{}, t.fail("%w", err)
		}
	}
	return input{in.value()}, nil
}

// take reads the arguments of the model and returns what is wrong with them.
func (t *Tool) take(in arguments, args state.JSON) (errs []error) {
	if args == "" || args == "null" {
		args = "{}"
	}
	data := []byte(args)
	if err := jsontext.Check(data, argumentLimits); err != nil {
		return []error{argumentError("arguments", err)}
	}
	if kind := jsontext.Kind(data); kind != "object" {
		if kind != "null" {
			return []error{badArgument("arguments", "want an object, got "+kind)}
		}
		data = []byte("{}")
	}
	members, err := jsontext.Members(data)
	if err != nil {
		return []error{argumentError("arguments", err)}
	}
	for _, m := range members {
		p := t.param(m.Name)
		switch {
		case t.injects(m.Name):
			errs = append(errs, badArgument(quote(m.Name), "is not an argument, it is filled in by the program"))
		case p == nil && (!t.open || t.similar(m.Name) != ""):
			errs = append(errs, t.unknown(m.Name))
		default:
			if err := in.set(p, m); err != nil {
				errs = append(errs, argumentError(quote(m.Name), err))
			}
		}
	}
	for i := range t.params {
		p := &t.params[i]
		if p.required && !t.injects(p.name) &&
			!slices.ContainsFunc(members, func(m jsontext.Member) bool { return m.Name == p.name }) {
			errs = append(errs, badArgument(quote(p.name), "want "+p.kind+", got nothing"))
		}
	}
	return errs
}

func (t *Tool) param(name string) *param {
	for i := range t.params {
		if t.params[i].name == name {
			return &t.params[i]
		}
	}
	return nil
}

// similar returns the parameter that differs from a name only in case.
func (t *Tool) similar(name string) string {
	for _, p := range t.params {
		if strings.EqualFold(p.name, name) && !t.injects(p.name) {
			return p.name
		}
	}
	return ""
}

// unknown says that the tool has no such parameter, and which ones it has.
func (t *Tool) unknown(name string) error {
	if p := t.similar(name); p != "" {
		return badArgument(quote(name), "is unknown, it is spelled "+quote(p))
	}
	var known []string
	for _, p := range t.params {
		if !t.injects(p.name) {
			known = append(known, quote(p.name))
		}
	}
	if len(known) == 0 {
		return badArgument(quote(name), "is unknown, there are no arguments")
	}
	return badArgument(quote(name), "is unknown, there are "+strings.Join(known, ", "))
}

// invoke runs the function.
func (t *Tool) invoke(ctx context.Context, st *state.State, in input) (out state.JSON, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = "", &PanicError{Tool: t.name, Value: p, Stack: debug.Stack()}
		}
	}()
	if t.stateful {
		ctx = state.NewContext(ctx, st)
	} else {
		st = nil
		if _, ok := state.FromContext(ctx); ok {
			ctx = state.NewContext(ctx, nil)
		}
	}
	if out, err = t.run(ctx, st, in.value); err == nil {
		return out, nil
	}
	if bad, ok := err.(*ArgumentError); ok && bad.Tool == t.name {
		return "", err
	}
	return "", t.fail("%w", err)
}

// encode returns a result as JSON.
func encode[Out any](plan *value.Plan, result *Out) (state.JSON, error) {
	v := reflect.ValueOf(result).Elem()
	size, err := plan.Check(v, value.Limits{})
	if err != nil {
		return "", errors.New("the result is no JSON: " + reason(err))
	}
	data, err := plan.AppendJSON(make([]byte, 0, size), v)
	if err != nil {
		return "", errors.New("the result is no JSON: " + reason(err))
	}
	return state.JSON(data), nil
}

// result returns a result that came as JSON, checked and compact.
func (t *Tool) result(out state.JSON) (state.JSON, error) {
	if out == "" {
		return "null", nil
	}
	data := []byte(out)
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return "", errors.New("the result is no JSON")
	}
	return state.JSON(jsontext.AppendCompact(data[:0:0], data)), nil
}

// merge writes the outputs as one version.
func (t *Tool) merge(st *state.State, out state.JSON) error {
	if len(t.sinks) == 0 {
		return nil
	}
	data := []byte(out)
	var members []jsontext.Member
	if t.keyed {
		var err error
		if members, err = jsontext.Members(data); err != nil {
			return t.fail("the result is no object but %s, its keys cannot be written to fields", jsontext.Kind(data))
		}
	}
	if len(t.sinks) == 1 { // one write is one version
		return t.write(st, data, members)
	}
	return st.Update(func(tx *state.State) error { return t.write(tx, data, members) })
}

func (t *Tool) write(st *state.State, out []byte, members []jsontext.Member) error {
	for i := range t.sinks {
		s := &t.sinks[i]
		text := out
		if s.key != "" {
			place := slices.IndexFunc(members, func(m jsontext.Member) bool { return m.Name == s.key })
			if place < 0 {
				continue
			}
			text = members[place].Value
		}
		if err := s.write(st, text); err != nil {
			return t.fail("%w", &fieldError{field: s.field, err: err})
		}
	}
	return nil
}
