package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/value"
)

// spec is a field as a schema has compiled it.
type spec struct {
	slot        int
	name        string
	description string
	updateRules string
	owner       string
	read, write Scope
	class       int // the read class
	secret      bool
	ephemeral   bool
	noCopy      bool
	maxBytes    int
	oneOf       []reflect.Type

	typ      reflect.Type
	plan     *value.Plan
	list     *value.Plan // the plan of the elements of a list, else nil
	any      bool        // holds normalised values of any type
	methods  bool        // the type, or a part of it, has coding methods of its own
	direct   bool        // a stored value needs no copying on the way out
	handler  *handler
	validate func(any) error
}

// Values are stored in one of these forms: a *persist.List where the field is a
// list, the normalised value where it holds any type, else the value itself.
// Those of secret fields sit inside a hidden. None is ever changed.

// hidden keeps a secret where printers that use reflection do not reach it.
type hidden func() any

// span is a part of a list: what one write appended.
type span struct {
	list     *persist.List
	from, to int
}

// undeclaredSpec stands for every key that the schema does not declare.
var undeclaredSpec = func() *spec {
	sp, err := newSpec("", reflect.TypeFor[any]())
	if err != nil {
		panic(err)
	}
	sp.slot, sp.class = -1, undeclaredClass
	return sp
}()

// newSpec returns the spec of a field of a type with default settings.
func newSpec(name string, typ reflect.Type) (*spec, error) {
	plan, err := value.For(typ)
	if err != nil {
		return nil, typeError(name, err)
	}
	sp := &spec{name: name, typ: typ, plan: plan, methods: plan.Methods(), handler: replace}
	switch {
	case typ == reflect.TypeFor[any]():
		sp.any = true
	case isList(typ):
		if sp.list, err = value.For(typ.Elem()); err != nil {
			return nil, typeError(name, err)
		}
		sp.handler = appending
	default:
		sp.direct = plan.Immutable()
	}
	return sp, nil
}

// isList reports whether a type appends by default: a slice that is not stored
// as a text, as bytes and types with their own JSON are.
func isList(typ reflect.Type) bool {
	return typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8 &&
		!typ.Implements(reflect.TypeFor[json.Marshaler]()) && !reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Marshaler]())
}

// accepts returns an error if a handler is not for this field.
func (sp *spec) accepts(h *handler) error {
	if h.typ != nil && h.typ != sp.typ && sp.slot >= 0 {
		return &TypeError{Field: sp.name, Path: "handler", Want: sp.typ.String(), Got: h.typ.String()}
	}
	if sp.slot == messagesSlot && !h.keepsPairs() {
		return &TypeError{Field: sp.name, Path: "handler", Want: "one that keeps tool calls with their results", Got: h.name}
	}
	return nil
}

// take returns a value of the field's type as it is stored, checked and copied,
// and its size. If borrow is set, a list is only checked: the caller copies it
// before it returns to the user.
func (sp *spec) take(v any, lim value.Limits, borrow bool) (stored any, size int, err error) {
	switch t := v.(type) {
	case string:
		if !sp.any {
			if !utf8.ValidString(t) {
				return nil, 0, &TypeError{Field: sp.name, Path: "$", Want: "valid UTF-8", Got: "other bytes"}
			}
			return sp.sized(v, len(t)+2, lim)
		}
	case bool, int, int64:
		if !sp.any {
			return v, 8, nil
		}
	}
	if sp.any {
		return sp.takeAny(v, lim)
	}
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return nil, 0, &TypeError{Field: sp.name, Path: "$", Want: sp.plan.Describe(), Got: "null"}
	}
	if sp.noCopy || sp.plan.Immutable() || borrow && sp.list != nil {
		size, err = sp.plan.Check(rv, lim)
	} else {
		var c reflect.Value
		if c, size, err = sp.plan.Copy(rv, lim); err == nil {
			v = c.Interface()
		}
	}
	if err != nil {
		return nil, 0, sp.fault(err)
	}
	return v, size, nil
}

func (sp *spec) sized(v any, size int, lim value.Limits) (any, int, error) {
	if lim.Bytes > 0 && size > lim.Bytes {
		return nil, 0, &LimitError{Name: "ValueBytes", Field: sp.name, Limit: lim.Bytes, Got: size}
	}
	return v, size, nil
}

// takeAny is take for fields that hold any type.
func (sp *spec) takeAny(v any, lim value.Limits) (any, int, error) {
	if sp.oneOf == nil { // what is already normalised
		switch t := v.(type) {
		case string:
			if utf8.ValidString(t) {
				return sp.sized(v, len(t)+2, lim)
			}
		case bool, int64:
			return sp.sized(v, 8, lim)
		}
	}
	for i, typ := range sp.oneOf {
		plan, err := value.For(typ)
		if v == nil && typ.Kind() != reflect.Pointer {
			err = ErrWrongType
		}
		var c reflect.Value
		if err == nil {
			c, _, err = plan.Convert(v, lim)
		}
		if err == nil {
			v = c.Interface()
			break
		}
		if i == len(sp.oneOf)-1 {
			return nil, 0, &TypeError{Field: sp.name, Path: "$", Want: fmt.Sprintf("one of %v", sp.oneOf), Got: fmt.Sprintf("%T", v)}
		}
	}
	n, size, err := value.Normalise(v, lim)
	if err != nil {
		return nil, 0, sp.fault(err)
	}
	return n, size, nil
}

