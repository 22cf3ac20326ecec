package tool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// ArgumentError says what is wrong with the arguments of a call. Its text is for
// the model to read: it names every bad argument, what was wanted and what came.
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

// PanicError says that the function of a tool panicked. Its text does not say
// with what, since that may hold what the model must not see.
type PanicError struct {
	Tool  string
	Value any    // what the function panicked with
	Stack []byte // where
}

func (e *PanicError) Error() string { return fmt.Sprintf("tool %q: the function panicked", e.Tool) }

// Unwrap returns the Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// fieldError says that a field could not be read or written. Its text holds
// nothing that comes from a value or from the code of handlers and validation;
// what it wraps may.
type fieldError struct {
	param string // the parameter it was read for, "" if it was written
	field string
	err   error
}

func (e *fieldError) Error() string {
	if e.param == "" {
		return fmt.Sprintf("field %q: %s", e.field, reason(e.err))
	}
	return fmt.Sprintf("parameter %q: field %q: %s", e.param, e.field, reason(e.err))
}

func (e *fieldError) Unwrap() error { return e.err }

// reason says what an error of a state is about. Paths are left out: they hold
// the names of members, which are part of the value.
func reason(err error) string {
	var (
		access *state.AccessError
		wrong  *state.TypeError
		other  *fault.Error
	)
	switch {
	case errors.As(err, &access):
		return fmt.Sprintf("%s: access denied to agent %q", access.Op, access.Agent)
	case errors.As(err, &wrong):
		return mismatch(wrong.Want, wrong.Got)
	case errors.As(err, &other):
		return mismatch(other.Want, other.Got)
	}
	var limit *state.LimitError
	var size *fault.LimitError
	switch {
	case errors.As(err, &limit):
		return "limit " + limit.Name + " exceeded"
	case errors.As(err, &size):
		return "limit " + size.Name + " exceeded"
	}
	for _, known := range []error{state.ErrNotFound, state.ErrUnknownField, state.ErrReadOnly, state.ErrConflict, state.ErrJoined} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "state: ")
		}
	}
	return "refused by its handler or validation"
}

func mismatch(want, got string) string {
	if want == "" {
		return got
	}
	return "want " + want + ", got " + got
}

// argumentError says what is wrong with an argument.
func argumentError(name string, err error) error {
	if wrong := fault.As(err); wrong != nil {
		return badArgument(name+wrong.Path[1:], wrong.Problem())
	}
	if limit := fault.AsLimit(err); limit != nil {
		return badArgument(name+limit.Path[1:], fmt.Sprintf("limit %s: more than %d", limit.Name, limit.Limit))
	}
	return badArgument(name, "cannot be read")
}

func badArgument(where, problem string) error { return errors.New(where + ": " + problem) }

// quote returns a name as it is shown, of a very long one the beginning.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		return strconv.Quote(strings.ToValidUTF8(name[:most], "")) + "…"
	}
	return strconv.Quote(name)
}
