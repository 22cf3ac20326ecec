package tool

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// Option binds a field to a parameter or to a result: [From], [To], [ToWith],
// [FromName] and [ToName] make one.
type Option interface{ bind(b *binder) }

type option func(b *binder)

func (o option) bind(b *binder) { o(b) }

// From injects a field as a parameter: the model neither sees nor fills it in.
// If the field has no value, or the caller may not read it, a call fails before
// the function runs; a parameter that is not required is left out if the field
// has no value.
func From[T any](f *state.Field[T], param string) Option {
	return option(func(b *binder) {
		if f == nil {
			b.fail("From: parameter %q: no field", param)
			return
		}
		b.source("From", reflect.TypeFor[T](), source{field: f.Name, param: param, read: func(st *state.State) (any, error) {
			return f.Get(st)
		}})
	})
}

// FromName is [From] for tools that are configured as data. Whether the types
// fit is found out at the call.
func FromName(field, param string) Option {
	return option(func(b *binder) {
		b.source("FromName", nil, source{field: field, param: param, read: func(st *state.State) (any, error) {
			return state.Get[any](st, field)
		}})
	})
}

// To writes the result under a key, or the whole result if key is "", to a field
// by the handler that it has. A key that is absent is skipped, and one that is
// null deletes the field, unless the field is of type any, which stores nil.
func To[T any](f *state.Field[T], key string) Option {
	return ToWith(f, key, state.Handler[T]{})
}

// ToWith is [To] with another handler.
func ToWith[T any](f *state.Field[T], key string, h state.Handler[T]) Option {
	return option(func(b *binder) {
		if f == nil {
			b.fail("To: key %q: no field", key)
			return
		}
		typ := reflect.TypeFor[T]()
		plan, err := value.For(typ)
		if err != nil {
			b.fail("To: field %q: %w", f.Name, err)
			return
		}
		clears := typ != reflect.TypeFor[any]()
		b.sink("To", typ, sink{field: f.Name, key: key, write: func(st *state.State, text []byte) error {
			if clears && string(text) == "null" {
				_, err := f.Delete(st)
				return err
			}
			var v T
			if err := decode(reflect.ValueOf(&v).Elem(), plan, text); err != nil {
				return err
			}
			return f.SetWith(st, v, h)
		}})
	})
}

// ToName is [ToWith] for tools that are configured as data. h may be nil, which
// is the field's handler. Whether the types fit is found out at the call.
func ToName(field, key string, h state.AnyHandler) Option {
	return option(func(b *binder) {
		b.sink("ToName", nil, sink{field: field, key: key, write: func(st *state.State, text []byte) error {
			if string(text) == "null" && !holdsNil(st, field) {
				_, err := st.KV().Delete(field)
				return err
			}
			v, err := jsontext.Decode(text, jsontext.Limits{})
			if err != nil {
				return err
			}
			return st.KV().SetWith(field, v, h)
		}})
	})
}

// holdsNil reports whether a name is that of a field of type any, or undeclared.
func holdsNil(st *state.State, name string) bool {
	for _, info := range st.Fields() {
		if info.Name == name {
			return info.GoType == reflect.TypeFor[any]()
		}
	}
	return true
}

// source is a field that is injected.
type source struct {
	field string
	param string
	read  func(st *state.State) (any, error)
	to    *param // nil if the tool is open and does not declare it
}

// inject puts the field's value among the arguments.
func (s *source) inject(st *state.State, in arguments) error {
	v, err := s.read(st)
	if errors.Is(err, state.ErrNotFound) && (s.to == nil || !s.to.required) {
		return nil
	}
	if err == nil {
		err = in.inject(s.to, s.param, v)
	}
	if err != nil {
		return &fieldError{param: s.param, field: s.field, err: err}
	}
	return nil
}

// sink is a field that a result is written to.
type sink struct {
	field string
	key   string // of the result, "" for the whole
	write func(st *state.State, text []byte) error
}

