package state

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
)

// The sentinels. Errors of this package match them with [errors.Is]. The types
// below carry the details and are found with [errors.As].
var (
	// ErrNotFound is returned by a read of a field that has no value.
	ErrNotFound = errors.New("state: no value")
	// ErrDenied is returned when the agent has no right to an operation.
	ErrDenied = errors.New("state: access denied")
	// ErrUnknownField is returned for a name that the schema does not declare.
	ErrUnknownField = errors.New("state: unknown field")
	// ErrReadOnly is returned by a write to a snapshot, a view of the past, or
	// a transaction that has ended.
	ErrReadOnly = engine.ErrReadOnly
	// ErrConflict is returned when conflicting writes cannot be merged.
	ErrConflict = engine.ErrConflict
	// ErrCompacted is returned for versions that the journal no longer holds.
	ErrCompacted = engine.ErrCompacted
	// ErrJoined is returned by a write to, or a second join of, a branch that
	// has been joined.
	ErrJoined = engine.ErrJoined
	// ErrLimitExceeded is returned when something is larger than the schema's
	// [Limits] or a field's MaxBytes allow.
	ErrLimitExceeded = errors.New("state: limit exceeded")
	// ErrWrongType is returned when a value does not fit the field.
	ErrWrongType = errors.New("state: wrong type")
	// ErrUnknownCall is returned for the result of a tool call that no result
	// of the history has.
	ErrUnknownCall = errors.New("state: unknown call")
	// ErrAnswered is returned for the result of a tool call that has a result.
	ErrAnswered = errors.New("state: call is answered")
)

// The names of what every state has.
const (
	messagesName = "messages"
	historyName  = "history" // in errors; it is not a field
)

// AccessError reports an operation that the agent has no right to. It is
// [ErrDenied] and [fs.ErrPermission].
type AccessError struct {
	Op    string // what was tried, e.g. "read", "set", "export"
	Field string // the field's name, empty if the operation concerns no field
	Agent string // the agent that tried

	stranger bool // the agent is not in the team
}

func (e *AccessError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "state: %s", e.Op)
	if e.Field != "" {
		fmt.Fprintf(&b, " %q", e.Field)
	}
	fmt.Fprintf(&b, ": access denied to agent %q", e.Agent)
	if e.stranger {
		b.WriteString(", which is not in the team")
	}
	return b.String()
}

// Is reports whether target is [ErrDenied] or [fs.ErrPermission].
func (e *AccessError) Is(target error) bool {
	return target == ErrDenied || target == fs.ErrPermission
}

// TypeError reports a value that does not fit its destination. It is
// [ErrWrongType] and never holds the value.
type TypeError struct {
	Field string // the field's name, or what else was given, e.g. "message"
	Path  string // the place in the value, as in $.a[3].b
	Want  string // empty if Got says what is wrong
	Got   string
}

func (e *TypeError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("state: %q: %s: %s", e.Field, e.Path, e.Got)
	}
	return fmt.Sprintf("state: %q: %s: want %s, got %s", e.Field, e.Path, e.Want, e.Got)
}

// Is reports whether target is [ErrWrongType].
func (e *TypeError) Is(target error) bool { return target == ErrWrongType }

// LimitError reports something larger than a limit. It is [ErrLimitExceeded].
type LimitError struct {
	Name  string // the limit: a field of [Limits], MaxBytes of a field, or Bytes of a JSON text
	Field string // the field's name, empty if the limit concerns no field
	Limit int
	Got   int // what was counted when the limit was passed; the whole may be more
}

func (e *LimitError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("state: limit %s: %d is more than %d", e.Name, e.Got, e.Limit)
	}
	return fmt.Sprintf("state: %q: limit %s: %d is more than %d", e.Field, e.Name, e.Got, e.Limit)
}

// Is reports whether target is [ErrLimitExceeded].
func (e *LimitError) Is(target error) bool { return target == ErrLimitExceeded }

// ConflictError names the fields whose writes cannot be merged, the fields that
// overtook a write again and again, or the field for which a write waited too
// long for its turn. It is [ErrConflict].
type ConflictError struct {
	Fields []string // in the order of the schema; "history" stands for the results

	why string // empty if writes cannot be merged
}

func (e *ConflictError) Error() string {
	if e.why != "" {
		return fmt.Sprintf("state: %s: %s", strings.Trim(fmt.Sprintf("%q", e.Fields), "[]"), e.why)
	}
	return fmt.Sprintf("state: conflicting writes to %q", e.Fields)
}

// overtaken is why a write gives up.
const overtaken = "written by others at each attempt: " +
	"does a function given to Update write them through another handle than tx, or a handler or Validate write them itself?"

// noTurn says why a write got no turn, while a write through a handler had it.
func noTurn(handler string) string {
	return fmt.Sprintf("no turn to write within %v: "+
		"does the handler %s, Validate or a function given to Update write the field itself?", engine.MaxWait, handler)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// CallError reports the result of a tool call that cannot be added to the
// history. It is [ErrUnknownCall] or [ErrAnswered].
type CallError struct {
	ID   string // of the call; empty if the provider gives no ids
	Name string // of the tool
	Err  error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("state: call %s of %s: %s", fault.Quote(e.ID), fault.Quote(e.Name), strings.TrimPrefix(e.Err.Error(), "state: "))
}

// Unwrap returns the sentinel.
func (e *CallError) Unwrap() error { return e.Err }

// placedError is an error with the place where it occurred.
type placedError struct {
	place string // as it is printed
	err   error
}

func (e *placedError) Error() string {
	return "state: " + e.place + ": " + strings.TrimPrefix(e.err.Error(), "state: ")
}

func (e *placedError) Unwrap() error { return e.err }

// within says in what operation or text an error occurred.
func within(place string, err error) error { return &placedError{place, err} }

// fieldError says which field an error is about.
func fieldError(name string, err error) error { return &placedError{strconv.Quote(name), err} }

// jsonError is within for an error of reading what place names. It makes a
// fault a [TypeError] or a [LimitError].
func jsonError(place string, err error) error {
	if e := typedError(place, err); e != nil {
		return e
	}
	return within(place, err)
}

// valueError is fieldError for an error of the field's value. It makes a fault
// a [TypeError] or a [LimitError].
func valueError(name string, err error) error {
	if e := typedError(name, err); e != nil {
		return e
	}
	return fieldError(name, err)
}

// typedError returns the exported error that says the same as a fault, or nil
// if err is not a fault.
func typedError(name string, err error) error {
	if limit := fault.AsLimit(err); limit != nil {
		return &LimitError{Name: limit.Name, Field: name, Limit: limit.Limit, Got: limit.Got}
	}
	if wrong := fault.As(err); wrong != nil {
		return &TypeError{Field: name, Path: wrong.Path, Want: wrong.Want, Got: wrong.Got}
	}
	return nil
}

// checkName returns what is wrong with the name of a field or agent.
func checkName(name string, limit int) error {
	if limit > 0 && len(name) > limit {
		return &LimitError{Name: "NameBytes", Field: fault.Clip(name), Limit: limit, Got: len(name)}
	}
	if wrong := fault.CheckName("name", name); wrong != nil {
		return &TypeError{Field: fault.Clip(name), Path: wrong.Path, Want: wrong.Want, Got: wrong.Got}
	}
	return nil
}
