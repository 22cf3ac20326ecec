package tool

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentstate/state"
)

// signature is what a tool takes and what it writes.
type signature struct {
	params      []param // of the function, injected ones included
	open        bool    // the model may give arguments that are not among params
	undeclared  bool    // fields may be injected as parameters that are not among params
	sources     []source
	sinks       []sink
	keyed       bool     // some sink takes a key of the result
	reads       []string // the fields of the sources, each once
	writes      []string // the fields of the sinks, each once
	annotations Annotations
	reveals     bool
	// approval says whether a call with an input has to be approved, and why. It
	// may be nil.
	approval func(ctx context.Context, input any) (reason string, needed bool)
	// expires is how long a call may wait, 0 for no limit.
	expires time.Duration
	// deciders are who may decide about a call that waits, nil if that was not said.
	deciders *state.Scope
	// once says that the beginning of a call is stored.
	once bool
	// polls says that a call may be repeated in vain.
	polls bool
	// attempts is how often the function is called for one call, and timeout for how
	// long; 0 stands for 1, and for no limit of the tool's own.
	attempts int
	timeout  time.Duration
}

// source is a field that is injected.
type source struct {
	field string
	of    state.Part // the *state.Field, or nil if only its name is known
	param string
	read  func(st *state.State) (any, error)
}

// sink is a field that a result is written to.
type sink struct {
	field  string
	of     state.Part // the *state.Field, or nil if only its name is known
	by     state.AnyHandler
	key    string // of the result, "" for the whole
	decode func(text []byte) (writer, error)
	delete writer // if a null deletes, else nil
}

// checkFields returns the errors of fields that the schema of a state does not
// have, and of handlers that are not for them. They are mistakes of the program,
// which no call of a model can mend.
func (t *Tool) checkFields(st *state.State) error {
	if t == nil {
		return nil
	}
	var errs []error
	for _, s := range t.sources {
		if err := inside.CheckField(st, s.field, s.of, nil); err != nil {
			errs = append(errs, &InputError{Tool: t.name, Parameter: s.param, Field: s.field, Err: err})
		}
	}
	for _, s := range t.sinks {
		if err := inside.CheckField(st, s.field, s.of, s.by); err != nil {
			errs = append(errs, &OutputError{Tool: t.name, Field: s.field, Err: err})
		}
	}
	return errors.Join(errs...)
}

// writer writes one value to its field. A nil writer has nothing to write.
type writer func(st *state.State) error

// output is what a call writes to one field.
type output struct {
	field string
	write writer
}

// param returns the parameter of a name, or nil.
func (s *signature) param(name string) *param {
	if i := s.paramIndex(name); i >= 0 {
		return &s.params[i]
	}
	return nil
}

// paramIndex returns the index of the parameter of a name, or -1.
func (s *signature) paramIndex(name string) int {
	for i := range s.params {
		if s.params[i].name == name {
			return i
		}
	}
	return -1
}

// injects reports whether a parameter is filled in from a field.
func (s *signature) injects(param string) bool {
	return slices.ContainsFunc(s.sources, func(s source) bool { return s.param == param })
}

// hides reports whether a decoder may take a name for that of a parameter that
// is injected.
func (s *signature) hides(name string) bool {
	return slices.ContainsFunc(s.sources, func(s source) bool { return sameName(s.param, name) })
}
