package work

import (
	"errors"
	"fmt"
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
	// ErrRunCancelled is returned, together with ErrFenced and ErrInterrupted,
	// by the methods of a run that Manager.Cancel has ended.
	ErrRunCancelled = fmt.Errorf("%w: cancelled", ErrInterrupted)
	// ErrNotFound is returned for a message, a dead letter or a run that the
	// workspace does not have.
	ErrNotFound = errors.New("workspace: not found")
	// ErrUserDeleted is returned for a message, or another change, that would make
	// a thread of a user whom Manager.DeleteUser has deleted.
	ErrUserDeleted = errors.New("workspace: the user was deleted")
	// ErrSchema is returned for content that does not fit Options.Schema. It
	// wraps the error of package state, which names the field. Nothing is
	// written: a process with a schema that fits goes on as before. See
	// Manager.Check.
	ErrSchema = errors.New("workspace: content does not fit the schema")
	// ErrExists is returned for an import or a fork that would make a workspace
	// that exists already.
	ErrExists = errors.New("workspace: exists already")
	// ErrRolledBack is returned for a workspace that is older than it was seen
	// before, for example after the restore of a backup. Nothing is written to
	// it.
	ErrRolledBack = errors.New("workspace: rolled back")
	// ErrNewerFormat is returned for data that a newer version of this package
	// wrote. The data stays as it is.
	ErrNewerFormat = errors.New("workspace: newer format")
	// ErrCorrupt is returned for damaged data. The data stays as it is.
	ErrCorrupt = errors.New("workspace: corrupt")
	// ErrInvalidKey is returned for data that is sealed with a key that was not
	// given, or that is not sealed although keys were given.
	ErrInvalidKey = errors.New("workspace: wrong key")
	// ErrInvalid is returned for an invalid argument.
	ErrInvalid = errors.New("workspace: invalid argument")
	// ErrRunFailed is returned for a message that was not handled to its end: its
	// run has failed, was interrupted or cancelled, or the message was dropped.
	ErrRunFailed = errors.New("workspace: message was not handled")
	// ErrRunEnded is returned by the methods of a run that has ended.
	ErrRunEnded = errors.New("workspace: run has ended")
	// ErrHolder is returned, together with ErrFenced, by the methods of runs whose
	// Manager has lost its Options.Name to another one.
	ErrHolder = errors.New("workspace: another Manager has the name of the holder")
	// ErrRunTimeout is the cause of a context of a run that has ended after
	// Options.RunTimeout.
	ErrRunTimeout = errors.New("workspace: the run has taken longer than Options.RunTimeout")
	// ErrClosed is returned by a Manager that was closed.
	ErrClosed = errors.New("workspace: closed")
)
