package value

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// bytesCodec is for []byte, which is base64 in JSON.
type bytesCodec struct{}

func (bytesCodec) check(v reflect.Value, w *walk) error {
	return w.add(base64.StdEncoding.EncodedLen(v.Len()) + 2)
}

func (bytesCodec) isolate(v reflect.Value, _ bool) error {
	if !v.IsNil() {
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
	}
	return nil
}

func (bytesCodec) tree(v reflect.Value, _ *walk) (any, error) {
	return base64.StdEncoding.EncodeToString(v.Bytes()), nil
}

func (bytesCodec) convert(dst reflect.Value, src any, w *walk) error {
	switch s := src.(type) {
	case nil:
		dst.SetBytes([]byte{})
		return nil
	case string:
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil {
			return w.fail("base64", "other text")
		}
		dst.SetBytes(b)
		return nil
	}
	return w.fail(nameOf(dst.Type()), kindOf(src))
}

func (bytesCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes())
	return append(dst, '"'), nil
}

func (bytesCodec) equal(a, b reflect.Value) bool { return bytes.Equal(a.Bytes(), b.Bytes()) }

// listCodec is for slices and arrays.
type listCodec struct {
	typ  reflect.Type
	elem *Plan
}

func (l *listCodec) check(v reflect.Value, w *walk) error {
	n := v.Len()
	if err := w.enter(n); err != nil {
		return err
	}
	if l.elem.fixed > 0 {
		w.leave()
		return w.add(n * (l.elem.fixed + 1))
	}
	for i := range n {
		w.element(i)
		if err := l.elem.codec.check(v.Index(i), w); err != nil {
			return err
		}
	}
	w.leave()
	return w.add(n)
}

func (l *listCodec) isolate(v reflect.Value, store bool) error {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return nil
		}
		c := reflect.MakeSlice(l.typ, v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
	}
	if l.elem.flat {
		return nil
	}
	for i := range v.Len() {
		if err := l.elem.codec.isolate(v.Index(i), store); err != nil {
			return err
		}
	}
	return nil
}

func (l *listCodec) tree(v reflect.Value, w *walk) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		var err error
		if list[i], err = l.elem.codec.tree(v.Index(i), w); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// from converts any measured value to a list. It must see the value itself,
// because bytes are a list too, though their tree is a string.
func (l *listCodec) from(dst reflect.Value, src any, w *walk) error {
	x, err := shape(src, w)
	if err != nil {
		return err
	}
	_, list := x.([]any)
	if l.typ.Kind() == reflect.Slice && x != nil && !list && !isList(src) && !l.elem.isList() {
		one := reflect.MakeSlice(l.typ, 1, 1)
		if err := convert(l.elem, one.Index(0), src, w); err != nil {
			return err
		}
		dst.Set(one)
		return nil
	}
	return l.convert(dst, x, w)
}

func isList(src any) bool {
	t := reflect.TypeOf(src)
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && !hasMethods(t)
}

func (p *Plan) isList() bool {
	switch c := p.codec.(type) {
	case *listCodec:
		return true
	case *pointerCodec:
		return c.elem.isList()
	}
	return false
}

func (l *listCodec) convert(dst reflect.Value, src any, w *walk) error {
	list, ok := src.([]any)
	if !ok && (src != nil || l.typ.Kind() == reflect.Array) {
		return w.fail(nameOf(l.typ), kindOf(src))
	}
	if l.typ.Kind() == reflect.Slice {
		dst.Set(reflect.MakeSlice(l.typ, len(list), len(list)))
	} else if len(list) != l.typ.Len() {
		return w.fail(nameOf(l.typ), fmt.Sprintf("a list of %d", len(list)))
	}
	if err := w.enter(0); err != nil {
		return err
	}
	defer w.leave()
	for i, e := range list {
		w.element(i)
		if err := convert(l.elem, dst.Index(i), e, w); err != nil {
			return err
		}
	}
	return nil
}

