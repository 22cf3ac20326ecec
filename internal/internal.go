// Package internal holds what package state gives to other packages of this
// module without exporting it. They cannot import what state does not export,
// and internal/value cannot import state at all, because state imports it.
//
// Every variable is set once, while package state is initialised, and only read
// afterwards. This is the only place for such variables.
package internal

import (
	"reflect"

	"github.com/agentstate/state/internal/form"
)

// ImportForm makes a *state.State with the content of a form, for a
// *state.Schema, as state.Import does for the JSON of a form. Package workspace
// has forms that were never encoded. The JSON inside the form must have been
// checked. moved are the fields whose stored names or forms are former ones.
var ImportForm func(schema any, in *form.State) (st any, moved []form.Moved, err error)

// DecodeChecked makes a state.Message of JSON as state.DecodeMessage does. The
// JSON must have been checked, by jsontext.Check or because it was made of
// parts that were. Package provider makes messages of a body that is checked as
// a whole.
var DecodeChecked func(data []byte) (any, error)

// IsMessage reports whether m is a state.Message that may be stored: one of the
// four types, and not nil or its zero value.
var IsMessage func(m any) bool

// IsReference reports whether a field of a *state.State holds references: Go
// values that no code may look into.
var IsReference func(st any, field string) bool

// An OpaqueType is a type whose values internal/value stores as they are,
// because they never change: it copies only the reference.
type OpaqueType struct {
	// Type is the type, or an interface that only such types implement.
	Type reflect.Type
	// Encode and Decode write and read the JSON of a value.
	Encode func(v any) ([]byte, error)
	Decode func(data []byte) (any, error)
	// Size returns about the length of the JSON. A negative size means that the
	// value must not be stored.
	Size func(v any) int
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
