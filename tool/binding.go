package tool

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// Option binds a field to a parameter or to a result. [From], [FromName], [To],
// [ToWith] and [ToName] make options.
type Option interface{ bind(b *binder) }

type option func(b *binder)

func (o option) bind(b *binder) { o(b) }

// From injects a field as a parameter, which the model neither sees nor fills
// in. A call fails before the function runs if the caller may not read the
// field, or if the field has no value and the parameter is required. A
// parameter that is not required is left out if the field has no value.
func From[T any](f *state.Field[T], param string) Option {
	return option(func(b *binder) {
		if f == nil {
			b.fail("From: parameter %q: no field", param)
			return
		}
		read := func(st *state.State) (any, error) { return f.Get(st) }
		b.addSource("From", reflect.TypeFor[T](), source{field: f.Name, param: param, read: read})
	})
}

// FromName is [From] for tools that are configured as data. The call reports a
// type that does not fit.
func FromName(field, param string) Option {
	return option(func(b *binder) {
		read := func(st *state.State) (any, error) { return state.Get[any](st, field) }
		b.addSource("FromName", nil, source{field: field, param: param, read: read})
	})
}

// To writes the member of the result named key to a field, with the field's
// handler. If key is "", it writes the whole result. A missing member is
// skipped. A null deletes the field, unless the field is of type any, which
// stores nil.
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
		nullDeletes := typ != reflect.TypeFor[any]()
		write := func(st *state.State, text []byte) error {
			if nullDeletes && string(text) == "null" {
				_, err := f.Delete(st)
				return err
			}
			var v T
			if err := plan.DecodeInto(reflect.ValueOf(&v).Elem(), text); err != nil {
				return err
			}
			return f.SetWith(st, v, h)
		}
		b.addSink("To", typ, sink{field: f.Name, key: key, write: write})
	})
}

// ToName is [ToWith] for tools that are configured as data. A nil h stands for
// the field's handler. The call reports a type that does not fit.
func ToName(field, key string, h state.AnyHandler) Option {
	return option(func(b *binder) {
		write := func(st *state.State, text []byte) error {
			if string(text) == "null" && !holdsNil(st, field) {
				_, err := st.KV().Delete(field)
				return err
			}
			v, err := jsontext.Decode(text, jsontext.Limits{})
			if err != nil {
				return err
			}
			return st.KV().SetWith(field, v, h)
		}
		b.addSink("ToName", nil, sink{field: field, key: key, write: write})
	})
}

// holdsNil reports whether a field is of type any or undeclared.
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
}

// sink is a field that a result is written to.
type sink struct {
	field string
	key   string // of the result, "" for the whole
	write func(st *state.State, text []byte) error
}

// signature is what a tool takes and what it writes.
type signature struct {
	params  []param // of the function, injected ones included
	open    bool    // arguments that are not among params are accepted
	sources []source
	sinks   []sink
	keyed   bool     // some sink takes a key of the result
	reads   []string // the fields of the sources, each once
	writes  []string // the fields of the sinks, each once
}

// param returns the parameter of a name, or nil.
func (s *signature) param(name string) *param {
	for i := range s.params {
		if s.params[i].name == name {
			return &s.params[i]
		}
	}
	return nil
}

// injects reports whether a parameter is filled in from a field.
func (s *signature) injects(param string) bool {
	return slices.ContainsFunc(s.sources, func(s source) bool { return s.param == param })
}

// inject adds the values of the fields that st holds to the arguments.
func (s *signature) inject(st *state.State, args arguments) error {
	for _, source := range s.sources {
		p := s.param(source.param)
		v, err := source.read(st)
		if errors.Is(err, state.ErrNotFound) && (p == nil || !p.required) {
			continue
		}
		if err == nil {
			err = args.addField(p, source.param, v)
		}
		if err != nil {
			return fieldFault(fmt.Sprintf("parameter %q: field %q", source.param, source.field), err)
		}
	}
	return nil
}

// binder adds options to a signature and collects their mistakes.
type binder struct {
	*signature
	out  reflect.Type // of the result, nil if it is JSON
	errs []error
}

func (b *binder) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// bindOptions adds the options to the signature of a function with results of
// type out. It returns all mistakes.
func (s *signature) bindOptions(opts []Option, out reflect.Type) []error {
	b := &binder{signature: s, out: out}
	for i, o := range opts {
		if o == nil {
			b.fail("option %d is nil", i)
			continue
		}
		o.bind(b)
	}
	return b.errs
}

// addSource adds a field to inject. typ is nil if it is not known.
func (b *binder) addSource(option string, typ reflect.Type, s source) {
	where := fmt.Sprintf("%s: field %q, parameter %q", option, s.field, s.param)
	p := b.param(s.param)
	switch {
	case s.field == "":
		b.fail("%s: the field has no name", where)
	case s.param == "":
		b.fail("%s: the parameter has no name", where)
	case p == nil && !b.open:
		b.fail("%s: the function has no such parameter", where)
	case b.injects(s.param):
		b.fail("%s: the parameter is injected twice", where)
	case p != nil && typ != nil && !p.accepts(typ):
		b.fail("%s: want %s, got %s", where, p.kind, describeType(typ))
	default:
		b.sources = append(b.sources, s)
		b.reads = appendOnce(b.reads, s.field)
	}
}

// addSink adds a field to write. typ is nil if it is not known.
func (b *binder) addSink(option string, typ reflect.Type, s sink) {
	where := fmt.Sprintf("%s: field %q, key %q", option, s.field, s.key)
	twice := slices.ContainsFunc(b.sinks, func(other sink) bool {
		return other.field == s.field && other.key == s.key
	})
	got, err := b.resultType(s.key)
	switch {
	case twice:
		b.fail("%s: the field is written twice", where)
	case s.field == "":
		b.fail("%s: the field has no name", where)
	case err != nil:
		b.fail("%s: %w", where, err)
	case typ != nil && got != nil && got != typ && !kindFits(describeType(got), describeType(typ)):
		b.fail("%s: want %s, got %s", where, describeType(typ), describeType(got))
	default:
		b.sinks = append(b.sinks, s)
		b.keyed = b.keyed || s.key != ""
		b.writes = appendOnce(b.writes, s.field)
	}
}

func appendOnce(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// resultType returns the type of the result under a key, or nil if it is not
// known before the call.
func (b *binder) resultType(key string) (reflect.Type, error) {
	out := b.out
	if out == nil || key == "" {
		return out, nil
	}
	for out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	switch kind := describeType(out); {
	case kind == "any":
		return nil, nil
	case kind != "object":
		return nil, fmt.Errorf("the result is a %s, which has no keys", kind)
	case out.Kind() == reflect.Map:
		return out.Elem(), nil
	case out.Kind() != reflect.Struct:
		return nil, nil
	}
	members, _ := jsonstruct.Members(out)
	for _, m := range members {
		if m.Name == key {
			return m.Type, nil
		}
	}
	return nil, errors.New("the result has no such key")
}
