package ledger

import (
	"errors"
	"fmt"

	"github.com/agentstate/state/workspace/internal/document"
)

// Package workspace exports these errors and documents them.
var (
	ErrBusy        = errors.New("workspace: a run is under way")
	ErrQueueFull   = errors.New("workspace: queue is full")
	ErrFenced      = errors.New("workspace: run has lost its lease")
	ErrInterrupted = errors.New("workspace: run was interrupted")
	// ErrRunCancelled matches ErrInterrupted too.
	ErrRunCancelled = fmt.Errorf("%w: cancelled", ErrInterrupted)
	ErrRolledBack   = errors.New("workspace: rolled back")
	ErrNewerFormat  = errors.New("workspace: newer format")
	ErrCorrupt      = document.ErrCorrupt
	ErrInvalidKey   = errors.New("workspace: wrong key")
	ErrInvalid      = errors.New("workspace: invalid argument")
	ErrExists       = errors.New("workspace: exists already")
	ErrNotFound     = errors.New("workspace: not found")
	ErrUserDeleted  = errors.New("workspace: the user was deleted")
)

// corrupt returns ErrCorrupt for the data under a key of the store.
func corrupt(key, problem string) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, key, problem)
}

// ProgramError has the error of a function of the program. It does not wrap it,
// because its text and kind mean nothing to the ledger.
type ProgramError struct{ Err error }

func (e *ProgramError) Error() string { return "workspace: the program has given the transaction up" }
