package workspace

import (
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/document"
)

var (
	// ErrBusy is returned for an operation that is not possible during a run.
	ErrBusy = errors.New("workspace: a run is under way")
	// ErrQueueFull is returned for a message that the queue has no room for.
	ErrQueueFull = errors.New("workspace: queue is full")
	// ErrFenced is returned by the methods of a run that has lost its lease:
	// another holder has taken the run over, or another caller ended the run.
	ErrFenced = errors.New("workspace: run has lost its lease")
	// ErrInterrupted is returned, together with ErrFenced, by the methods of a
	// run that another message or a reset has ended.
	ErrInterrupted = errors.New("workspace: run was interrupted")
	// ErrRolledBack is returned for a workspace that is older than it was seen
	// before, for example after the restore of a backup. Nothing is written to
	// it.
	ErrRolledBack = errors.New("workspace: rolled back")
	// ErrNewerFormat is returned for data that a newer version of this package
	// wrote. The data stays as it is.
	ErrNewerFormat = errors.New("workspace: newer format")
	// ErrCorrupt is returned for damaged data. The data stays as it is.
	ErrCorrupt = document.ErrCorrupt
	// ErrInvalidKey is returned for data that is sealed with a key that was not
	// given, or that is not sealed although keys were given.
	ErrInvalidKey = errors.New("workspace: wrong key")
	// ErrInvalid is returned for an invalid argument.
	ErrInvalid = errors.New("workspace: invalid argument")
	// ErrRunEnded is returned by the methods of a run that has ended.
	ErrRunEnded = errors.New("workspace: run has ended")
	// ErrClosed is returned by a Manager that was closed.
	ErrClosed = errors.New("workspace: closed")
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
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, User: user, Err: err}
}

// corrupt returns ErrCorrupt for the data under a key of the store.
func corrupt(key, problem string) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, key, problem)
}
