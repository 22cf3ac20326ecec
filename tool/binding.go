package tool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsonstruct"
)

// binder adds options to a signature and collects their mistakes.
type binder struct {
	*signature
	in   reflect.Type // of the input
	out  reflect.Type // of the result, nil if it is JSON
	errs []error
}

func (b *binder) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// bindOptions adds the options to the signature of a function with these types.
// It returns all mistakes.
func (s *signature) bindOptions(opts []Option, in, out reflect.Type) []error {
	b := &binder{signature: s, in: in, out: out}
	for i, o := range opts {
		if o == nil {
			b.fail("option %d is nil", i)
			continue
		}
		o.bind(b)
	}
	if b.deciders != nil && b.approval == nil { // else a call would be made that nobody decides about
		b.approval = func(context.Context, any) (string, bool) { return "", true }
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
		return nil, fmt.Errorf("the result has no keys: want an object, got %s", kind)
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
