// Package internal holds the types of what package state gives to other packages
// of this module without exporting it, and the key with which they ask for it:
// see [state.Inside].
package internal

import (
	"errors"
	"reflect"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/persist"
)

// Key is what [state.Inside] asks for. Other modules cannot make one.
type Key struct{}

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
	// Withheld is what providers have refused of the conversation, for all agents in
	// the window of the host: a hash of the provider, a space and the id of a piece.
	// It is merged, whichever window begins later.
	Withheld []string `json:"withheld,omitempty"`
}

// Pin is a message in front of a window: how far, and its hash.
type Pin struct {
	Distance int    `json:"distance"`
	Hash     string `json:"hash"`
}

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
	Again func(current *engine.Cell) (engine.Update, error) `json:"-"`
}

// ErrSharedStale is an error of doing a SharedWrite again.
var ErrSharedStale = errors.New("state: what was read of a shared field has changed")

// Conversation is the conversation and the results of a *state.State at one
// moment, which a later State can take over without decoding them. It does not
// change.
type Conversation interface {
	// Messages returns a list of state.Message, which is empty if the field is not
	// set.
	Messages() *persist.List
	// Shorten returns the conversation with some of the messages and of the
	// results, by their indexes in ascending order; nil stands for all.
	Shorten(messages, results []int) Conversation
}

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

// The facts about types that internal/value cannot derive from their structure,
// and about those of package state, which it cannot import. They are set while
// package state is initialised, and only read afterwards.
var (
	OpaqueTypes []OpaqueType
	// TypeNames are the names of types in errors and descriptions.
	TypeNames = map[reflect.Type]string{}
	// RefusedTypes only stand for a value or give access to one. They cannot be
	// stored, although they have a JSON form.
	RefusedTypes = map[reflect.Type]bool{}
)
