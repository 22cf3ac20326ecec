package state

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
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
	// ErrReadOnly is returned by a write to a snapshot, a view of the past, a
	// transaction that has ended, a branch that has been joined, or a value that
	// was given to [State.With].
	ErrReadOnly = engine.ErrReadOnly
	// ErrConflict is returned when conflicting writes cannot be merged.
	ErrConflict = engine.ErrConflict
	// ErrCompacted is returned for versions that the journal no longer holds.
	ErrCompacted = engine.ErrCompacted
	// ErrLimitExceeded is returned when something is larger than the schema's
	// [Limits] or a field's MaxBytes allow.
	ErrLimitExceeded = errors.New("state: limit exceeded")
	// ErrWrongType is returned when a value does not fit the field.
	ErrWrongType = errors.New("state: wrong type")
	// ErrUnknownCall is returned for the answer to a tool call that is not in
	// the history, or that is one of another tool.
	ErrUnknownCall = errors.New("state: unknown call")
	// ErrAnswered is returned for the answer to a tool call that has one
	// already.
	ErrAnswered = errors.New("state: call is answered")

	// ErrRefused is returned when a field's handler, Validate or Convert
	// refuses a value, by an error or a panic. The error wraps theirs unless
	// the field is secret.
	ErrRefused = errors.New("state: value refused")
	// ErrInvalidSchema is returned for declarations that do not make a schema.
	ErrInvalidSchema = errors.New("state: invalid schema")
	// ErrInvalid is returned for an argument that has no meaning, such as a nil
	// function, or a branch or snapshot of another state.
	ErrInvalid = errors.New("state: invalid argument")
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
	b.WriteString(": access denied to agent " + fault.Quote(e.Agent))
	if e.stranger {
		b.WriteString(", which is not in the team")
	}
	return b.String()
}

// Hint names the setting of the schema that would allow the operation. It is for
// the log of the program: a model that reads Error can change nothing about it.
func (e *AccessError) Hint() string {
	setting := "Write"
	switch {
	case e.stranger:
		return "the Team of the schema has no agent " + fault.Quote(e.Agent)
	case e.Field == "":
		return "only the handle of the host may do this"
	case e.Field == historyName:
		return "Read and Write of the conversation would have to allow the agent " + fault.Quote(e.Agent)
	case e.Op == "read":
		setting = "Read"
	}
	return fmt.Sprintf("%s of the field %s would have to allow the agent %s, or Owner to be it", setting,
		fault.Quote(e.Field), fault.Quote(e.Agent))
}

// Is reports whether target is [ErrDenied] or [fs.ErrPermission].
func (e *AccessError) Is(target error) bool {
	return target == ErrDenied || target == fs.ErrPermission
}

// TypeError reports a value that does not fit its destination. It is
// [ErrWrongType] and never holds the value.
type TypeError struct {
	Field string // the field's name, or what else was given, e.g. "message"
	Path  string // the place in the value, as in $.a[3].b; a key of a map is shown as […]
	Want  string // empty if Got says what is wrong
	Got   string
}

func (e *TypeError) Error() string {
	where := ""
	if e.Path != "$" { // else the value as a whole
		where = e.Path + ": "
	}
	if e.Want == "" {
		return fmt.Sprintf("state: %q: %s%s", e.Field, where, e.Got)
	}
	return fmt.Sprintf("state: %q: %swant %s, got %s", e.Field, where, e.Want, e.Got)
}

// Is reports whether target is [ErrWrongType].
func (e *TypeError) Is(target error) bool { return target == ErrWrongType }

// LimitError reports something larger than a limit. It is [ErrLimitExceeded].
type LimitError struct {
	Name  string // the limit: a field of [Limits], MaxBytes of a field, Bytes of a JSON text, Calls of a message, or Team: agents times fields
	Field string // the field's name, empty if the limit concerns no field
	Limit int
	Got   int // what was counted when the limit was passed; the whole may be more
}

