package store

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

var (
	// ErrNotFound is returned for a key that is not there.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict is returned for a write whose condition did not hold. It was
	// certainly not made.
	ErrConflict = errors.New("store: conflict")
	// ErrUnknownOutcome is returned for a write that may have been made or not.
	ErrUnknownOutcome = errors.New("store: unknown outcome")
	// ErrInvalid is returned for keys and calls that no store takes.
	ErrInvalid = errors.New("store: invalid")
	// ErrTooLarge is returned for a value that the store cannot hold.
	ErrTooLarge = errors.New("store: too large")
	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("store: closed")
)

// MaxKey is how many bytes a key may have.
const MaxKey = 512

// Error says which operation of which store failed, for which key. It never holds
// a value.
type Error struct {
	Store string // such as "sqlite"
	Op    string // such as "put"
	Key   string // "" if it is about no key
	Err   error
}

func (e *Error) Error() string {
	text := "store: " + e.Store + ": " + e.Op
	if e.Key != "" {
		text += " " + strconv.QuoteToASCII(e.Key)
	}
	return text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// CheckKey returns ErrInvalid for what is no key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: the key is empty", ErrInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: the key has %d bytes, more than %d", ErrInvalid, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: the key is not valid UTF-8", ErrInvalid)
	}
	return nil
}
