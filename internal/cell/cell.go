// Package cell has the stored form of values.
//
// A value is stored as a *persist.List if its type is a list, normalised if its
// type is open (any), and otherwise as it is. The value of a secret is wrapped.
// A stored value never changes.
//
// [Form.Store] brings a value into this form and [Form.Load] returns a copy of
// it. Errors are those of packages fault and value and name no field.
package cell

import (
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/value"
	"github.com/agentstate/state/internal/value/walk"
)

// Form is the stored form of the values of one type. It is not changed once
// values are stored.
type Form struct {
	Type   reflect.Type
	Plan   *value.Plan
	Elem   *value.Plan    // of the elements, if the type is a list
	Any    bool           // holds values of any type, normalised
	OneOf  []reflect.Type // the types that an open form accepts; nil accepts all
	Secret bool
	NoCopy bool // values are shared with the user
	Limits value.Limits

	// Reference is set if no code looks into the values. They are shared, and
	// need not be of types that can be stored.
	Reference bool
}

// New returns the form of a type.
func New(typ reflect.Type) (Form, error) {
	plan, err := value.For(typ)
	if err != nil {
		return Form{}, err
	}
	f := Form{Type: typ, Plan: plan, Any: typ == reflect.TypeFor[any]()}
	if isList(typ) {
		f.Elem, err = value.For(typ.Elem())
	}
	return f, err
}

// NewReference returns the form of a type whose values are only referred to.
func NewReference(typ reflect.Type) (Form, error) {
	list := isList(typ)
	plan, err := value.ForReference(typ, list)
	if err != nil {
		return Form{}, err
	}
	f := Form{Type: typ, Plan: plan, NoCopy: true, Reference: true}
	if list {
		f.Elem, err = value.ForReference(typ.Elem(), false)
	}
	return f, err
}

// isList reports whether a type is stored as a list: a slice that is not stored
// as a text, unlike bytes and types with methods for JSON.
func isList(typ reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8 &&
		!typ.Implements(marshaler) && !reflect.PointerTo(typ).Implements(marshaler)
}

// Direct reports whether a stored value can be returned as it is.
func (f *Form) Direct() bool {
	mayBeNil := f.Reference && f.Type.Kind() == reflect.Interface
	return !f.Secret && !f.Any && f.Elem == nil && !mayBeNil && (f.NoCopy || f.Plan.Immutable())
}

// CanBorrow reports whether the elements of a list may be copied under a lock:
// copying calls no code of users, whatever they are.
func (f *Form) CanBorrow() bool { return f.Elem != nil && f.Elem.Static() }

// CallsCode reports whether comparing or measuring a stored value may call code
// of users. What was stored without a copy is not normalised: a part of type
// any still has its own methods.
func (f *Form) CallsCode() bool { return f.Plan.Methods() || f.NoCopy && !f.Plan.Static() }

// hidden keeps a secret where printers that use reflection do not reach it.
type hidden func() any

// Hide wraps a stored value if the form is secret. [Bare] unwraps it.
func (f *Form) Hide(stored any) any {
	if !f.Secret {
		return stored
	}
	if _, ok := stored.(hidden); ok {
		return stored
	}
	return hidden(func() any { return stored })
}

// Bare returns a stored value without what Hide has put around it.
func Bare(stored any) any {
	if h, ok := stored.(hidden); ok {
		return h()
	}
	return stored
}

// Span is a part of a list: what one write has appended.
type Span struct {
	List     *persist.List
	From, To int
}

var stringType = reflect.TypeFor[string]()

// scalarSize is the size of a number, a bool or null.
const scalarSize = 8

// Store checks a value and returns a copy of it, with its size. A value of
// another type than the form's is converted if nothing is lost. A list stays a
// slice until it is appended to a stored list. If borrow is set, its elements
// still belong to the caller: Append or Settle copies them.
func (f *Form) Store(v any, borrow bool) (stored any, size int, err error) {
	if f.Reference {
		v, err = f.refer(v)
		return v, 0, err
	}
	if f.Any {
		return f.storeAny(v)
	}
	switch t := v.(type) { // what most fields hold
	case string:
		if f.Type == stringType {
			if !utf8.ValidString(t) {
				return nil, 0, &fault.Error{Path: "$", Want: "valid UTF-8", Got: "other bytes"}
			}
			return f.sized(v, len(t)+2)
		}
	case bool, int, int64:
		if f.Type == reflect.TypeOf(v) {
			return v, scalarSize, nil
		}
	case nil:
		if f.Type.Kind() != reflect.Pointer {
			return nil, 0, &fault.Error{Path: "$", Want: f.Plan.Describe(), Got: "null"}
		}
	}
	if !f.holds(reflect.TypeOf(v)) {
		c, size, err := f.Plan.Convert(v, f.Limits)
		if err != nil {
			return nil, 0, err
		}
		return c.Interface(), size, f.checkSecret(c)
	}
	rv := reflect.ValueOf(v)
	if f.Secret { // only a checked value has no cycles
		if _, err := f.Plan.Check(rv, f.Limits); err != nil {
			return nil, 0, err
		}
		if err := f.checkSecret(rv); err != nil {
			return nil, 0, err
		}
	}
	if f.NoCopy || f.Plan.Immutable() || borrow && f.Elem != nil {
		size, err = f.Plan.Check(rv, f.Limits)
		if borrow && err == nil && rv.Len() == 0 {
			v = persist.NewList(f.Type) // an op with it need not hold the memory of the caller
		}
		return v, size, err
	}
	c, size, err := f.Plan.Copy(rv, f.Limits)
	if err != nil {
		return nil, 0, err
	}
	return c.Interface(), size, nil
}

