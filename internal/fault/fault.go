// Package fault has the error that says where a value does not fit and why, and
// the forms in which errors show names.
//
// Parsers, codecs and the compilers of types return an [Error] or a
// [LimitError]. A package with exported errors makes them from these at its
// boundary, and adds what only it knows: the field, the tool, the format.
package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error reports a part of a value, a type or a text that does not fit. It never
// holds the content of a value, but Path contains the names of members and the
// keys of maps. KeylessPath leaves the keys out: they are content.
type Error struct {
	Path string // where, such as $.a[3].b
	Want string // empty if Got says what is wrong
	Got  string // a kind or a short reason

	Keyless string // Path with […] for each key of a map, empty if there is none

	Offset int // in JSON text that is not valid: the byte at which reading failed

	Cause error // the error that Unwrap returns, or nil; it is not part of the text
}

// Error returns "PATH: want WANT, got GOT", or "PATH: GOT".
func (e *Error) Error() string { return e.Path + ": " + e.Problem() }

// Unwrap returns the Cause.
func (e *Error) Unwrap() error { return e.Cause }

// KeylessPath returns Path with […] for each key of a map.
func (e *Error) KeylessPath() string {
	if e.Keyless != "" {
		return e.Keyless
	}
	return e.Path
}

// Problem returns the text of the error without the path.
func (e *Error) Problem() string {
	if e.Want == "" {
		return e.Got
	}
	return "want " + e.Want + ", got " + e.Got
}

// LimitError reports a part that is larger than a limit.
type LimitError struct {
	Path  string // where
	Name  string // the limit
	Limit int
	Got   int // the count when the limit was passed; the whole may be larger
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: limit %s: %d is more than %d", e.Path, e.Name, e.Got, e.Limit)
}

// Under moves the path of an [Error] or a [LimitError], which begins with $,
// below path. It returns any other error as it is, even one that wraps these.
func Under(path string, err error) error {
	switch e := err.(type) {
	case *Error:
		moved := *e
		moved.Path = path + strings.TrimPrefix(e.Path, "$")
		if e.Keyless != "" {
			moved.Keyless = path + strings.TrimPrefix(e.Keyless, "$")
		}
		return &moved
	case *LimitError:
		moved := *e
		moved.Path = path + strings.TrimPrefix(e.Path, "$")
		return &moved
	}
	return err
}

// As returns the Error that err is or wraps, or nil.
func As(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}

// AsLimit returns the LimitError that err is or wraps, or nil.
func AsLimit(err error) *LimitError {
	var e *LimitError
	errors.As(err, &e)
	return e
}

// shownBytes is the number of bytes of a name that an error shows.
const shownBytes = 64

// Clip returns text, cut at the end of a rune if it is too long for an error.
func Clip(text string) string { return ClipTo(text, shownBytes) }

// ClipTo returns text, or its prefix of at most limit bytes with an ellipsis.
func ClipTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return Prefix(text, limit) + "…"
}

// Prefix returns the longest prefix of text that has at most limit bytes and
// does not end inside a rune.
func Prefix(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Quote returns the clipped text as a Go string literal: one line, in which
// everything invisible is escaped.
func Quote(text string) string { return strconv.Quote(Clip(text)) }
