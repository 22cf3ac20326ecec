package value

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

// opaqueTypeOf returns the entry of internal.OpaqueTypes for t, or nil. A
// pointer must be listed itself: it may implement a listed interface and still
// point to memory that changes.
func opaqueTypeOf(t reflect.Type) *internal.OpaqueType {
	var found *internal.OpaqueType
	for i := range internal.OpaqueTypes {
		o := &internal.OpaqueTypes[i]
		if o.Type == t {
			return o
		}
		if o.Type.Kind() == reflect.Interface && t.Kind() != reflect.Pointer && t.Implements(o.Type) {
			found = o
		}
	}
	return found
}

// opaqueCodec is for opaque types and for interfaces that only they implement.
// It never copies a value.
type opaqueCodec struct {
	*internal.OpaqueType
	typ    reflect.Type // the type itself, which may only implement OpaqueType.Type
	name   string       // in errors
	values dynamicValues
}

func isOpaquePointer(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && opaqueTypeOf(t) != nil
}

func (o *opaqueCodec) addSize(v reflect.Value, w *walk.Walk) error {
	if v.Kind() == reflect.Interface {
		if v.IsNil() {
			return w.Fail(o.name, "null")
		}
		if t := v.Elem().Type(); t.Kind() == reflect.Pointer && !isOpaquePointer(t) {
			return w.Fail(o.name, fmt.Sprintf("a pointer, %s", t))
		}
	}
	size := 0
	var refused error
	if err := callGuarded(func() error { size, refused = o.Size(v.Interface()); return nil }); err != nil {
		return w.Fail(o.typ.String()+" with a size", "an error of its function")
	}
	if refused != nil {
		return refused
	}
	if size < 0 {
		return w.Fail(o.name, "one that is not to be stored")
	}
	return w.Add(size)
}

func (o *opaqueCodec) copyInPlace(reflect.Value, bool) error { return nil }

// encode returns the JSON of a value.
func (o *opaqueCodec) encode(v reflect.Value) (text []byte, err error) {
	err = callGuarded(func() (err error) {
		text, err = o.Encode(v.Interface())
		return err
	})
	return text, err
}

// decode sets dst to the value that a JSON text says, and reports whether there
// is one.
func (o *opaqueCodec) decode(dst reflect.Value, text []byte) bool {
	var x any
	err := callGuarded(func() (err error) { x, err = o.Decode(text); return err })
	return err == nil && o.assign(dst, x)
}

// assign sets dst to src and reports true, if src is a value of the type.
func (o *opaqueCodec) assign(dst reflect.Value, src any) bool {
	t := reflect.TypeOf(src)
	if t == nil || !t.AssignableTo(o.typ) || t.Kind() == reflect.Pointer && !isOpaquePointer(t) {
		return false
	}
	dst.Set(reflect.ValueOf(src))
	return true
}

func (o *opaqueCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	text, err := o.encode(v)
	if err != nil {
		return nil, err
	}
	return decodeTree(text, o.values, w)
}

func (o *opaqueCodec) convertText(dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	if !o.decode(dst, src) {
		return false, w.Fail(o.name, "another "+jsontext.Kind(src))
	}
	return true, nil
}

func (o *opaqueCodec) convertSource(dst reflect.Value, src any, _ *walk.Walk) (bool, error) {
	return o.assign(dst, src), nil
}

func (o *opaqueCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	if src == nil {
		return w.Fail(o.name, "null")
	}
	text, err := o.values.appendValue(nil, src)
	if err != nil {
		return err
	}
	if !o.decode(dst, text) {
		return w.Fail(o.name, "another "+kindOf(src))
	}
	return nil
}

func (o *opaqueCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	text, err := o.encode(v)
	if err != nil {
		return dst, err
	}
	return appendChecked(dst, text)
}

func (o *opaqueCodec) isEqual(a, b reflect.Value) bool {
	x, errA := o.encode(a)
	y, errB := o.encode(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
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
