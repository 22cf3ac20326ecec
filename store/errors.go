package store

import (
	"strconv"

	"github.com/agentstate/state/internal/fault"
)

// The sentinels. The error of a store wraps the one that it matches, which says
// whether package workspace tries the call again.
var (
	// ErrNotFound reports a key that does not exist.
	ErrNotFound = fault.Passing("store: not found")
	// ErrConflict reports a write whose condition did not hold. The write was
	// not made.
	ErrConflict = fault.Passing("store: conflict")
	// ErrUnknownOutcome reports a write that may have been made.
	ErrUnknownOutcome = fault.Passing("store: unknown outcome")
	// ErrInvalid reports an invalid argument. An error that matches
	// ErrInvalidKey also matches ErrInvalid.
	ErrInvalid = fault.Final("store: invalid argument")
	// ErrInvalidKey reports a key that is not valid.
	ErrInvalidKey error = invalidKey{}
	// ErrTooLarge reports a write that is too large for the store.
	ErrTooLarge = fault.Final("store: too large")
	// ErrRefused reports a call that the database refuses until somebody changes
	// the database or the program: because of a wrong password, a missing
	// permission, table or database, or a file that must not be written. The
	// call has changed nothing, and calling again is of no use.
	ErrRefused = fault.Final("store: refused")
	// ErrClosed reports the use of a closed store.
	ErrClosed = fault.Final("store: closed")
	// ErrReadOnly reports a write to a store of [ReadOnly].
	ErrReadOnly = fault.Final("store: read-only")
)

// invalidKey is the type of ErrInvalidKey.
type invalidKey struct{}

func (invalidKey) Error() string { return "store: invalid key" }
func (invalidKey) Unwrap() error { return ErrInvalid }

// Error is the failure of one operation of a store. It never contains a value.
type Error struct {
	Store string // kind of store, such as "sqlite"; "" if none is to blame
	Op    string // operation: "get", "write", "list" or "watch", or what another package has done
	Key   string // "" if the error is not about one key
	Err   error
}

func (e *Error) Error() string {
	text := "store: "
	if e.Store != "" {
		text += e.Store + ": "
	}
	text += e.Op
	if e.Key != "" {
		text += " " + strconv.QuoteToASCII(e.Key)
	}
	return text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