func (l *listCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = l.elem.codec.append(dst, v.Index(i)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (l *listCodec) equal(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !l.elem.codec.equal(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

// dictCodec is for maps.
type dictCodec struct {
	typ  reflect.Type
	elem *Plan
	text bool // keys are read and written by MarshalText and UnmarshalText
}

// name returns a key as a member name.
func (d *dictCodec) name(key reflect.Value) (string, error) {
	switch {
	case d.text:
		var text []byte
		err := guarded(func() (err error) {
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

// key sets a settable key from a member name.
func (d *dictCodec) key(key reflect.Value, name string) bool {
	switch {
	case d.text:
		return guarded(func() error {
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

// An entry is a key with its name.
type entry struct {
	name string
	key  reflect.Value
}

// entries returns the keys of a map in the order of their names.
func (d *dictCodec) entries(v reflect.Value) ([]entry, error) {
	list := make([]entry, 0, v.Len())
	for _, key := range v.MapKeys() {
		name, err := d.name(key)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{name, key})
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

func (d *dictCodec) check(v reflect.Value, w *walk) error {
	if err := w.enter(v.Len()); err != nil {
		return err
	}
	defer w.leave()
	if m, ok := v.Interface().(map[string]string); ok && !w.sorted {
		for name, elem := range m {
			w.whole()
			if err := w.addMember(name); err != nil {
				return err
			}
			w.member(name)
			if err := w.addString(elem, 2); err != nil {
				return err
			}
		}
		return nil
	}
	var seen map[string]bool
	if d.text {
		seen = make(map[string]bool, v.Len())
	}
	visit := func(name string, key, elem reflect.Value) error {
		w.whole()
		if err := w.addMember(name); err != nil {
			return err
		}
		if d.text {
			if seen[name] {
				return w.fail("keys with different texts", "two keys with the same text")
			}
			seen[name] = true
			if !d.key(reflect.New(d.typ.Key()).Elem(), name) {
				return w.fail("keys that read what they write", "one that does not")
			}
		}
		w.member(name)
		return d.elem.codec.check(elem, w)
	}
	if w.sorted {
		list, err := d.entries(v)
		if err != nil {
			return w.fail("keys with a text", "an error of "+d.typ.Key().String())
		}
		for _, e := range list {
			if err := visit(e.name, e.key, v.MapIndex(e.key)); err != nil {
				return err
			}
		}
		return nil
	}
	key, elem := reflect.New(d.typ.Key()).Elem(), reflect.New(d.typ.Elem()).Elem()
	for iter := v.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		elem.SetIterValue(iter)
		name, err := d.name(key)
		if err != nil {
			return w.fail("keys with a text", "an error of "+d.typ.Key().String())
		}
		if err := visit(name, key, elem); err != nil {
			return err
		}
	}
	return nil
}

func (d *dictCodec) isolate(v reflect.Value, store bool) error {
	if v.IsNil() {
		return nil
	}
	if m, ok := v.Interface().(map[string]string); ok { // the usual metadata
		v.Set(reflect.ValueOf(maps.Clone(m)))
		return nil
	}
	c := reflect.MakeMapWithSize(d.typ, v.Len())
	key, elem := reflect.New(d.typ.Key()).Elem(), reflect.New(d.typ.Elem()).Elem()
	for iter := v.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		elem.SetIterValue(iter)
		if !d.elem.flat {
			if err := d.elem.codec.isolate(elem, store); err != nil {
				return err
			}
		}
		c.SetMapIndex(key, elem)
	}
	v.Set(c)
	return nil
}

func (d *dictCodec) tree(v reflect.Value, w *walk) (any, error) {
	object := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		name, err := d.name(iter.Key())
		if err != nil {
			return nil, err
		}
		if object[name], err = d.elem.codec.tree(iter.Value(), w); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (d *dictCodec) convert(dst reflect.Value, src any, w *walk) error {
	object, ok := src.(map[string]any)
	if !ok && src != nil {
		return w.fail(nameOf(d.typ), kindOf(src))
	}
	m := reflect.MakeMapWithSize(d.typ, len(object))
	if err := w.enter(0); err != nil {
		return err
	}
	defer w.leave()
	visit := func(name string, e any) error {
		key, elem := reflect.New(d.typ.Key()).Elem(), reflect.New(d.typ.Elem()).Elem()
		w.member(name)
		if !d.key(key, name) {
			return w.fail("a key of type "+nameOf(d.typ.Key()), "another")
		}
		if m.MapIndex(key).IsValid() {
			return w.fail("different keys", "the same key again")
		}
		if err := convert(d.elem, elem, e, w); err != nil {
			return err
		}
		m.SetMapIndex(key, elem)
		return nil
	}
	if w.sorted {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if err := visit(name, object[name]); err != nil {
				return err
			}
		}
	} else {
		for name, e := range object {
			if err := visit(name, e); err != nil {
				return err
			}
		}
	}
	dst.Set(m)
	return nil
}

func (d *dictCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	list, err := d.entries(v)
	if err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendQuote(dst, e.name), ':')
		if dst, err = d.elem.codec.append(dst, v.MapIndex(e.key)); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (d *dictCodec) equal(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for iter := a.MapRange(); iter.Next(); {
		other := b.MapIndex(iter.Key())
		if !other.IsValid() || !d.elem.codec.equal(iter.Value(), other) {
			return false
		}
	}
	return true
}

// pointerCodec is for pointers; nil is null.
type pointerCodec struct{ elem *Plan }

func (p *pointerCodec) check(v reflect.Value, w *walk) error {
	if v.IsNil() {
		return w.add(scalarSize)
	}
	if err := w.hop(); err != nil {
		return err
	}
	err := p.elem.codec.check(v.Elem(), w)
	w.hops--
	return err
}

func (p *pointerCodec) isolate(v reflect.Value, store bool) error {
	if v.IsNil() {
		return nil
	}
	c := reflect.New(p.elem.typ)
	c.Elem().Set(v.Elem())
	if !p.elem.flat {
		if err := p.elem.codec.isolate(c.Elem(), store); err != nil {
			return err
		}
	}
	v.Set(c.Convert(v.Type()))
	return nil
}

func (p *pointerCodec) tree(v reflect.Value, w *walk) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	return p.elem.codec.tree(v.Elem(), w)
}

func (p *pointerCodec) convert(dst reflect.Value, src any, w *walk) error {
	if src == nil {
		return nil
	}
	c := reflect.New(p.elem.typ)
	if err := convert(p.elem, c.Elem(), src, w); err != nil {
		return err
	}
	dst.Set(c.Convert(dst.Type()))
	return nil
}

func (p *pointerCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	return p.elem.codec.append(dst, v.Elem())
}

func (p *pointerCodec) equal(a, b reflect.Value) bool {
	if !a.IsNil() && !b.IsNil() {
		return p.elem.codec.equal(a.Elem(), b.Elem())
	}
	return p.null(a) && p.null(b)
}

// null reports whether a reader sees null, which is so too for a pointer to a
// nil pointer.
func (p *pointerCodec) null(v reflect.Value) bool {
	if v.IsNil() {
		return true
	}
	text, err := p.elem.codec.append(nil, v.Elem())
	return err == nil && string(text) == "null"
}