func (e *LimitError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("state: limit %s: %d is more than %d", e.Name, e.Got, e.Limit)
	}
	text := fmt.Sprintf("state: %q: limit %s: %d is more than %d", e.Field, e.Name, e.Got, e.Limit)
	if e.Field == messagesName && e.Name == "ValueBytes" {
		text += ": the whole conversation is one value: keep its last messages (transcript.KeepLast) or raise Limits.ValueBytes"
	}
	return text
}

// Is reports whether target is [ErrLimitExceeded].
func (e *LimitError) Is(target error) bool { return target == ErrLimitExceeded }

// ConflictError names the fields whose writes cannot be merged, the fields
// whose changes made a write start again too often, or the field for which a
// write waited too long for its turn. It is [ErrConflict].
type ConflictError struct {
	// Fields are in the order of the schema; "history" stands for the results. A
	// transaction that has asked for the version, or listed the keys, may have
	// been overtaken at any field, and has none.
	Fields []string

	why string // empty if writes cannot be merged
}

func (e *ConflictError) Error() string {
	if e.why != "" && len(e.Fields) == 0 {
		return "state: " + e.why
	}
	if e.why != "" {
		return fmt.Sprintf("state: %s: %s", strings.Trim(fmt.Sprintf("%q", e.Fields), "[]"), e.why)
	}
	return fmt.Sprintf("state: conflicting writes to %q", e.Fields)
}

// overtaken is the reason of a write that has started again too often.
const overtaken = "written by others at each attempt: " +
	"does a function given to Update write them through another handle than tx, or a handler or Validate write them itself?"

// noTurn is the reason of a write that got no turn while the write of a handler
// had it.
func noTurn(handler string) string {
	return fmt.Sprintf("no turn to write within %v: "+
		"does the handler %s, Validate or a function given to Update write the field itself?", engine.MaxWait, handler)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// PanicError reports that a function of a field's declaration panicked. It is
// [ErrRefused]. Its text does not hold the value of the panic, which may hold
// what was written. For a secret field, Value and Stack are nil.
type PanicError struct {
	Field string
	Func  string // what panicked: "handler NAME", "Validate" or "Convert"
	Value any    `json:"-"` // the argument of panic
	Stack []byte `json:"-"` // of the goroutine that panicked

	kind string // the type of the argument
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("state: %q: %s panicked with a %s", e.Field, e.Func, e.kind)
}

// Is reports whether target is [ErrRefused].
func (e *PanicError) Is(target error) bool { return target == ErrRefused }

// Unwrap returns the Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// panicError returns the error for the value p of a panic of fn, which belongs
// to a field that may be secret.
func panicError(field, fn string, p any, secret bool) *PanicError {
	e := &PanicError{Field: field, Func: fn, kind: fmt.Sprintf("%T", p)}
	if !secret {
		e.Value, e.Stack = p, debug.Stack()
	}
	return e
}

// kindError is an error that matches a sentinel.
type kindError struct {
	kind error // the sentinel, which is not in the text
	err  error
}

// asKind makes an error match a sentinel.
func asKind(kind, err error) error { return &kindError{kind, err} }

func (e *kindError) Error() string        { return e.err.Error() }
func (e *kindError) Unwrap() error        { return e.err }
func (e *kindError) Is(target error) bool { return target == e.kind }

// schemaError joins the mistakes of a schema. It is [ErrInvalidSchema].
type schemaError []error

func (e schemaError) Error() string        { return errors.Join(e...).Error() }
func (e schemaError) Unwrap() []error      { return e }
func (e schemaError) Is(target error) bool { return target == ErrInvalidSchema }

// invalidArgument returns an [ErrInvalid] of an operation.
func invalidArgument(op, problem string) error {
	return asKind(ErrInvalid, errors.New("state: "+op+": "+problem))
}

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

// callError says which call of a tool an error is about.
func callError(call ToolCall, err error) error { return within(fault.Call(call.ID, call.Name), err) }

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
		return &TypeError{Field: name, Path: wrong.KeylessPath(), Want: wrong.Want, Got: wrong.Got}
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
