package provider

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/provider/internal/codec"
)

// ErrIncomplete is returned for a stream that ended before the provider said
// that the response was complete. It is an [io.ErrUnexpectedEOF], so that a loop
// of package tool asks again.
var ErrIncomplete error = incompleteError{}

type incompleteError struct{}

func (incompleteError) Error() string { return "provider: incomplete stream" }
func (incompleteError) Unwrap() error { return io.ErrUnexpectedEOF }

// Error reports JSON of a kind that the format does not allow at Path. It is
// [state.ErrWrongType], or [state.ErrLimitExceeded] for JSON that is too deep
// or too large, or has too many calls. It never holds a value. A member that is
// not a word of a format is shown as […] where the JSON itself is wrong.
type Error struct {
	Format  string // the name of the format
	Path    string // such as $.messages[3].content
	Problem string

	cause error
}

func (e *Error) Error() string {
	return "provider: " + e.Format + ": " + e.Path + ": " + e.Problem
}

// Unwrap returns [state.ErrWrongType] or [state.ErrLimitExceeded].
func (e *Error) Unwrap() error { return e.cause }

// ResponseError is a body with which the provider rejects the request. Only
// Message has the provider's text, because it may quote anything.
type ResponseError struct {
	Format  string // the name of the format
	Code    string // the provider's type or code of the error, such as "invalid_request_error"
	Message string
}

func (e *ResponseError) Error() string {
	return fmt.Sprintf("provider: %s: the response is an error of type %s", e.Format, fault.Quote(e.Code))
}

func (f *Format) newError(path, problem string) *Error {
	return &Error{f.name, path, problem, state.ErrWrongType}
}

// words are the members of bodies that an error of a check names. Any other may
// be content, such as an argument of a call.
var words = []string{
	"messages", "content", "contents", "parts", "input", "output", "system", "systemInstruction", "instructions",
	"choices", "message", "candidates", "tools", "tool_calls", "function", "arguments", "functionCall", "args",
	"functionResponse", "response", "text", "role", "type", "id", "name", "model", "error", "usage",
}

// knownPath returns a path with […] for each name that is not a word of a format.
func knownPath(path string) string {
	known := "$"
	for rest := strings.TrimPrefix(path, "$"); rest != ""; {
		end := 1 + strings.IndexAny(rest[1:]+".", ".[")
		name := strings.TrimPrefix(rest[:end], ".")
		if quoted, err := strconv.QuotedPrefix(rest[1:]); err == nil {
			end, name = 1+len(quoted)+1, ""
		}
		switch {
		case rest[0] == '[' && name != "": // an index
			known += rest[:end]
		case slices.Contains(words, name):
			known += "." + name
		default:
			known += "[…]"
		}
		rest = rest[min(end, len(rest)):]
	}
	return known
}

// wrapError returns the error of this package for one of package fault or
// codec, and any other error as it is.
func (f *Format) wrapError(err error) error {
	if wrong := fault.As(err); wrong != nil {
		return f.newError(wrong.Path, wrong.Problem())
	}
	if limit := fault.AsLimit(err); limit != nil {
		problem := strings.TrimPrefix(limit.Error(), limit.Path+": ")
		return &Error{f.name, limit.Path, problem, state.ErrLimitExceeded}
	}
	var failure *codec.Failure
	if errors.As(err, &failure) {
		return &ResponseError{f.name, failure.Code, failure.Message}
	}
	if _, ok := f.codec.(*foreign); ok && err != nil {
		return f.ownError(err)
	}
	return err
}
