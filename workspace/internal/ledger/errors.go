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
)

// corrupt returns ErrCorrupt for the data under a key of the store.
func corrupt(key, problem string) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, key, problem)
}

// fencedError is the error of a holder whose run another caller has ended.
type fencedError struct {
	ending Ending
	cause  error
}

func (e *fencedError) Error() string   { return ErrFenced.Error() + ": " + e.cause.Error() }
func (e *fencedError) Unwrap() []error { return []error{ErrFenced, e.cause} }

// FencedBy returns the error of a holder whose run has ended otherwise. It is
// ErrFenced, together with ErrInterrupted if another caller has ended the run.
func FencedBy(ending Ending) error {
	switch ending {
	case EndingCancelled:
		return &fencedError{ending, ErrRunCancelled}
	case EndingInterrupted, EndingRolledBack, EndingReset:
		return &fencedError{ending, ErrInterrupted}
	}
	return ErrFenced
}

// EndingOf returns the ending of which err tells a holder, or "".
func EndingOf(err error) Ending {
	var e *fencedError
	if errors.As(err, &e) {
		return e.ending
	}
	return ""
}
