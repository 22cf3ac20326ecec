package value

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

var stringsType = reflect.TypeFor[[]string]()

// listCodec is for slices and arrays.
type listCodec struct {
	typ  reflect.Type
	name string // in errors
	elem *Plan
}

func (l *listCodec) addSize(v reflect.Value, w *walk.Walk) error {
	n := v.Len()
	if err := w.Enter(n); err != nil {
		return err
	}
	if l.elem.fixedSize > 0 { // no element needs a separate check
		w.Leave()
		return w.Add(n * (l.elem.fixedSize + 1))
	}
	for i := range n {
		w.Element(i)
		if err := l.elem.codec.addSize(v.Index(i), w); err != nil {
			return err
		}
	}
	w.Leave()
	return w.Add(n) // the separators
}

// quickSize is [Plan.quickSize].
func (l *listCodec) quickSize(v reflect.Value) (size int, ok bool) {
	if l.elem.fixedSize > 0 {
		return walk.ContainerSize + v.Len()*(l.elem.fixedSize+1), true
	}
	if l.typ != stringsType || v.CanAddr() { // Interface would allocate
		return 0, false
	}
	size = walk.ContainerSize
	for _, s := range v.Interface().([]string) {
		if !utf8.ValidString(s) {
			return 0, false
		}
		size += len(s) + 3 // with quotes and a separator
	}
	return size, true
}

func (l *listCodec) copyInPlace(v reflect.Value, normalize bool) error {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return nil
		}
		// The capacity is exact: memory after the end could be shared by an
		// append.
		c := reflect.MakeSlice(l.typ, v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
	}
	if l.elem.flat {
		return nil
	}
	for i := range v.Len() {
		if err := l.elem.codec.copyInPlace(v.Index(i), normalize); err != nil {
			return err
		}
	}
	return nil
}

func (l *listCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		var err error
		if list[i], err = l.elem.codec.makeTree(v.Index(i), w); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (l *listCodec) convertText(dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	if jsontext.Kind(src) != "array" {
		return false, nil
	}
	parts, err := jsontext.Elements(src)
	if err != nil {
		return false, err
	}
	list := make([]any, len(parts))
	for i, part := range parts {
		list[i] = jsonText(part)
	}
	return true, l.convert(dst, list, w)
}

// convertSource makes one element a list of one. It must see the value itself,
// because bytes are a list as well, although their tree is a string.
func (l *listCodec) convertSource(dst reflect.Value, src any, w *walk.Walk) (bool, error) {
	if l.typ.Kind() == reflect.Array || l.elem.isList() {
		return false, nil // a list inside could be meant for either level
	}
	tree, err := l.elem.values.decodeShape(src, w)
	if err != nil {
		return false, err
	}
	if _, list := tree.([]any); list || tree == nil || isList(src) {
		return true, l.convert(dst, tree, w)
	}
	one := reflect.MakeSlice(l.typ, 1, 1)
	if err := l.elem.convertFrom(one.Index(0), src, w); err != nil {
		return false, err
	}
	dst.Set(one)
	return true, nil
}

func isList(src any) bool {
	t := reflect.TypeOf(src)
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && !hasCodingMethods(t)
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

func (l *listCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	list, ok := src.([]any)
	if !ok && (src != nil || l.typ.Kind() == reflect.Array) {
		return w.Fail(l.name, kindOf(src))
	}
	if l.typ.Kind() == reflect.Slice {
		dst.Set(reflect.MakeSlice(l.typ, len(list), len(list)))
	} else if len(list) != l.typ.Len() {
		return w.Fail(l.name, fmt.Sprintf("a list of %d", len(list)))
	}
	if err := w.Enter(0); err != nil {
		return err
	}
	defer w.Leave()
	for i, e := range list {
		w.Element(i)
		if err := l.elem.convertFrom(dst.Index(i), e, w); err != nil {
			return err
		}
	}
	return nil
}

func (l *listCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = l.elem.codec.appendJSON(dst, v.Index(i)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (l *listCodec) isEqual(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !l.elem.codec.isEqual(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

// pointerCodec is for pointers. A nil pointer is null.
type pointerCodec struct{ elem *Plan }

func (p *pointerCodec) addSize(v reflect.Value, w *walk.Walk) error {
	if v.IsNil() {
		return w.Add(walk.ScalarSize)
	}
	if err := w.FollowPointer(); err != nil { // ends cycles of pointers alone
		return err
	}
	err := p.elem.codec.addSize(v.Elem(), w)
	w.LeavePointer()
	return err
}

func (p *pointerCodec) copyInPlace(v reflect.Value, normalize bool) error {
	if v.IsNil() {
		return nil
	}
	c := reflect.New(p.elem.typ)
	c.Elem().Set(v.Elem())
	if !p.elem.flat {
		if err := p.elem.codec.copyInPlace(c.Elem(), normalize); err != nil {
			return err
		}
	}
	v.Set(c.Convert(v.Type())) // the pointer's type may have a name
	return nil
}

func (p *pointerCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	return p.elem.codec.makeTree(v.Elem(), w)
}

func (p *pointerCodec) convertText(dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	if jsontext.Kind(src) == "null" {
		return true, p.convert(dst, nil, w)
	}
	return true, p.convert(dst, src, w)
}

func (p *pointerCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	if src == nil {
		return nil
	}
	c := reflect.New(p.elem.typ)
	if err := p.elem.convertFrom(c.Elem(), src, w); err != nil {
		return err
	}
	dst.Set(c.Convert(dst.Type()))
	return nil
}

func (p *pointerCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	return p.elem.codec.appendJSON(dst, v.Elem())
}

func (p *pointerCodec) isEqual(a, b reflect.Value) bool {
	if !a.IsNil() && !b.IsNil() {
		return p.elem.codec.isEqual(a.Elem(), b.Elem())
	}
	return p.isNull(a) && p.isNull(b)
}

// isNull reports whether a reader sees null, which is also the JSON of a
// pointer to a nil pointer.
func (p *pointerCodec) isNull(v reflect.Value) bool {
	if v.IsNil() {
		return true
	}
	text, err := p.elem.codec.appendJSON(nil, v.Elem())
	return err == nil && string(text) == "null"
}
