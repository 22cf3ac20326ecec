package value

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

// mapCodec is for maps. A nil map is an empty object. The keys are names of
// members: strings, integers, or what their own methods write.
type mapCodec struct {
	typ      reflect.Type
	name     string // in errors
	elem     *Plan
	keyName  string // of the type of the keys, in errors
	textKeys bool   // keys are read and written by UnmarshalText and MarshalText
}

// memberName returns a key as the name of a member.
func (m *mapCodec) memberName(key reflect.Value) (string, error) {
	switch {
	case m.textKeys:
		var text []byte
		err := callGuarded(func() (err error) {
			text, err = key.Interface().(encoding.TextMarshaler).MarshalText()
			return err
		})
		return string(text), err
	case key.Kind() == reflect.String:
		return key.String(), nil
	case key.CanInt():
		return strconv.FormatInt(key.Int(), 10), nil
	}
	return strconv.FormatUint(key.Uint(), 10), nil
}

// setKey sets a settable key from the name of a member.
func (m *mapCodec) setKey(key reflect.Value, name string) bool {
	switch {
	case m.textKeys:
		return callGuarded(func() error {
			return key.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name))
		}) == nil
	case key.Kind() == reflect.String:
		key.SetString(name)
	case key.CanInt():
		n, err := strconv.ParseInt(name, 10, key.Type().Bits())
		key.SetInt(n)
		return err == nil
	default:
		n, err := strconv.ParseUint(name, 10, key.Type().Bits())
		key.SetUint(n)
		return err == nil
	}
	return true
}

// A namedKey is a key with the name of its member.
type namedKey struct {
	name string
	key  reflect.Value
}

// sortedKeys returns the keys of a map in the order of their names.
func (m *mapCodec) sortedKeys(v reflect.Value) ([]namedKey, error) {
	keys := make([]namedKey, 0, v.Len())
	for _, key := range v.MapKeys() {
		name, err := m.memberName(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, namedKey{name, key})
	}
	slices.SortFunc(keys, func(a, b namedKey) int { return strings.Compare(a.name, b.name) })
	return keys, nil
}

func (m *mapCodec) addSize(v reflect.Value, w *walk.Walk) error {
	if err := w.Enter(v.Len()); err != nil {
		return err
	}
	defer w.Leave()
	if plain, ok := v.Interface().(map[string]string); ok && !w.Sorted { // the usual metadata
		for name, elem := range plain {
			if err := w.EnterName(name); err != nil {
				return err
			}
			if err := w.AddString(elem); err != nil {
				return err
			}
		}
		return nil
	}
	var seen map[string]bool
	if m.textKeys {
		seen = make(map[string]bool, v.Len())
	}
	if w.Sorted {
		keys, err := m.sortedKeys(v)
		if err != nil {
			return m.refuseKeys(w)
		}
		for _, k := range keys {
			if err := m.addEntry(k.name, v.MapIndex(k.key), seen, w); err != nil {
				return err
			}
		}
		return nil
	}
	// SetIterKey and SetIterValue do not allocate, unlike Key and Value.
	key, elem := reflect.New(m.typ.Key()).Elem(), reflect.New(m.typ.Elem()).Elem()
	for iter := v.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		elem.SetIterValue(iter)
		name, err := m.memberName(key)
		if err != nil {
			return m.refuseKeys(w)
		}
		if err := m.addEntry(name, elem, seen, w); err != nil {
			return err
		}
	}
	return nil
}

func (m *mapCodec) refuseKeys(w *walk.Walk) error {
	return w.Fail("keys with a text", "an error of "+m.typ.Key().String())
}

// addEntry counts and checks one entry. seen has the texts of the keys before
// it, if methods write them: only those can be the same for different keys.
func (m *mapCodec) addEntry(name string, elem reflect.Value, seen map[string]bool, w *walk.Walk) error {
	if err := w.EnterName(name); err != nil {
		return err
	}
	if m.textKeys {
		w.Whole()
		if seen[name] {
			return w.Fail("keys with different texts", "two keys with the same text")
		}
		seen[name] = true
		if !m.setKey(reflect.New(m.typ.Key()).Elem(), name) {
			return w.Fail("keys that read what they write", "one that does not")
		}
		w.Key(name)
	}
	return m.elem.codec.addSize(elem, w)
}

func (m *mapCodec) copyInPlace(v reflect.Value, normalize bool) error {
	if v.IsNil() {
		return nil
	}
	if plain, ok := v.Interface().(map[string]string); ok { // the usual metadata
		v.Set(reflect.ValueOf(maps.Clone(plain)))
		return nil
	}
	c := reflect.MakeMapWithSize(m.typ, v.Len())
	key, elem := reflect.New(m.typ.Key()).Elem(), reflect.New(m.typ.Elem()).Elem()
	for iter := v.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		elem.SetIterValue(iter)
		if !m.elem.flat {
			if err := m.elem.codec.copyInPlace(elem, normalize); err != nil {
				return err
			}
		}
		c.SetMapIndex(key, elem)
	}
	v.Set(c)
	return nil
}

func (m *mapCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	object := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		name, err := m.memberName(iter.Key())
		if err != nil {
			return nil, err
		}
		if object[name], err = m.elem.codec.makeTree(iter.Value(), w); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (m *mapCodec) convertText(dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	return convertObjectText(m, dst, src, w)
}

func (m *mapCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	object, ok := src.(map[string]any)
	if !ok && src != nil {
		return w.Fail(m.name, kindOf(src))
	}
	converted := reflect.MakeMapWithSize(m.typ, len(object))
	if err := w.Enter(0); err != nil {
		return err
	}
	defer w.Leave()
	if err := w.VisitMap(object, func(name string, x any) error {
		key, elem := reflect.New(m.typ.Key()).Elem(), reflect.New(m.typ.Elem()).Elem()
		w.Key(name)
		if !m.setKey(key, name) {
			return w.Fail("a key of type "+m.keyName, "another")
		}
		if converted.MapIndex(key).IsValid() { // different texts, such as 1 and 01, for one key
			return w.Fail("different keys", "the same key again")
		}
		if err := m.elem.convertFrom(elem, x, w); err != nil {
			return err
		}
		converted.SetMapIndex(key, elem)
		return nil
	}); err != nil {
		return err
	}
	dst.Set(converted)
	return nil
}

func (m *mapCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	keys, err := m.sortedKeys(v)
	if err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendQuote(dst, k.name), ':')
		if dst, err = m.elem.codec.appendJSON(dst, v.MapIndex(k.key)); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (m *mapCodec) isEqual(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for iter := a.MapRange(); iter.Next(); {
		other := b.MapIndex(iter.Key())
		if !other.IsValid() || !m.elem.codec.isEqual(iter.Value(), other) {
			return false
		}
	}
	return true
}
