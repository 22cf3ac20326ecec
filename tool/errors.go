package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// ArgumentError reports the arguments of a call that are wrong. Its text is
// written for the model: it names every bad argument, what was wanted and what
// was given.
type ArgumentError struct {
	Tool string
	Errs []error // one for each bad argument
}

func (e *ArgumentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tool %q: bad arguments:", e.Tool)
	for _, err := range e.Errs {
		b.WriteString("\n- " + err.Error())
	}
	return b.String()
}

// Unwrap returns Errs.
func (e *ArgumentError) Unwrap() []error { return e.Errs }

// PanicError reports that the function of a tool panicked. Its text does not
// include the value of the panic, which may contain what the model must not
// see.
type PanicError struct {
	Tool  string
	Value any    // the argument of panic
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string { return fmt.Sprintf("tool %q: the function panicked", e.Tool) }

// Unwrap returns the Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// badArgument returns an entry of an [ArgumentError].
func badArgument(name, problem string) error {
	return &fault.Error{Path: fault.Quote(name), Got: problem}
}

// argumentFault returns err, which reading an argument has returned, as an
// entry of an [ArgumentError]. path takes the place of the $ in its path.
func argumentFault(path string, err error) error {
	switch err.(type) {
	case *fault.Error, *fault.LimitError:
		return fault.Under(path, err)
	}
	return &fault.Error{Path: path, Got: "cannot be read"}
}

// fieldFault reports that a field could not be read or written. Its text
// contains nothing that comes from a value, or from the code of a handler or a
// validation. Its cause may.
func fieldFault(path string, err error) error {
	return &fault.Error{Path: path, Got: publicReason(err), Cause: err}
}

// publicErrors are the errors of a state that say nothing about values.
var publicErrors = []error{
	state.ErrNotFound, state.ErrUnknownField, state.ErrReadOnly, state.ErrConflict, state.ErrJoined,
}

// publicReason returns the part of err that a model may read. It leaves out
// paths: they contain names of members, which are part of the value.
func publicReason(err error) string {
	var access *state.AccessError
	var mismatch *state.TypeError
	var limit *state.LimitError
	switch {
	case errors.As(err, &access):
		return fmt.Sprintf("%s: access denied to agent %q", access.Op, access.Agent)
	case errors.As(err, &mismatch):
		return (&fault.Error{Want: mismatch.Want, Got: mismatch.Got}).Problem()
	case errors.As(err, &limit):
		return "limit " + limit.Name + " exceeded"
	}
	if e := fault.As(err); e != nil {
		return e.Problem()
	}
	if e := fault.AsLimit(err); e != nil {
		return "limit " + e.Name + " exceeded"
	}
	for _, known := range publicErrors {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "state: ")
		}
	}
	return "refused by its handler or validation"
}
