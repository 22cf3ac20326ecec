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
