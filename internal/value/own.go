package value

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// guarded calls code of a type and makes its panic an error, which does not
// repeat what may be a part of the value.
func guarded(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("panic in a method")
		}
	}()
	return call()
}

// ownCodec is for types with coding methods of their own.
type ownCodec struct {
	typ   reflect.Type
	text  bool          // MarshalText, else MarshalJSON
	reads bool          // what it writes
	clone reflect.Value // func(*T) T or func(*T) *T
	flat  bool
}

// pointer returns a pointer to v, since methods may have pointer receivers.
func pointer(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

// write returns what the type writes, JSON or the text of a string.
func (o *ownCodec) write(v reflect.Value) (out []byte, err error) {
	err = guarded(func() (err error) {
		if x := pointer(v).Interface(); o.text {
			out, err = x.(encoding.TextMarshaler).MarshalText()
		} else {
			out, err = x.(json.Marshaler).MarshalJSON()
		}
		return err
	})
	return out, err
}

// read sets a settable value from what write returned.
func (o *ownCodec) read(v reflect.Value, in []byte) error {
	return guarded(func() error {
		if x := v.Addr().Interface(); o.text {
			return x.(encoding.TextUnmarshaler).UnmarshalText(in)
		} else {
			return x.(json.Unmarshaler).UnmarshalJSON(in)
		}
	})
}

func (o *ownCodec) check(v reflect.Value, w *walk) error {
	out, err := o.write(v)
	if err != nil {
		return w.fail(o.typ.String()+" that can be written", "an error of its method")
	}
	if o.text {
		err = w.addString(string(out), 2)
	} else {
		err = w.addText(out, o.typ)
	}
	if err != nil {
		return err
	}
	if o.reads && o.read(reflect.New(o.typ).Elem(), out) != nil {
		return w.fail(o.typ.String()+" that reads what it writes", "an error of its method")
	}
	return nil
}

func (o *ownCodec) isolate(v reflect.Value, store bool) error {
	c := reflect.New(o.typ).Elem()
	err := guarded(func() error {
		if !o.clone.IsValid() {
			out, err := o.write(v)
			if err != nil {
				return err
			}
			return o.read(c, out)
		}
		result := o.clone.Call([]reflect.Value{v.Addr()})[0]
		if result.Type() != o.typ {
			result = result.Elem()
		}
		c.Set(result)
		return nil
	})
	switch {
	case err == nil:
		v.Set(c)
	case store:
		return &fault.Error{Path: "$", Want: o.typ.String() + " that can be copied", Got: "an error of its method"}
	}
	return nil // a method that worked when the value was stored fails now: keep the value
}

func (o *ownCodec) tree(v reflect.Value, w *walk) (any, error) {
	out, err := o.write(v)
	if err != nil {
		return nil, err
	}
	if o.text {
		return string(out), nil
	}
	return decoded(out, w)
}

// decoded returns JSON as a tree.
func decoded(text []byte, w *walk) (any, error) {
	x, err := jsontext.Decode(text, jsontext.Limits{Depth: ceiling})
	if err != nil || w.exact {
		return x, err
	}
	return tree(x, w)
}

func (o *ownCodec) convert(dst reflect.Value, src any, w *walk) error {
	var in []byte
	if o.text {
		s, ok := src.(string)
		if !ok {
			return w.fail(nameOf(o.typ), kindOf(src))
		}
		in = []byte(s)
	} else {
		var err error
		if in, err = appendAny(nil, src); err != nil {
			return err
		}
	}
	if o.read(dst, in) != nil {
		return w.fail(nameOf(o.typ), "another "+kindOf(src))
	}
	return nil
}

func (o *ownCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	out, err := o.write(v)
	if err != nil {
		return dst, err
	}
	if o.text {
		return jsontext.AppendQuote(dst, string(out)), nil
	}
	return appendText(dst, out)
}

func appendText(dst, text []byte) ([]byte, error) {
	if err := jsontext.Check(text, jsontext.Limits{Depth: ceiling}); err != nil {
		return dst, err
	}
	return jsontext.AppendCompact(dst, text), nil
}

func (o *ownCodec) equal(a, b reflect.Value) bool {
	x, errA := o.write(a)
	y, errB := o.write(b)
	if errA != nil || errB != nil || bytes.Equal(x, y) || o.text {
		return errA == nil && errB == nil && bytes.Equal(x, y)
	}
	// The order of members may differ.
	s, errA := jsontext.Decode(x, jsontext.Limits{Depth: ceiling})
	t, errB := jsontext.Decode(y, jsontext.Limits{Depth: ceiling})
	return errA == nil && errB == nil && reflect.DeepEqual(s, t)
}

// timeCodec is for time.Time.
type timeCodec struct{}

// timeSize is the size of a date, about what RFC 3339 takes.
const timeSize = 32

// timeOf returns the time in a zone that RFC 3339 can spell.
func timeOf(v reflect.Value) time.Time {
	t := v.Interface().(time.Time)
	if _, offset := t.Zone(); offset%60 != 0 || offset <= -24*3600 || offset >= 24*3600 {
		return t.UTC()
	}
	return t
}

func (timeCodec) check(v reflect.Value, w *walk) error {
	if err := w.add(timeSize); err != nil {
		return err
	}
	if year := timeOf(v).Year(); year < 0 || year > 9999 {
		return w.fail("a year from 0 to 9999", "another")
	}
	return nil
}

func (timeCodec) isolate(reflect.Value, bool) error { return nil }

func (timeCodec) tree(v reflect.Value, _ *walk) (any, error) {
	return timeOf(v).Format(time.RFC3339Nano), nil
}

func (timeCodec) convert(dst reflect.Value, src any, w *walk) error {
	s, ok := src.(string)
	if !ok {
		return w.fail("time.Time", kindOf(src))
	}
	var t time.Time
	if t.UnmarshalText([]byte(s)) != nil { // stricter than time.Parse
		return w.fail("a date as in RFC 3339", "other text")
	}
	dst.Set(reflect.ValueOf(t))
	return nil
}

func (timeCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	dst = timeOf(v).AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"'), nil
}

func (timeCodec) equal(a, b reflect.Value) bool {
	return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
}

// nameOf returns what a type is called.
func nameOf(t reflect.Type) string {
	p, err := source(t)
	if err != nil {
		return t.String()
	}
	return p.name
}

// opaqueOf returns what t is registered as: itself or, unless it points to
// memory that can change, as an interface that it implements.
func opaqueOf(t reflect.Type) *internal.OpaqueType {
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

// opaqueCodec is for opaque types.
type opaqueCodec struct {
	typ reflect.Type
	*internal.OpaqueType
}

// take sets dst to src if that is such a value.
func (o *opaqueCodec) take(dst reflect.Value, src any) bool {
	t := reflect.TypeOf(src)
	if t == nil || !t.AssignableTo(o.typ) || t.Kind() == reflect.Pointer && opaqueOf(t) == nil {
		return false
	}
	dst.Set(reflect.ValueOf(src))
	return true
}

func (o *opaqueCodec) check(v reflect.Value, w *walk) error {
	if v.Kind() == reflect.Interface {
		if v.IsNil() {
			return w.fail(nameOf(o.typ), "null")
		}
		if t := v.Elem().Type(); t.Kind() == reflect.Pointer && opaqueOf(t) == nil {
			return w.fail(nameOf(o.typ), fmt.Sprintf("a pointer, %s", t))
		}
	}
	size := 0
	if err := guarded(func() error { size = o.Size(v.Interface()); return nil }); err != nil {
		return w.fail(o.typ.String()+" with a size", "an error of its function")
	}
	if size < 0 {
		return w.fail(nameOf(o.typ), "one that is not to be stored")
	}
	return w.add(size)
}

func (o *opaqueCodec) isolate(reflect.Value, bool) error { return nil }

// text returns the JSON of a value.
func (o *opaqueCodec) text(v reflect.Value) (text []byte, err error) {
	err = guarded(func() (err error) {
		text, err = o.Encode(v.Interface())
		return err
	})
	return text, err
}

func (o *opaqueCodec) tree(v reflect.Value, w *walk) (any, error) {
	text, err := o.text(v)
	if err != nil {
		return nil, err
	}
	return decoded(text, w)
}

func (o *opaqueCodec) convert(dst reflect.Value, src any, w *walk) error {
	if src == nil {
		return w.fail(nameOf(o.typ), "null")
	}
	text, err := appendAny(nil, src)
	if err != nil {
		return err
	}
	var x any
	if err := guarded(func() (err error) { x, err = o.Decode(text); return err }); err != nil || !o.take(dst, x) {
		return w.fail(nameOf(o.typ), "another "+kindOf(src))
	}
	return nil
}

func (o *opaqueCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	text, err := o.text(v)
	if err != nil {
		return dst, err
	}
	return appendText(dst, text)
}

func (o *opaqueCodec) equal(a, b reflect.Value) bool {
	x, errA := o.text(a)
	y, errB := o.text(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}