// binder checks options.
type binder struct {
	tool *Tool
	out  reflect.Type // of the result, nil if it is JSON
	errs []error
}

func (b *binder) fail(format string, args ...any) {
	b.errs = append(b.errs, b.tool.fail(format, args...))
}

// bind applies the options and reports all mistakes.
func (t *Tool) bind(opts []Option, out reflect.Type) error {
	b := &binder{tool: t, out: out}
	if t.name == "" {
		b.fail("no name")
	}
	for i, o := range opts {
		if o == nil {
			b.fail("option %d is nil", i)
			continue
		}
		o.bind(b)
	}
	for i := range t.sources {
		t.sources[i].to = t.param(t.sources[i].param)
	}
	return errors.Join(b.errs...)
}

// source adds a field to inject. typ is nil if it is not known.
func (b *binder) source(option string, typ reflect.Type, s source) {
	t := b.tool
	where := fmt.Sprintf("%s: field %q, parameter %q", option, s.field, s.param)
	p := t.param(s.param)
	switch {
	case s.field == "":
		b.fail("%s: the field has no name", where)
	case s.param == "":
		b.fail("%s: the parameter has no name", where)
	case p == nil && !t.open:
		b.fail("%s: the function has no such parameter", where)
	case t.injects(s.param):
		b.fail("%s: the parameter is injected twice", where)
	case p != nil && typ != nil && (p.plan == nil || p.plan.Type() != typ) && !fits(describe(typ), p.kind):
		b.fail("%s: want %s, got %s", where, p.kind, describe(typ))
	default:
		t.sources = append(t.sources, s)
	}
}

// sink adds a field to write. typ is nil if it is not known.
func (b *binder) sink(option string, typ reflect.Type, s sink) {
	t := b.tool
	where := fmt.Sprintf("%s: field %q, key %q", option, s.field, s.key)
	for _, other := range t.sinks {
		if other.field == s.field && other.key == s.key {
			b.fail("%s: the field is written twice", where)
			return
		}
	}
	got, err := b.result(s.key)
	switch {
	case s.field == "":
		b.fail("%s: the field has no name", where)
	case err != nil:
		b.fail("%s: %w", where, err)
	case typ != nil && got != nil && got != typ && !fits(describe(got), describe(typ)):
		b.fail("%s: want %s, got %s", where, describe(typ), describe(got))
	default:
		t.sinks = append(t.sinks, s)
		t.keyed = t.keyed || s.key != ""
	}
}

// result returns the type of the result under a key, nil if that is not known
// before the call.
func (b *binder) result(key string) (reflect.Type, error) {
	out := b.out
	if out == nil || key == "" {
		return out, nil
	}
	for out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	switch kind := describe(out); {
	case kind == "any":
		return nil, nil
	case kind != "object":
		return nil, fmt.Errorf("the result is a %s, which has no keys", kind)
	case out.Kind() == reflect.Map:
		return out.Elem(), nil
	case out.Kind() != reflect.Struct:
		return nil, nil
	}
	for _, p := range members(out, nil) {
		if p.name == key {
			return p.plan.Type(), nil
		}
	}
	return nil, errors.New("the result has no such key")
}

// describe returns what a type is for people and models.
func describe(t reflect.Type) string {
	plan, err := value.For(t)
	if err != nil {
		return t.String()
	}
	return plan.Describe()
}

// fits reports whether some value of one type converts to another.
func fits(from, to string) bool {
	if from == "any" || to == "any" || from == to {
		return true
	}
	a, aIsList := strings.CutPrefix(from, "list of ")
	b, bIsList := strings.CutPrefix(to, "list of ")
	switch {
	case to == "array": // of a raw schema
		return aIsList
	case aIsList && bIsList:
		return fits(a, b)
	case bIsList:
		return fits(from, b) // one element becomes a list of one
	case aIsList:
		return false
	}
	number := func(kind string) bool { return kind == "integer" || kind == "number" }
	text := func(kind string) bool { return kind == "string" || kind == "date" }
	return number(from) && number(to) || text(from) && text(to)
}
