// Package internal holds what package state gives to other packages of this
// module without exporting it. They cannot import what state does not export,
// and internal/value cannot import state at all, because state imports it.
//
// Every variable is set once, while package state is initialised, and only read
// afterwards. This is the only place for such variables.
package internal

import (
	"errors"
	"reflect"

	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/persist"
)

// Window is where the window of an agent begins in the conversation of a
// *state.State, and what stands for the messages that it does not show.
type Window struct {
	// Before counts the messages that stood in front of the window when it was
	// moved, those dropped since the first time included. It only grows.
	Before int `json:"before"`
	// Index is the place of the first message at that time, and Hash its hash: if
	// messages were dropped since, it is at an earlier place.
	Index int    `json:"index"`
	Hash  string `json:"hash"`
	// Shown is how many messages stood behind it at that time, with it.
	Shown int `json:"shown"`
	// Pinned are messages in front of the window that it shows.
	Pinned  []Pin  `json:"pinned,omitempty"`
	Summary string `json:"summary,omitempty"`
	// Scale is how many tokens there are for each that is estimated.
	Scale float64 `json:"scale"`
}

// Pin is a message in front of a window: how far, and its hash.
type Pin struct {
	Distance int    `json:"distance"`
	Hash     string `json:"hash"`
}

// Windows is the *state.Field[map[string]Window] of the windows of a
// *state.State, by agent. Readers of the messages may read and write it. A Set
// keeps of two windows that which begins later. It is not listed, and none of
// its changes are told. WindowsName is its name in a stored state.
var (
	Windows     any
	WindowsName string
)

// SharedWrite is a write to a Shared field of a *state.State, as data.
type SharedWrite struct {
	Field string `json:"-"`
	// Op is "set" for a write through the handler of the field, "replace",
	// "delete", or "update" for a value that was made of what the field had. "read"
	// writes nothing: what was written next depends on what the field had.
	Op string `json:"op"`
	// Value is what was given to the handler, or the new value. An update without
	// a value unsets the field.
	Value string `json:"value,omitempty"`
	// Read is the hash of what an update has read, or "" if the field was unset.
	Read  string `json:"read,omitempty"`
	Agent string `json:"agent,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Again makes the update of another value. It is nil if that is not possible.
	Again any `json:"-"`
}

// SharedNames returns the present and former names of the Shared fields of a
// *state.Schema, or nil. The caller must not change the map. KeepShared lets a
// *state.State keep what is written to them from now on. SharedWrites returns,
// of a snapshot, what was kept from an index on. RedoShared does writes again on
// the content of another State, which nobody else uses. If an update, or what follows
// a read, cannot be done again, because the field is not as it was read, the
// error matches ErrSharedStale and state.ErrConflict.
var (
	SharedNames  func(schema any) map[string]bool
	KeepShared   func(st any)
	SharedWrites func(st any, from int) ([]SharedWrite, error)
	RedoShared   func(st any, writes []SharedWrite) error
)

// ErrSharedStale is an error of RedoShared.
var ErrSharedStale = errors.New("state: what was read of a shared field has changed")

// Branch returns what identifies the branch of a *state.State: all handles on it
// have the same. IsWritable reports whether it can be written at all.
var (
	Branch     func(st any) any
	IsWritable func(st any) bool
)

// ImportForm makes a *state.State with the content of a form, for a
// *state.Schema, as state.Import does for the JSON of a form. Package workspace
// has forms that were never encoded. The JSON inside the form must have been
// checked. moved are the fields whose stored names or forms are former ones.
//
// A conversation that is not nil takes the place of the conversation and the
// results in the form. It comes from Conversation and a State of the same
// schema.
var ImportForm func(schema any, in *form.State, conversation any) (st any, moved []form.Moved, err error)

// Conversation returns the conversation and the results of a *state.State, which
// a later State can take over without decoding them. It does not change. The
// State must not be written during the call.
var Conversation func(st any) any

// ConversationMessages returns the messages of a conversation, a list of
// state.Message that is empty if the field is not set.
var ConversationMessages func(conversation any) *persist.List

// ShortenConversation returns a conversation with some of the messages and of
// the results, by their indexes in ascending order; nil stands for all.
var ShortenConversation func(conversation any, messages, results []int) any

// DecodeChecked makes a state.Message of JSON as state.DecodeMessage does. The
// JSON must have been checked, by jsontext.Check or because it was made of
// parts that were. Package provider makes messages of a body that is checked as
// a whole. It does not retain data.
var DecodeChecked func(data []byte) (any, error)

// IsReference reports whether a field of a *state.State holds references: Go
// values that no code may look into.
var IsReference func(st any, field string) bool

// CheckField returns the error of using a field with a *state.State whose schema
// does not have it. The field is a *state.Field, or a name. Rights to the field
// do not matter.
var CheckField func(st, field any) error

// IsKey reports whether a *state.State may hold an undeclared key with a name.
var IsKey func(st any, name string) bool

// Hidden calls yield with each value that texts for an agent must not hold:
// the values of Secret fields and, unless agent is "", those of the fields that
// it may not read. The rights of the *state.State do not count. Values that were
// given to With, and those that they cover, are among them. References are not.
// value is a copy, of the type of the field.
var Hidden func(st any, agent string, yield func(field string, secret bool, value any))

// Redact masks all secrets of a *state.State in a text, whatever rights the
// handle has. It is for what operators see, and not for code of agents.
var Redact func(st any, text string) string

// ParseSchemaByName makes a *state.Schema of JSON as state.ParseSchema does, but
// accepts handlers that it does not have. They have their names and merge
// nothing: a write that would need one fails.
var ParseSchemaByName func(data []byte) (schema any, err error)

// NewRedactor returns a *state.Redactor for some texts, nil if it has nothing to
// mask.
var NewRedactor func(secrets []string) (redactor any)

// Key is what [state.Inside] asks for. Other modules cannot make one.
type Key struct{}

// An OpaqueType is a type whose values internal/value stores as they are,
// because they never change: it copies only the reference.
type OpaqueType struct {
	// Type is the type, or an interface that only such types implement.
	Type reflect.Type
	// Encode and Decode write and read the JSON of a value.
	Encode func(v any) ([]byte, error)
	Decode func(data []byte) (any, error)
	// Size returns about the length of the JSON. A negative size means that the
	// value must not be stored. So does an error, which is a fault.
	Size func(v any) (int, error)
}

// The facts about types that internal/value cannot derive from their structure.
var (
	OpaqueTypes []OpaqueType
	// TypeNames are the names of types in errors and descriptions.
	TypeNames = map[reflect.Type]string{}
	// RefusedTypes only stand for a value or give access to one. They cannot be
	// stored, although they have a JSON form.
	RefusedTypes = map[reflect.Type]bool{}
)