// refer returns a value that is stored by reference. It converts nothing: that
// would look into the value. Only a nil becomes the nil of the form's type.
func (f *Form) refer(v any) (any, error) {
	typ := reflect.TypeOf(v)
	switch {
	case typ != nil && f.holds(typ) && !internal.RefusedTypes[typ]:
		return v, nil
	case typ != nil:
		return nil, &fault.Error{Path: "$", Want: f.Type.String(), Got: typ.String()}
	}
	switch f.Type.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return reflect.Zero(f.Type).Interface(), nil
	}
	return nil, &fault.Error{Path: "$", Want: f.Type.String(), Got: "nil"}
}

// checkSecret returns an error for a secret that its JSON does not give back:
// an export would lose it, and masking would look for something else.
func (f *Form) checkSecret(v reflect.Value) error {
	if !f.Secret || f.Plan.GivesBack(v) {
		return nil
	}
	return &fault.Error{Path: "$", Want: "a secret that its JSON gives back", Got: "one that it changes"}
}

// holds reports whether values of a type need no conversion.
func (f *Form) holds(typ reflect.Type) bool {
	return typ == f.Type || f.Type.Kind() == reflect.Interface && typ != nil && typ.Implements(f.Type)
}

// storeAny is Store for an open form.
func (f *Form) storeAny(v any) (any, int, error) {
	if f.OneOf == nil { // these are normalised
		switch t := v.(type) {
		case string:
			if utf8.ValidString(t) {
				return f.sized(v, len(t)+2)
			}
		case bool, int64:
			return f.sized(v, scalarSize)
		}
	} else {
		var err error
		if v, err = f.oneOf(v); err != nil {
			return nil, 0, err
		}
	}
	return value.Normalise(v, f.Limits)
}

// oneOf converts a value to the first of the accepted types that it fits.
func (f *Form) oneOf(v any) (any, error) {
	for _, typ := range f.OneOf {
		plan, err := value.For(typ)
		if err != nil || v == nil && typ.Kind() != reflect.Pointer {
			continue
		}
		if c, _, err := plan.Convert(v, f.Limits); err == nil {
			return c.Interface(), nil
		}
	}
	return nil, &fault.Error{Path: "$", Want: fmt.Sprintf("one of %v", f.OneOf), Got: fmt.Sprintf("%T", v)}
}

func (f *Form) sized(v any, size int) (any, int, error) {
	if f.Limits.Bytes > 0 && size > f.Limits.Bytes {
		return nil, 0, &fault.LimitError{Path: "$", Name: "ValueBytes", Limit: f.Limits.Bytes, Got: size}
	}
	return v, size, nil
}

// Accept stores what a function of this library made of stored values: it is
// checked and not copied.
func (f *Form) Accept(v any) (any, int, error) {
	if f.Any {
		return f.storeAny(v)
	}
	size, err := f.Plan.Check(reflect.ValueOf(v), f.Limits)
	if err != nil {
		return nil, 0, err
	}
	v, err = f.Settle(v, size, false)
	return v, size, err
}

// Decode stores the value of a checked JSON text.
func (f *Form) Decode(data []byte) (any, int, error) {
	if f.Reference {
		return nil, 0, &fault.Error{Path: "$", Want: f.Type.String(), Got: jsontext.Kind(data)}
	}
	if f.Any && f.OneOf == nil {
		return value.NormaliseJSON(data, f.Limits)
	}
	if f.Any {
		tree, err := jsontext.Decode(data, jsontext.Limits{})
		if err != nil {
			return nil, 0, err
		}
		return f.storeAny(tree)
	}
	c, size, err := f.Plan.Decode(data, f.Limits)
	if err != nil {
		return nil, 0, err
	}
	v, err := f.Settle(c.Interface(), size, false)
	return v, size, err
}

