package workspace

import (
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/document"
)

var (
	// ErrBusy is returned for what cannot be done while a run is under way.
	ErrBusy = errors.New("workspace: a run is under way")
	// ErrQueueFull is returned for a message for which the queue has no place.
	ErrQueueFull = errors.New("workspace: queue is full")
	// ErrFenced is returned by what a run does after it has lost its workspace:
	// somebody else has taken it over.
	ErrFenced = errors.New("workspace: run has lost its workspace")
	// ErrInterrupted is returned by what a run does after another message, or a
	// reset, has ended it. It comes together with ErrFenced.
	ErrInterrupted = errors.New("workspace: run was interrupted")
	// ErrRolledBack is returned for a workspace that is older than it was seen to
	// be before, as after the restore of a backup. Nothing is written to it.
	ErrRolledBack = errors.New("workspace: older than it was")
	// ErrNewerFormat is returned for what a newer version of this package wrote.
	// It stays as it is.
	ErrNewerFormat = errors.New("workspace: newer format")
	// ErrCorrupt is returned for what is damaged. It stays as it is.
	ErrCorrupt = document.ErrCorrupt
	// ErrInvalidKey is returned for what is sealed with a key that was not given, or is
	// not sealed although keys were given.
	ErrInvalidKey = errors.New("workspace: wrong key")
	// ErrInvalid is returned for arguments that are none.
	ErrInvalid = errors.New("workspace: invalid")
	// ErrRunEnded is returned by what a run does after its end.
	ErrRunEnded = errors.New("workspace: run has ended")
	// ErrClosed is returned by a Manager that was closed.
	ErrClosed = errors.New("workspace: closed")
)

// Error says which operation failed for the workspace of which user.
type Error struct {
	Op   string // such as "handle"
	User string
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("workspace: %s for %s: %v", e.Op, fault.Quote(e.User), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// about puts operation and user around an error.
func wrapError(op, user string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, User: user, Err: err}
}

// corrupt is ErrCorrupt for what is stored under a key.
func corrupt(key, problem string) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, key, problem)
}
