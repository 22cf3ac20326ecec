package tool

import (
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// Output is an [Option] that writes a result, or a member of it, to a field.
// [To], [ToWith], [ToFunc] and [ToName] make outputs.
//
// A missing member and a null write nothing: the field does not change,
// whatever its handler. Null is the null and the empty text that a raw function
// returns, and a nil pointer, list, map or interface of Go. An empty list or
// map is not null.
type Output struct {
	add     func(b *binder, deletes bool)
	deletes bool
}

func (o Output) bind(b *binder) {
	if o.add == nil {
		b.fail("an output of no field")
		return
	}
	o.add(b, o.deletes)
}

// OrDelete returns an output for which a null deletes the field. A missing
// member still writes nothing.
func (o Output) OrDelete() Output {
	o.deletes = true
	return o
}

// To writes the member of the result named key to a field, with the field's
// handler. If key is "", it writes the whole result.
func To[T any](f *state.Field[T], key string) Output {
	return ToWith(f, key, state.Handler[T]{})
}

// ToWith is [To] with another handler.
func ToWith[T any](f *state.Field[T], key string, h state.Handler[T]) Output {
	return toField("To", f, key, func(v T) (output, error) {
		return newOutput(f, v, h), nil
	})
}

// ToFunc is [To] with a function between the result and the field. The member
// is read as an In. fn is called once for each call of the tool, when the
// tool's function has returned. If fn returns an error, the call fails. If fn
// returns a nil pointer, list, map or interface, nothing is written.
func ToFunc[In, T any](f *state.Field[T], key string, fn func(In) (T, error)) Output {
	if fn == nil {
		return Output{add: func(b *binder, _ bool) { b.fail("ToFunc: key %q: no function", key) }}
	}
	return toField("ToFunc", f, key, func(in In) (output, error) {
		v, err := fn(in)
		if err != nil || isNil(reflect.ValueOf(&v).Elem()) {
			return output{}, err
		}
		return newOutput(f, v, state.Handler[T]{}), nil
	})
}

func newOutput[T any](f *state.Field[T], v T, by state.Handler[T]) output {
	return output{write: func(st *state.State) error { return f.SetWith(st, v, by) }}
}

// toField makes the outputs to declared fields. outputOf says how a value that
// was read from the result is written.
func toField[In, T any](option string, f *state.Field[T], key string, outputOf func(In) (output, error)) Output {
	return Output{add: func(b *binder, deletes bool) {
		if f == nil {
			b.fail("%s: key %q: no field", option, key)
			return
		}
		typ := reflect.TypeFor[In]()
		plan, err := value.For(typ)
		if err != nil {
			b.fail("%s: field %q: %w", option, f.Name, err)
			return
		}
		s := sink{field: f.Name, of: f, key: key}
		s.decode = func(text []byte) (output, error) {
			var in In
			if err := plan.DecodeInto(reflect.ValueOf(&in).Elem(), text); err != nil {
				return output{}, err
			}
			return outputOf(in)
		}
		if deletes {
			s.delete = func(st *state.State) error {
				_, err := f.Delete(st)
				return err
			}
		}
		b.addSink(option, typ, s)
	}}
}

// ToName is [ToWith] for tools that are configured as data. A nil h stands for
// the field's handler. The call reports a type that does not fit.
func ToName(field, key string, h state.AnyHandler) Output {
	return Output{add: func(b *binder, deletes bool) {
		s := sink{field: field, of: field, key: key}
		s.decode = func(text []byte) (output, error) {
			v, err := jsontext.Decode(text, jsontext.Limits{})
			return output{write: func(st *state.State) error { return st.KV().SetWith(field, v, h) }}, err
		}
		if deletes {
			s.delete = func(st *state.State) error {
				_, err := st.KV().Delete(field)
				return err
			}
		}
		b.addSink("ToName", nil, s)
	}}
}
