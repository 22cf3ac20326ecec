package tool

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsonstruct"
)

// Option binds a field to a parameter or to a result, or says more about a
// tool. [From], [FromName], [To], [ToWith], [ToFunc], [ToName], [Annotate] and
// [Reveal] make options.
type Option interface{ bind(b *binder) }

type option func(b *binder)

func (o option) bind(b *binder) { o(b) }

// From injects a field as a parameter, which the model neither sees nor fills
// in. A call fails before the function runs if the caller may not read the
// field, or if the field has no value and the parameter is required. A
// parameter that is not required is left out if the field has no value. A field
// that is a reference, Ephemeral and NoCopy, cannot be injected, because no
// code may look into its value: the function of a stateful tool can read it.
//
// An argument is refused if some decoder takes its name for that of the
// parameter, whether or not the tool accepts other arguments: if the names
// differ only in case, by Unicode's rules, and in _ and -. This concerns the
// arguments themselves, not the members of objects inside them.
func From[T any](f *state.Field[T], param string) Option {
	return option(func(b *binder) {
		if f == nil {
			b.fail("From: parameter %q: no field", param)
			return
		}
		read := func(st *state.State) (any, error) { return f.Get(st) }
		b.addSource("From", reflect.TypeFor[T](), source{field: f.Name, of: f, param: param, read: read})
	})
}

// FromName is [From] for tools that are configured as data. The call reports a
// type that does not fit.
func FromName(field, param string) Option {
	return option(func(b *binder) {
		read := func(st *state.State) (any, error) { return state.GetAs[any](st, field) }
		b.addSource("FromName", nil, source{field: field, of: field, param: param, read: read})
	})
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
	similar := slices.IndexFunc(b.params, func(p param) bool { return p.name != s.param && sameName(p.name, s.param) })
	switch {
	case s.field == "":
		b.fail("%s: the field has no name", where)
	case s.param == "":
		b.fail("%s: the parameter has no name", where)
	case p == nil && similar >= 0:
		b.fail("%s: the function has no such parameter, it is spelled %s", where, fault.Quote(b.params[similar].name))
	case p == nil && !b.undeclared:
		b.fail("%s: the function has no such parameter", where)
	case similar >= 0:
		b.fail("%s: a decoder may take the parameter %s for it", where, fault.Quote(b.params[similar].name))
	case b.hides(s.param):
		b.fail("%s: the parameter is injected twice", where)
	case p != nil && typ != nil && !p.accepts(typ):
		b.fail("%s: want %s, got %s", where, p.kind, describeType(typ))
	default:
		b.sources = append(b.sources, s)
		b.reads = appendOnce(b.reads, s.field)
	}
}

// addSink adds a field to write. Its values are read from JSON as typ, which is
// nil if it is not known.
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

// Annotate adds annotations to a tool. If it is given more than once, the last
// one counts.
func Annotate(a Annotations) Option {
	a = a.clone()
	return option(func(b *binder) { b.annotations = a })
}

// Reveal returns an option for a tool whose results and errors may contain the
// values of secrets, for example because it shows its user their own token.
// Without it they are masked, see [Tool.Call].
func Reveal() Option { return option(func(b *binder) { b.reveals = true }) }
