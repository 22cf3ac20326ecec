package value

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// A tree is a value of JSON: nil, bool, string, int64, uint64, float64, []any,
// map[string]any, and json.Number where a walk is exact. Normalised values are
// trees without json.Number.

// scalarOf returns the scalars among the built-in types as those of a tree.
func scalarOf(x any) (scalar any, ok bool) {
	switch x := x.(type) {
	case nil, bool, string, int64, json.Number:
		return x, true
	case int:
		return int64(x), true
	case int32:
		return int64(x), true
	case int16:
		return int64(x), true
	case int8:
		return int64(x), true
	case uint:
		return normalUint(uint64(x)), true
	case uint64:
		return normalUint(x), true
	case uint32:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint8:
		return int64(x), true
	case float64:
		return x, true
	case float32:
		return float64(x), true
	}
	return nil, false
}

// measure checks any value and counts its size as a tree.
func measure(x any, w *walk) error {
	switch x := x.(type) {
	case string:
		return w.addString(x, 2)
	case float64:
		return floatCodec{}.check(reflect.ValueOf(x), w)
	case float32:
		return measure(float64(x), w)
	case json.Number:
		if w.exact {
			return numberCodec{}.check(reflect.ValueOf(x), w)
		}
		if _, ok := parseDecimal(string(x)); !ok && x != "" {
			return w.fail("a number", "other text")
		}
		if _, ok := normalNumber(x); !ok {
			return w.fail("a number that int64, uint64 or float64 holds", "another number")
		}
		return w.add(scalarSize)
	case []any:
		if err := w.enter(len(x)); err != nil {
			return err
		}
		for i, e := range x {
			w.element(i)
			if err := measure(e, w); err != nil {
				return err
			}
		}
		w.leave()
		return w.add(len(x))
	case map[string]any:
		if err := w.enter(len(x)); err != nil {
			return err
		}
		visit := func(name string, e any) error {
			w.whole()
			if err := w.addMember(name); err != nil {
				return err
			}
			w.member(name)
			return measure(e, w)
		}
		if w.sorted {
			for _, name := range slices.Sorted(maps.Keys(x)) {
				if err := visit(name, x[name]); err != nil {
					return err
				}
			}
		} else {
			for name, e := range x {
				if err := visit(name, e); err != nil {
					return err
				}
			}
		}
		w.leave()
		return nil
	}
	if _, ok := scalarOf(x); ok {
		return w.add(scalarSize)
	}
	v := reflect.ValueOf(x)
	p, err := source(v.Type())
	if err != nil {
		return w.fail("a value that can be stored", err.(*fault.Error).Got)
	}
	before := w.size
	if err := p.codec.check(v, w); err != nil || w.exact || !p.dynamic {
		return err
	}
	// What is stored has another size, and perhaps a number that cannot be.
	t, err := p.codec.tree(v, &walk{exact: true})
	if err != nil {
		return w.under(atRoot(err))
	}
	w.size = before
	return measure(t, w)
}

// tree returns any measured value as a fresh tree.
func tree(x any, w *walk) (any, error) {
	switch x := x.(type) {
	case []any:
		list := make([]any, len(x))
		for i, e := range x {
			var err error
			if list[i], err = tree(e, w); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(x))
		for name, e := range x {
			t, err := tree(e, w)
			if err != nil {
				return nil, err
			}
			object[name] = t
		}
		return object, nil
	case json.Number:
		if w.exact {
			return x, nil
		}
		n, ok := normalNumber(x)
		if !ok {
			return nil, w.fail("a number that int64, uint64 or float64 holds", "another number")
		}
		return n, nil
	case float64:
		if w.exact {
			return x, nil // with its sign, if it is -0
		}
		return normalFloat(x), nil
	case float32:
		return tree(float64(x), w)
	}
	if s, ok := scalarOf(x); ok {
		return s, nil
	}
	v := reflect.ValueOf(x)
	p, err := source(v.Type())
	if err != nil {
		return nil, w.fail("a value that can be stored", err.(*fault.Error).Got)
	}
	return p.codec.tree(v, w)
}