// convert is take for a value of another type, as it comes by name.
func (sp *spec) convert(v any, lim value.Limits) (any, int, error) {
	if sp.any {
		return sp.takeAny(v, lim)
	}
	switch {
	case v == nil && sp.typ.Kind() != reflect.Pointer:
		return nil, 0, &TypeError{Field: sp.name, Path: "$", Want: sp.plan.Describe(), Got: "null"}
	case v != nil && reflect.TypeOf(v) == sp.typ:
		return sp.take(v, lim, false)
	}
	c, size, err := sp.plan.Convert(v, lim)
	if err != nil {
		return nil, 0, sp.fault(err)
	}
	return c.Interface(), size, nil
}

// slice returns an update of a list field as a slice.
func (sp *spec) slice(update any) reflect.Value {
	switch u := update.(type) {
	case span:
		return u.list.Slice(u.from, u.to)
	case *persist.List:
		return u.Slice(0, u.Len())
	}
	return reflect.ValueOf(update)
}

// settle returns the form in which a value of the field's type is stored. If it
// is a borrowed list, the elements are copied.
func (sp *spec) settle(v any, size int, borrowed bool) (any, error) {
	if sp.list == nil {
		return v, nil
	}
	if l, ok := v.(*persist.List); ok {
		return l, nil
	}
	return sp.appendTo(persist.NewList(sp.typ), v, size, borrowed)
}

// appendTo appends an update to a list. If it is borrowed, the elements are
// copied.
func (sp *spec) appendTo(l *persist.List, update any, size int, borrowed bool) (*persist.List, error) {
	from := l.Len()
	l = l.Append(sp.slice(update), size)
	if borrowed && !sp.noCopy && !sp.list.Immutable() {
		for i := from; i < l.Len(); i++ {
			if err := sp.list.Isolate(l.Index(i)); err != nil {
				return nil, sp.fault(err)
			}
		}
	}
	return l, nil
}

// share returns a stored value, or an update, as one of the field's type, whose
// inner parts are the state's own.
func (sp *spec) share(stored any) any {
	if h, ok := stored.(hidden); ok {
		stored = h()
	}
	switch stored.(type) {
	case span, *persist.List:
		return sp.slice(stored).Interface()
	}
	return stored
}

// out returns a copy of a stored value, or of an update, for the caller to keep.
func (sp *spec) out(stored any) any {
	v := sp.share(stored)
	switch {
	case sp.noCopy || v == nil:
		return v
	case sp.any && !isContainer(v):
		return v
	case sp.list != nil && sp.list.Immutable():
		switch stored.(type) {
		case span, *persist.List: // share has made the slice
			return v
		}
	case sp.plan.Immutable():
		return v
	}
	return sp.plan.Clone(reflect.ValueOf(v)).Interface()
}

// isContainer reports whether a normalised value has parts.
func isContainer(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// hide wraps a value if the field is secret.
func (sp *spec) hide(v any) any {
	if !sp.secret {
		return v
	}
	if _, ok := v.(hidden); ok {
		return v
	}
	return hidden(func() any { return v })
}

// bare undoes hide.
func bare(v any) any {
	if h, ok := v.(hidden); ok {
		return h()
	}
	return v
}

// equal reports whether two stored values are the same to a reader.
func (sp *spec) equal(a, b any) bool {
	va, vb := sp.share(a), sp.share(b)
	if va == nil || vb == nil {
		return va == nil && vb == nil
	}
	return sp.plan.Equal(reflect.ValueOf(va), reflect.ValueOf(vb))
}

// sizeOf returns the size of a stored value.
func (sp *spec) sizeOf(stored any) int {
	stored = bare(stored)
	if l, ok := stored.(*persist.List); ok {
		return l.Bytes()
	}
	v := sp.share(stored)
	if v == nil {
		return 8
	}
	size, err := sp.plan.Check(reflect.ValueOf(v), value.Limits{})
	if err != nil {
		return 0 // it was checked when it was stored
	}
	return size
}

// appendJSON appends a stored value as JSON.
func (sp *spec) appendJSON(dst []byte, stored any) ([]byte, error) {
	v := sp.share(stored)
	if v == nil {
		return append(dst, "null"...), nil
	}
	dst, err := sp.plan.AppendJSON(dst, reflect.ValueOf(v))
	if err != nil {
		return dst, sp.fault(err)
	}
	return dst, nil
}

// fault is typeError for the values of a field. Of a secret it does not say where
// in the value: the names of its members are a part of it.
func (sp *spec) fault(err error) error {
	err = typeError(sp.name, err)
	var wrong *TypeError
	if sp.secret && errors.As(err, &wrong) {
		wrong.Path = "$"
	}
	return err
}

// typeError says which field an error of package value is about.
func typeError(field string, err error) error {
	if e := jsonError(field, err); errors.Is(e, ErrWrongType) || errors.Is(e, ErrLimitExceeded) {
		return e
	}
	return fieldError(field, err)
}
