package fault

import "errors"

// Final returns an error that IsFinal reports: an operation that fails with it
// would fail again, because of its arguments, of what is stored, or of what others
// have done.
func Final(text string) error { return AsFinal(errors.New(text)) }

// Passing returns an error of an operation that may succeed later.
func Passing(text string) error { return errors.New(text) }

// AsFinal returns err as an error that IsFinal reports.
func AsFinal(err error) error { return &finalError{err} }

// IsFinal reports whether err, or an error that it wraps, is final.
func IsFinal(err error) bool { return errors.Is(err, errFinal) }

// finalError also is errFinal, for errors.Is: an error that hides some of what it
// wraps decides about errFinal too.
type finalError struct{ err error }

var errFinal = errors.New("final")

func (e *finalError) Error() string        { return e.err.Error() }
func (e *finalError) Unwrap() error        { return e.err }
func (e *finalError) Is(target error) bool { return target == errFinal }
