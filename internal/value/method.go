package value

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

// methodCodec is for types with coding methods.
type methodCodec struct {
	typ    reflect.Type
	name   string // in errors
	values dynamicValues
	text   bool          // MarshalText, else MarshalJSON
	reads  bool          // the type reads what it writes
	clone  reflect.Value // func(*T) T or func(*T) *T, or the zero Value
}

// encode returns what the type writes: JSON, or the content of a string. The
// methods may have a pointer as receiver.
func (m *methodCodec) encode(v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		return m.encodePointer(v.Addr())
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return m.encodePointer(p)
}

func (m *methodCodec) encodePointer(p reflect.Value) (out []byte, err error) {
	err = callGuarded(func() (err error) {
		if m.text {
			out, err = p.Interface().(encoding.TextMarshaler).MarshalText()
		} else {
			out, err = p.Interface().(json.Marshaler).MarshalJSON()
		}
		return err
	})
	return out, err
}

// decode sets a settable value from what encode returned. It passes a copy:
// there are types that keep what they are given, and types that write their own
// memory.
func (m *methodCodec) decode(v reflect.Value, in []byte) error {
	in = bytes.Clone(in)
	return callGuarded(func() error {
		if m.text {
			return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(in)
		}
		return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(in)
	})
}

func (m *methodCodec) addSize(v reflect.Value, w *walk.Walk) error {
	out, err := m.encode(v)
	if err != nil {
		return w.Fail(m.typ.String()+" that can be written", "an error of its method")
	}
	if m.text {
		err = w.AddString(string(out))
	} else {
		err = w.AddJSON(out, m.typ)
	}
	if err != nil {
		return err
	}
	if m.reads && m.decode(reflect.New(m.typ).Elem(), out) != nil {
		return w.Fail(m.typ.String()+" that reads what it writes", "an error of its method")
	}
	return nil
}

// copyInPlace calls Clone, or decodes what the value encodes to: what a type
// hides behind its methods cannot be copied in any other way. A type whose
// Clone is shallow shares memory with its copies; there is no way to tell.
func (m *methodCodec) copyInPlace(v reflect.Value, normalize bool) error {
	c := reflect.New(m.typ).Elem()
	err := callGuarded(func() error {
		if !m.clone.IsValid() {
			out, err := m.encode(v)
			if err != nil {
				return err
			}
			return m.decode(c, out)
		}
		result := m.clone.Call([]reflect.Value{v.Addr()})[0]
		if result.Type() != m.typ {
			result = result.Elem()
		}
		c.Set(result)
		return nil
	})
	switch {
	case err == nil:
		v.Set(c)
	case normalize:
		return &fault.Error{Path: "$", Want: m.typ.String() + " that can be copied", Got: "an error of its method"}
	}
	// The method worked when the value was stored and fails now. The reader
	// gets the stored value itself rather than none.
	return nil
}

func (m *methodCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	out, err := m.encode(v)
	if err != nil {
		return nil, err
	}
	if m.text {
		return string(out), nil
	}
	return decodeTree(out, m.values, w)
}

func (m *methodCodec) convertText(dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	if m.text {
		return false, nil
	}
	if m.decode(dst, src) != nil {
		return false, w.Fail(m.name, "another "+jsontext.Kind(src))
	}
	return true, nil
}

func (m *methodCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	var in []byte
	if m.text {
		s, ok := src.(string)
		if !ok {
			return w.Fail(m.name, kindOf(src))
		}
		in = []byte(s)
	} else {
		var err error
		if in, err = m.values.appendValue(nil, src); err != nil {
			return err
		}
	}
	if m.decode(dst, in) != nil {
		return w.Fail(m.name, "another "+kindOf(src))
	}
	return nil
}

func (m *methodCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	out, err := m.encode(v)
	if err != nil {
		return dst, err
	}
	if m.text {
		return jsontext.AppendQuote(dst, string(out)), nil
	}
	return appendChecked(dst, out)
}

func (m *methodCodec) isEqual(a, b reflect.Value) bool {
	x, errA := m.encode(a)
	y, errB := m.encode(b)
	if errA != nil || errB != nil || bytes.Equal(x, y) || m.text {
		return errA == nil && errB == nil && bytes.Equal(x, y)
	}
	// The order of members may differ, for example in a map.
	s, errA := jsontext.Decode(x, jsontext.Limits{Depth: walk.MaxDepth})
	t, errB := jsontext.Decode(y, jsontext.Limits{Depth: walk.MaxDepth})
	return errA == nil && errB == nil && reflect.DeepEqual(s, t)
}

// sampleLevels is the nesting up to which a sample is filled. It ends the
// recursion in types that contain themselves.
const sampleLevels = 8

// writesOnlyEmbedded reports whether the coding method of a struct type writes
// nothing but an embedded field. That is the case if the method is promoted
// from the field, and then all other fields of the struct would be lost.
//
// Reflection does not tell a promoted method from one that the struct declares:
// the method sets are the same. Only if an embedded type has the method as
// well, the two are compared by what they write of a struct whose other fields
// are set. If neither can write it, the answer is true: losing fields is worse
// than refusing a type.
func (m *methodCodec) writesOnlyEmbedded() bool {
	for i := range m.typ.NumField() {
		inner := methodCodec{typ: m.typ.Field(i).Type, text: m.text}
		if inner.typ.Kind() == reflect.Pointer {
			inner.typ = inner.typ.Elem()
		}
		if !m.typ.Field(i).Anonymous || !inner.canEncode() {
			continue
		}
		sample := reflect.New(m.typ).Elem()
		for j := range m.typ.NumField() {
			if j != i {
				fillSample(sample.Field(j), sampleLevels)
			}
		}
		embedded := reflect.New(inner.typ)
		if f := sample.Field(i); f.Kind() == reflect.Pointer && f.CanSet() {
			f.Set(embedded)
		} else if f.Kind() == reflect.Pointer {
			embedded = reflect.Zero(f.Type()) // it stays nil in the sample
		}
		whole, wholeErr := m.encode(sample)
		part, partErr := inner.encodePointer(embedded)
		if (wholeErr == nil) == (partErr == nil) && bytes.Equal(whole, part) {
			return true
		}
	}
	return false
}

func (m *methodCodec) canEncode() bool {
	method := marshalerType
	if m.text {
		method = textMarshalerType
	}
	return m.typ.Implements(method) || reflect.PointerTo(m.typ).Implements(method)
}

// fillSample sets v, as far as it can be set, to a value other than zero, with
// at most so many levels.
func fillSample(v reflect.Value, levels int) {
	if !v.CanSet() || levels == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillSample(v.Index(0), levels-1)
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillSample(key, levels-1)
		fillSample(elem, levels-1)
		v.Set(reflect.MakeMapWithSize(v.Type(), 1))
		if key.Comparable() {
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillSample(v.Elem(), levels-1)
	case reflect.Struct:
		for i := range v.NumField() {
			fillSample(v.Field(i), levels-1)
		}
	}
}
