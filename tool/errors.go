package tool

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// The sentinels. Every error of this package matches one of them or is one of
// the types below. An error that a function returns is wrapped, and so is the
// error of a context.
var (
	// ErrInvalidTool is returned for a declaration that does not make a tool.
	ErrInvalidTool = errors.New("tool: invalid tool")
	// ErrUnknownTool is returned for a call to a name that no tool has, or that
	// several tools have.
	ErrUnknownTool = errors.New("tool: unknown tool")
)

// ArgumentError reports the arguments of a call that are wrong. Its text is
// written for the model: it names every bad argument, what was wanted and what
// was given.
type ArgumentError struct {
	Tool string
	Errs []error // one for each bad argument, of the first 50
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

// PanicError reports that the function of a tool panicked, or that it ended its
// goroutine. Neither its text nor its JSON include the value of the panic or
// the stack, which may contain what the model must not see.
type PanicError struct {
	Tool  string
	Value any    `json:"-"` // the argument of panic; nil if the goroutine ended
	Stack []byte `json:"-"` // of the goroutine that panicked
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("tool %q: the function did not return", e.Tool)
	}
	return fmt.Sprintf("tool %q: the function panicked", e.Tool)
}

// Unwrap returns the Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// recoverPanic makes a panic in code of the user an error. It is deferred.
func recoverPanic(tool string, err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Tool: tool, Value: p, Stack: debug.Stack()}
	}
}

// InputError reports a field that could not be injected. Its text contains no
// value. Unwrap returns the error of the read.
type InputError struct {
	Tool      string
	Parameter string
	Field     string
	Err       error `json:"-"`
}

func (e *InputError) Error() string {
	return fmt.Sprintf("tool %q: parameter %s: field %s: %s",
		e.Tool, fault.Quote(e.Parameter), fault.Quote(e.Field), publicReason(e.Err))
}

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// OutputError reports a result that could not be used, or not be written to a
// field. Its text contains no value, and nothing that a handler, a validation
// or a function of [ToFunc] said. Unwrap returns their error.
type OutputError struct {
	Tool  string
	Field string // empty if the result as a whole cannot be used
	Err   error  `json:"-"`
}

func (e *OutputError) Error() string {
	if bad, ok := e.Err.(badResult); ok {
		return fmt.Sprintf("tool %q: %s", e.Tool, string(bad))
	}
	if e.Field == "" {
		return fmt.Sprintf("tool %q: the result cannot be written: %s", e.Tool, publicReason(e.Err))
	}
	return fmt.Sprintf("tool %q: field %s: %s", e.Tool, fault.Quote(e.Field), publicReason(e.Err))
}

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// badResult says what is wrong with a result, without its content.
type badResult string

func (e badResult) Error() string { return "tool: " + string(e) }

// kindError is an error with a sentinel that its text does not repeat.
type kindError struct {
	kind error
	err  error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// errNilContext is the error of a call of a tool without a context.
func errNilContext(tool string) error {
	return &kindError{state.ErrInvalid, fmt.Errorf("tool %q: the context is nil", tool)}
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

// publicErrors are the errors of a state that say nothing about values.
var publicErrors = []error{
	state.ErrNotFound, state.ErrUnknownField, state.ErrReadOnly, state.ErrConflict,
}

// publicReason returns the part of err that a model may read. It leaves out
// paths: they contain names of members, which are part of the value.
func publicReason(err error) string {
	var access *state.AccessError
	var mismatch *state.TypeError
	var limit *state.LimitError
	switch {
	case errors.As(err, &access):
		return access.Op + ": access denied to agent " + fault.Quote(access.Agent)
	case errors.As(err, &mismatch) && mismatch.Path == "handler": // of the program
		return "handler: want " + mismatch.Want + ", got " + mismatch.Got
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
	if errors.Is(err, errUnset) {
		return errUnset.Error()
	}
	for _, known := range publicErrors {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "state: ")
		}
	}
	return "refused by its handler or validation"
}
