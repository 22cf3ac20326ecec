package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

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
		case errors.Is(err, state.ErrNotFound):
			err = errUnset
		case err != nil:
		case inside.IsReference(st, source.field):
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

// errUnset is the error of a field without a value for a parameter that is
// required.
var errUnset = &kindError{state.ErrNotFound, errors.New("no value, and the parameter is required")}

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
