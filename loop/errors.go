package loop

import (
	"fmt"

	"github.com/agentstate/state"
)

// kindError is an error with a sentinel that its text does not repeat.
type kindError struct {
	kind error
	err  error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// invalid returns an ErrInvalid of a turn or a loop.
func invalid(format string, args ...any) error {
	return &kindError{state.ErrInvalid, fmt.Errorf("loop: "+format, args...)}
}