// Settle returns the list that a slice of the form's type is stored as. Any
// other value is returned as it is. If the slice is borrowed, its elements are
// copied.
func (f *Form) Settle(v any, size int, borrowed bool) (any, error) {
	if f.Elem == nil {
		return v, nil
	}
	if l, ok := v.(*persist.List); ok {
		return l, nil
	}
	return f.Append(persist.NewList(f.Type), v, size, borrowed)
}

// Append returns a list with the elements of an update added. If the update is
// borrowed, its elements are copied.
func (f *Form) Append(l *persist.List, update any, size int, borrowed bool) (*persist.List, error) {
	from := l.Len()
	l = l.Append(f.Slice(update), AddedSize(l, size))
	if borrowed && !f.NoCopy && !f.Elem.Immutable() {
		for i := from; i < l.Len(); i++ {
			if err := f.Elem.Isolate(l.Index(i)); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// AddedSize returns what a list with a size adds to the size of the list to
// which it is appended: that has brackets of its own.
func AddedSize(l *persist.List, size int) int {
	if l.Bytes() > 0 {
		size -= walk.ContainerSize
	}
	return size
}

// Slice returns an update of a list as a slice.
func (f *Form) Slice(update any) any {
	switch u := update.(type) {
	case Span:
		return u.List.Slice(u.From, u.To)
	case *persist.List:
		return u.Slice(0, u.Len())
	}
	return update
}

// Share returns a stored value, or an update, as a value of the form's type.
// Its parts belong to the state and must not be changed.
func (f *Form) Share(stored any) any {
	stored = Bare(stored)
	switch stored.(type) {
	case Span, *persist.List:
		return f.Slice(stored)
	}
	return stored
}

// Load returns a copy of a stored value, or of an update.
func (f *Form) Load(stored any) any {
	switch stored.(type) {
	case string, int64, float64, bool, nil: // most values have no parts
		return stored
	}
	stored = Bare(stored)
	v := f.Share(stored)
	switch {
	case f.NoCopy || v == nil:
		return v
	case f.Any && !hasParts(v):
		return v
	case f.Elem != nil && f.Elem.Immutable():
		switch stored.(type) {
		case Span, *persist.List: // Share has made the slice
			return v
		}
	case f.Plan.Immutable():
		return v
	}
	return f.Plan.Clone(reflect.ValueOf(v)).Interface()
}

// LoadByName is Load for a caller that does not know the type: a null pointer
// is nil, and any other pointer is what it points to. A reference is itself.
func (f *Form) LoadByName(stored any) any {
	v := f.Load(stored)
	if f.Type.Kind() != reflect.Pointer || f.Reference {
		return v
	}
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer {
		rv = rv.Elem()
	}
	if !rv.IsValid() {
		return nil
	}
	return rv.Interface()
}

// hasParts reports whether a normalised value has parts.
func hasParts(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// Same reports whether two stored values are the same to a reader.
func (f *Form) Same(a, b any) bool {
	va, vb := f.Share(a), f.Share(b)
	if va == nil || vb == nil {
		return va == nil && vb == nil
	}
	return f.Plan.Equal(reflect.ValueOf(va), reflect.ValueOf(vb))
}

// Size returns the size of a stored value.
func (f *Form) Size(stored any) int {
	stored = Bare(stored)
	if l, ok := stored.(*persist.List); ok {
		return l.Bytes()
	}
	if stored == nil {
		return scalarSize
	}
	size, err := f.Plan.Check(reflect.ValueOf(stored), value.Limits{})
	if err != nil {
		return 0 // it was checked when it was stored
	}
	return size
}

// KeepLast returns the last n elements of a list.
func (f *Form) KeepLast(l *persist.List, n int) *persist.List {
	surplus := l.Len() - n
	if surplus <= 0 {
		return l
	}
	empty := f.Size(reflect.Zero(f.Type).Interface())
	dropped := f.Size(l.Slice(0, surplus)) - empty
	return l.DropFirst(surplus, min(dropped, l.Bytes()))
}

// AppendJSON appends a stored value as JSON.
func (f *Form) AppendJSON(dst []byte, stored any) ([]byte, error) {
	v := f.Share(stored)
	if v == nil {
		return append(dst, "null"...), nil
	}
	return f.Plan.AppendJSON(dst, reflect.ValueOf(v))
}

// Convert returns a value as one of the form's type, if nothing is lost.
func (f *Form) Convert(v any) (any, error) {
	c, _, err := f.Plan.Convert(v, value.Limits{})
	if err != nil {
		return nil, err
	}
	return c.Interface(), nil
}
