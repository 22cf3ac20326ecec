package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
)

// Error is an error of an operation on the workspace of a user.
type Error struct {
	Op   string // such as "handle"
	User string
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("workspace: %s for %s: %v", e.Op, fault.Quote(e.User), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// wrapError makes err an *Error, unless it is one or is nil.
func wrapError(op, user string, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Op: op, User: user, Err: err}
}

// settledError is an error of a write of unknown outcome that does not matter to
// the caller.
type settledError struct {
	text string
	err  error
}

func (e *settledError) Error() string { return e.text + e.err.Error() }

func (e *settledError) Is(target error) bool {
	return target != store.ErrUnknownOutcome && errors.Is(e.err, target)
}

// errPanic matches errors of code of the user that panicked or ended its
// goroutine.
var errPanic = errors.New("workspace: a function panicked")

// errHookOverdue is the error of a function of Options that has not returned in
// time.
var errHookOverdue = errors.New("workspace: it has not returned in time")

// Causes of a lease that its holder has given up itself.
var (
	errGivenBack    = fmt.Errorf("%w: it was given back", ErrFenced)
	errLeftBehind   = fmt.Errorf("%w: its function did not return, and was left behind", ErrFenced)
	errEndNotStored = fmt.Errorf("%w: the end of the run was not stored", ErrFenced)
)

// errorClasses are the classes of errors. An error has the first that matches.
var errorClasses = []struct {
	err   error
	class string
}{
	{errPanic, "panic"},
	{store.ErrUnknownOutcome, "unknown_outcome"},
	{ErrRunCancelled, "run_cancelled"},
	{ErrInterrupted, "interrupted"},
	{ErrFenced, "fenced"},
	{ErrQueueFull, "queue_full"},
	{ErrBusy, "busy"},
	{ErrRolledBack, "rolled_back"},
	{ErrNewerFormat, "newer_format"},
	{ErrInvalidKey, "wrong_key"},
	{ErrCorrupt, "corrupt"},
	{ErrUserDeleted, "user_deleted"},
	{ErrSchema, "schema"},
	{ErrInvalid, "argument"},
	{state.ErrDenied, "denied"},
	{store.ErrConflict, "conflict"},
	{state.ErrConflict, "conflict"},
	{ErrClosed, "closed"},
	{ErrRunTimeout, "run_timeout"},
	{errStoreTimeout, "store_timeout"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "context_canceled"},
}

// ErrorClass returns the class of an error, for metrics and logs: one word such
// as "fenced", "conflict", "timeout" or "panic". An error of no class has the Go
// type of the innermost error that it wraps. The class contains nothing of the
// text of the error. The class of nil is "".
func ErrorClass(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range errorClasses {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	for {
		inner := errors.Unwrap(err)
		if masked, ok := err.(*maskedError); ok {
			inner = masked.err
		}
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// panicError is the error of code of the user that has panicked, or has not
// returned. The stack is for the log alone.
type panicError struct {
	text, stack string
	err         error // that the code has returned, or nil
}

func (e *panicError) Error() string { return e.text }
func (e *panicError) Unwrap() error { return e.err }

func (e *panicError) Is(target error) bool { return target == errPanic }

// usable returns an error of the user. It panics if that panics when it is used,
// as a nil pointer in an error does.
func usable(err error) error {
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, ErrClosed)
	}
	return err
}

// errNotReturned is the error of an operation in which a function of the user
// panicked or ended the goroutine.
var errNotReturned = &panicError{text: "workspace: the function has not returned"}
