package state

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
)

// The sentinels. Errors of this package match them with [errors.Is]; the types
// below carry the detail and are found with [errors.As].
var (
	// ErrNotFound is returned by a read of a field that has no value.
	ErrNotFound = errors.New("state: no value")
	// ErrDenied is returned when the agent has no right to what it asks for.
	ErrDenied = errors.New("state: access denied")
	// ErrUnknownField is returned for a name that the schema does not declare.
	ErrUnknownField = errors.New("state: unknown field")
	// ErrReadOnly is returned by a write to a snapshot, a view of the past, or
	// a transaction that has ended.
	ErrReadOnly = errors.New("state: read-only")
	// ErrConflict is returned when writes that do not combine met each other.
	ErrConflict = errors.New("state: conflict")
	// ErrCompacted is returned for versions that the journal no longer holds.
	ErrCompacted = errors.New("state: compacted")
	// ErrJoined is returned by a write to, or a second join of, a branch that
	// has been joined.
	ErrJoined = errors.New("state: branch is joined")
	// ErrLimitExceeded is returned when something is larger than the schema's [Limits]
	// or a field's MaxBytes allow.
	ErrLimitExceeded = errors.New("state: limit exceeded")
	// ErrWrongType is returned when a value does not fit the field.
	ErrWrongType = errors.New("state: wrong type")
)

// AccessError reports an operation that the agent has no right to. It is
// [ErrDenied] and [fs.ErrPermission].
type AccessError struct {
	Op    string // what was tried, e.g. "read", "set", "export"
	Field string // the field's name, empty if it concerns none
	Agent string // who tried

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
		b.WriteString(", who is not in the team")
	}
	return b.String()
}

// Is reports whether target is [ErrDenied] or [fs.ErrPermission].
func (e *AccessError) Is(target error) bool {
	return target == ErrDenied || target == fs.ErrPermission
}

// TypeError reports a value that does not fit where it was to go. It is
// [ErrWrongType] and never holds the value.
type TypeError struct {
	Field string // the field's name, or what else was given, e.g. "message"
	Path  string // where in the value, as in $.a[3].b
	Want  string // empty where Got says what is wrong
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
	Field string // the field's name, empty if it concerns none
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

// ConflictError names the fields whose writes do not combine. It is
// [ErrConflict].
type ConflictError struct {
	Fields []string // in the schema's order; "history" stands for the results
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("state: conflicting writes to %q", e.Fields)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// fieldError says which field an error is about.
func fieldError(name string, err error) error { return &aboutError{field: name, err: err} }

// within says in what an error occurred.
func within(where string, err error) error { return &aboutError{where: where, err: err} }

type aboutError struct {
	field string // the name of a field
	where string // or else what it is about
	err   error
}

func (e *aboutError) Error() string {
	where := e.where
	if where == "" {
		where = strconv.Quote(e.field)
	}
	return "state: " + where + ": " + strings.TrimPrefix(e.err.Error(), "state: ")
}

func (e *aboutError) Unwrap() error { return e.err }

// jsonError makes an error of package fault one of this package.
func jsonError(what string, err error) error {
	if limit := fault.AsLimit(err); limit != nil {
		return &LimitError{Name: limit.Name, Field: what, Limit: limit.Limit, Got: limit.Got}
	}
	if wrong := fault.As(err); wrong != nil {
		return &TypeError{Field: what, Path: wrong.Path, Want: wrong.Want, Got: wrong.Got}
	}
	return within(what, err)
}
