package value

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/number"
	"github.com/agentstate/state/internal/value/walk"
)

// dynamicCodec is for any, and in sources for other interfaces: the type of a
// value is known at run time only. It works on trees.
//
// A tree is a value of JSON: nil, bool, string, int64, uint64, float64, []any,
// map[string]any, and json.Number where a walk is exact. A normalised value is
// a tree without json.Number, whose numbers are as package number normalises
// them.
type dynamicCodec struct {
	// planOf returns the plan of a type that is only read.
	planOf func(reflect.Type) (*Plan, error)
}

// dynamicValue returns the value in v, which is an interface or was in one.
func dynamicValue(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

// setDynamic sets v, an interface, to x.
func setDynamic(v reflect.Value, x any) {
	if x == nil {
		v.SetZero()
		return
	}
	v.Set(reflect.ValueOf(x))
}

// treeScalar returns a value of a built-in scalar type as the scalar of a tree.
func treeScalar(x any) (scalar any, ok bool) {
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
		return number.NormalizeUint(uint64(x)), true
	case uint64:
		return number.NormalizeUint(x), true
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

func (d *dynamicCodec) addSize(v reflect.Value, w *walk.Walk) error {
	return d.addValue(dynamicValue(v), w)
}

// addValue counts the size of any value as that of its tree, and checks it.
// What JSON made, which is most, takes no reflection.
func (d *dynamicCodec) addValue(x any, w *walk.Walk) error {
	switch x := x.(type) {
	case string:
		return w.AddString(x)
	case float64:
		return w.AddFloat(x)
	case float32:
		return w.AddFloat(float64(x))
	case json.Number:
		return addDynamicNumber(x, w)
	case []any:
		return d.addList(x, w)
	case map[string]any:
		return d.addObject(x, w)
	}
	if _, ok := treeScalar(x); ok {
		return w.Add(walk.ScalarSize)
	}
	return d.addTyped(reflect.ValueOf(x), w)
}

// addDynamicNumber counts and checks a json.Number. Unless the walk is exact,
// it is going to be a number of Go.
func addDynamicNumber(n json.Number, w *walk.Walk) error {
	if w.Exact {
		return addNumber(n, w)
	}
	if !number.IsValid(string(n)) {
		return w.Fail("a number", "other text")
	}
	if _, err := normalizeNumber(n, w); err != nil {
		return err
	}
	return w.Add(walk.ScalarSize)
}

func (d *dynamicCodec) addList(list []any, w *walk.Walk) error {
	if err := w.Enter(len(list)); err != nil {
		return err
	}
	for i, x := range list {
		w.Element(i)
		if err := d.addValue(x, w); err != nil {
			return err
		}
	}
	w.Leave()
	return w.Add(len(list))
}

func (d *dynamicCodec) addObject(object map[string]any, w *walk.Walk) error {
	if err := w.Enter(len(object)); err != nil {
		return err
	}
	if err := w.VisitMap(object, func(name string, x any) error {
		if err := w.EnterName(name); err != nil {
			return err
		}
		return d.addValue(x, w)
	}); err != nil {
		return err
	}
	w.Leave()
	return nil
}

// addTyped counts and checks a value whose type has a plan.
func (d *dynamicCodec) addTyped(v reflect.Value, w *walk.Walk) error {
	p, err := d.planOf(v.Type())
	if err != nil {
		return w.Fail("a value that can be stored", fault.As(err).Got)
	}
	before := w.Size()
	if err := p.codec.addSize(v, w); err != nil || w.Exact || !p.treeDiffers {
		return err
	}
	// Not the value is stored but its tree. Its size counts instead, and it may
	// have a number that cannot be stored.
	tree, err := p.codec.makeTree(v, &walk.Walk{Exact: true})
	if err != nil {
		return w.Under(asFault(err))
	}
	w.ResetSize(before)
	return d.addValue(tree, w)
}

func (d *dynamicCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	return d.normalizeValue(dynamicValue(v), w)
}

func (d *dynamicCodec) normalizeValue(x any, w *walk.Walk) (any, error) {
	switch x := x.(type) {
	case []any:
		list := make([]any, len(x))
		for i, e := range x {
			var err error
			if list[i], err = d.normalizeValue(e, w); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(x))
		for name, e := range x {
			tree, err := d.normalizeValue(e, w)
			if err != nil {
				return nil, err
			}
			object[name] = tree
		}
		return object, nil
	case json.Number:
		return normalizeNumber(x, w)
	}
	if s, ok := treeScalar(x); ok {
		return s, nil
	}
	v := reflect.ValueOf(x)
	p, err := d.planOf(v.Type())
	if err != nil {
		return nil, w.Fail("a value that can be stored", fault.As(err).Got)
	}
	return p.codec.makeTree(v, w)
}

func (d *dynamicCodec) decodeShape(x any, w *walk.Walk) (any, error) {
	switch x.(type) {
	case []any, map[string]any:
		return x, nil
	}
	if s, ok := treeScalar(x); ok {
		return s, nil
	}
	return d.normalizeValue(x, w)
}

func (d *dynamicCodec) copyInPlace(v reflect.Value, normalize bool) error {
	x := v.Interface()
	if !normalize {
		setDynamic(v, copyTree(x))
		return nil
	}
	tree, err := d.normalizeValue(x, &walk.Walk{})
	if err != nil {
		return err
	}
	setDynamic(v, tree)
	return nil
}

// copyTree returns a copy of a normalised value.
func copyTree(x any) any {
	switch x := x.(type) {
	case []any:
		list := make([]any, len(x))
		for i, e := range x {
			list[i] = copyTree(e)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(x))
		for name, e := range x {
			object[name] = copyTree(e)
		}
		return object
	}
	return x
}

func (d *dynamicCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	// The walk through the whole source was exact. What goes into an any is
	// normalised, which not all numbers can be.
	if err := d.addValue(src, &walk.Walk{}); err != nil {
		return w.Under(err)
	}
	tree, err := d.normalizeValue(src, &walk.Walk{})
	if err != nil {
		return w.Under(asFault(err))
	}
	setDynamic(dst, tree)
	return nil
}

func (d *dynamicCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return d.appendTree(dst, dynamicValue(v), true)
}

func (d *dynamicCodec) appendValue(dst []byte, x any) ([]byte, error) {
	return d.appendTree(dst, x, false)
}

// appendTree appends the JSON of any value. If kinds is set, whole floats keep
// their kind when they are read back, see [number.Append].
func (d *dynamicCodec) appendTree(dst []byte, x any, kinds bool) ([]byte, error) {
	var err error
	switch x := x.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return jsontext.AppendQuote(dst, x), nil
	case int64, json.Number:
		return number.Append(dst, x), nil
	case float64:
		if kinds && number.IsFinite(x) {
			return number.Append(dst, x), nil
		}
	case []any:
		dst = append(dst, '[')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = d.appendTree(dst, e, kinds); err != nil {
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
			if dst, err = d.appendTree(dst, x[name], kinds); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	v := reflect.ValueOf(x)
	p, err := d.planOf(v.Type())
	if err != nil {
		return dst, err
	}
	return p.codec.appendJSON(dst, v)
}

func (d *dynamicCodec) isEqual(a, b reflect.Value) bool {
	return d.equalValues(dynamicValue(a), dynamicValue(b))
}

// equalValues compares two normalised values. It normalises others first. A
// value that cannot be normalised equals nothing.
func (d *dynamicCodec) equalValues(a, b any) bool {
	switch x := a.(type) {
	case nil, bool, string, int64, uint64, float64:
		if a == b {
			return true
		}
	case []any:
		if y, ok := b.([]any); ok {
			return slices.EqualFunc(x, y, d.equalValues)
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return maps.EqualFunc(x, y, d.equalValues)
		}
	}
	if isNormal(a) && isNormal(b) {
		return false
	}
	x, _, err := d.normalize(a, Limits{})
	if err != nil {
		return false
	}
	y, _, err := d.normalize(b, Limits{})
	return err == nil && d.equalValues(x, y)
}

// isNormal reports whether x is what normalising returns, as far as its own
// type says.
func isNormal(x any) bool {
	switch x := x.(type) {
	case nil, bool, string, int64, float64, []any, map[string]any:
		return true
	case uint64:
		return number.NormalizeUint(x) == any(x)
	}
	return false
}

// normalize returns the normalised value of src and its size.
func (d *dynamicCodec) normalize(src any, limits Limits) (any, int, error) {
	size, err := walk.Measure(limits, false, func(w *walk.Walk) error { return d.addValue(src, w) })
	if err != nil {
		return nil, 0, err
	}
	tree, err := d.normalizeValue(src, &walk.Walk{})
	if err != nil {
		return nil, 0, asFault(err)
	}
	return tree, size, nil
}