// shape returns a measured value as a tree, which may share memory with it and
// hold other values inside.
func shape(x any, w *walk) (any, error) {
	switch x.(type) {
	case []any, map[string]any:
		return x, nil
	}
	if s, ok := scalarOf(x); ok {
		return s, nil
	}
	return tree(x, w)
}

// convert sets dst from any measured value.
func convert(p *Plan, dst reflect.Value, src any, w *walk) error {
	if t, ok := src.(text); ok {
		return t.convert(p, dst, w)
	}
	if l, ok := p.codec.(*listCodec); ok {
		return l.from(dst, src, w)
	}
	if o, ok := p.codec.(*opaqueCodec); ok && o.take(dst, src) {
		return nil
	}
	x, err := shape(src, w)
	if err != nil {
		return err
	}
	return p.codec.convert(dst, x, w)
}

// clone returns a copy of a normalised value.
func clone(x any) any {
	switch x := x.(type) {
	case []any:
		list := make([]any, len(x))
		for i, e := range x {
			list[i] = clone(e)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(x))
		for name, e := range x {
			object[name] = clone(e)
		}
		return object
	}
	return x
}

// appendAny appends the JSON of any value.
func appendAny(dst []byte, x any) ([]byte, error) {
	var err error
	switch x := x.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return jsontext.AppendQuote(dst, x), nil
	case int64, json.Number:
		return appendNumber(dst, x), nil
	case []any:
		dst = append(dst, '[')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendAny(dst, e); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(x)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsontext.AppendQuote(dst, name), ':')
			if dst, err = appendAny(dst, x[name]); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	v := reflect.ValueOf(x)
	p, err := source(v.Type())
	if err != nil {
		return dst, err
	}
	return p.codec.append(dst, v)
}

// equalTrees reports whether two normalised values are equal. Others are
// normalised first; what cannot be is equal to nothing.
func equalTrees(a, b any) bool {
	switch x := a.(type) {
	case nil, bool, string, int64, uint64, float64:
		if a == b {
			return true
		}
	case []any:
		if y, ok := b.([]any); ok {
			return slices.EqualFunc(x, y, equalTrees)
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return maps.EqualFunc(x, y, equalTrees)
		}
	}
	if normal(a) && normal(b) {
		return false
	}
	x, _, err := Normalise(a, Limits{})
	if err != nil {
		return false
	}
	y, _, err := Normalise(b, Limits{})
	return err == nil && equalTrees(x, y)
}

// normal reports whether x is of a type that normalised values have. A float
// may still be an integer.
func normal(x any) bool {
	switch x := x.(type) {
	case nil, bool, string, int64, []any, map[string]any:
		return true
	case uint64:
		return normalUint(x) == any(x)
	case float64:
		return normalFloat(x) == any(x) || x != x
	}
	return false
}

// anyCodec is for any and, in sources, for other interfaces.
type anyCodec struct{}

// held returns the value in v, which is an interface or what was in one.
func held(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

func (anyCodec) check(v reflect.Value, w *walk) error { return measure(held(v), w) }

func (anyCodec) isolate(v reflect.Value, store bool) error {
	x := v.Interface()
	if !store {
		setAny(v, clone(x))
		return nil
	}
	x, err := tree(x, &walk{})
	if err != nil {
		return err
	}
	setAny(v, x)
	return nil
}

func setAny(v reflect.Value, x any) {
	if x == nil {
		v.SetZero()
		return
	}
	v.Set(reflect.ValueOf(x))
}

func (anyCodec) tree(v reflect.Value, w *walk) (any, error) { return tree(held(v), w) }

func (anyCodec) convert(dst reflect.Value, src any, w *walk) error {
	if err := measure(src, &walk{}); err != nil { // the walk before was exact
		return w.under(err)
	}
	x, err := tree(src, &walk{})
	if err != nil {
		return w.under(atRoot(err))
	}
	setAny(dst, x)
	return nil
}

func (anyCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	return appendAny(dst, held(v))
}

func (anyCodec) equal(a, b reflect.Value) bool { return equalTrees(held(a), held(b)) }

// kindOf names the kind of a tree, never its content.
func kindOf(x any) string {
	switch x.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "number"
}

// reasonOf says why a tree is no number of some type.
func reasonOf(x any) string {
	if kind := kindOf(x); kind != "number" {
		return kind
	}
	return "a number it cannot hold"
}
