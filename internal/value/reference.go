package value

import (
	"reflect"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

// ForReference returns the plan of a type whose values are only referred to:
// streams, channels, functions, anything that [For] refuses. The plan looks
// into no value and calls no method of one. Its size is 0, its copy is the
// value itself, and its JSON the name of its type. Two values are equal if they
// are identical, see [Identical]; if list is set, if their elements are.
// Nothing converts to such a type. The error is an *fault.Error.
func ForReference(t reflect.Type, list bool) (*Plan, error) {
	if internal.RefusedTypes[t] {
		return nil, &fault.Error{Path: "$", Want: "a type that can be stored", Got: "a " + t.String()}
	}
	p := &Plan{typ: t, values: dynamic, flat: true, name: t.String()}
	p.codec = &referenceCodec{typ: t, list: list}
	return p, nil
}

// referenceCodec is for values that are only referred to.
type referenceCodec struct {
	typ  reflect.Type
	list bool
}

func (*referenceCodec) addSize(reflect.Value, *walk.Walk) error { return nil }

func (*referenceCodec) copyInPlace(reflect.Value, bool) error { return nil }

func (*referenceCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) {
	return v.Type().String(), nil
}

func (r *referenceCodec) convert(_ reflect.Value, src any, w *walk.Walk) error {
	return w.Fail(r.typ.String(), kindOf(src))
}

func (*referenceCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return jsontext.AppendQuote(dst, v.Type().String()), nil
}

func (r *referenceCodec) isEqual(a, b reflect.Value) bool {
	if !r.list {
		return Identical(a, b)
	}
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !Identical(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

// Identical reports whether a and b, of one type, are the same without a look
// behind a reference: pointers and maps if they are the same, slices if they
// have the same array and length, and everything else if == says so. Functions,
// which Go does not compare, are identical only if both are nil. Identical does
// not panic, whatever the dynamic types of interfaces are.
func Identical(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Func:
		return a.IsNil() && b.IsNil()
	case reflect.Map:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer()
	case reflect.Interface:
		return Identical(a.Elem(), b.Elem())
	case reflect.Array:
		for i := range a.Len() {
			if !Identical(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !Identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}
