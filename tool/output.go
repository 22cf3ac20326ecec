package tool

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsonstruct"
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
	return toField("To", f, key, func(v T) (writer, error) {
		return func(st *state.State) error { return f.SetWith(st, v, h) }, nil
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
	return toField("ToFunc", f, key, func(in In) (writer, error) {
		v, err := fn(in)
		if err != nil || isNil(reflect.ValueOf(&v).Elem()) {
			return nil, err
		}
		return func(st *state.State) error { return f.Set(st, v) }, nil
	})
}

// toField makes the outputs to declared fields. writerOf says how a value that
// was read from the result is written.
func toField[In, T any](option string, f *state.Field[T], key string, writerOf func(In) (writer, error)) Output {
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
		s := sink{field: f.Name, key: key}
		s.decode = func(text []byte) (writer, error) {
			var in In
			if err := plan.DecodeInto(reflect.ValueOf(&in).Elem(), text); err != nil {
				return nil, err
			}
			return writerOf(in)
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
		s := sink{field: field, key: key}
		s.decode = func(text []byte) (writer, error) {
			v, err := jsontext.Decode(text, jsontext.Limits{})
			return func(st *state.State) error { return st.KV().SetWith(field, v, h) }, err
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

// sink is a field that a result is written to.
type sink struct {
	field  string
	key    string // of the result, "" for the whole
	decode func(text []byte) (writer, error)
	delete writer // if a null deletes, else nil
}

// writer writes one value to its field. A nil writer has nothing to write.
type writer func(st *state.State) error

// output is what a call writes to one field.
type output struct {
	field string
	write writer
}

// result is what a function has returned.
type result struct {
	text state.JSON
	// value is the Go value that text encodes. It is invalid for raw functions.
	// The JSON of a nil list is that of an empty one.
	value reflect.Value
}

// outputs returns what a result writes to fields.
func (t *Tool) outputs(r result) ([]output, error) {
	if len(t.sinks) == 0 {
		return nil, nil
	}
	var room [8][]byte
	texts, err := t.sinkTexts(room[:0], []byte(r.text))
	if err != nil {
		return nil, err
	}
	outputs := make([]output, 0, len(t.sinks))
	for i, text := range texts {
		s := &t.sinks[i]
		if text == nil {
			continue
		}
		write, err := s.delete, error(nil)
		if string(text) != "null" && !isNil(memberOf(r.value, s.key)) {
			write, err = s.decode(text)
		}
		if err != nil {
			return nil, &OutputError{Tool: t.name, Field: s.field, Err: err}
		}
		if write != nil {
			outputs = append(outputs, output{s.field, write})
		}
	}
	return outputs, nil
}

// sinkTexts appends the part of a result that each sink takes, or nil.
func (t *Tool) sinkTexts(texts [][]byte, data []byte) ([][]byte, error) {
	for i := range t.sinks {
		texts = append(texts, nil)
		if t.sinks[i].key == "" {
			texts[i] = data
		}
	}
	if !t.keyed || string(data) == "null" {
		return texts, nil
	}
	err := jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		for i := range t.sinks {
			if key := t.sinks[i].key; key != "" && key == string(name) {
				texts[i] = value.In(data)
			}
		}
		return nil
	})
	if err != nil {
		return nil, &OutputError{Tool: t.name,
			Err: badResult("the result is not an object but " + jsontext.Kind(data) + ": its keys cannot be written to fields")}
	}
	return texts, nil
}

// write writes outputs to a state as one version.
func (t *Tool) write(st *state.State, outputs []output) (err error) {
	defer t.recoverPanic(&err)
	each := func(st *state.State) error {
		for _, o := range outputs {
			if err := o.write(st); err != nil {
				return &OutputError{Tool: t.name, Field: o.field, Err: err}
			}
		}
		return nil
	}
	if len(outputs) <= 1 { // one write is one version anyway
		return each(st)
	}
	err = st.Update(each)
	if _, ok := err.(*OutputError); err != nil && !ok { // of the transaction
		err = &OutputError{Tool: t.name, Err: err}
	}
	return err
}

// memberOf returns the value whose JSON is the member of v's JSON named key, or
// an invalid value if it cannot be found without the JSON.
func memberOf(v reflect.Value, key string) reflect.Value {
	for v.IsValid() && key != "" {
		switch {
		case v.Kind() == reflect.Interface, v.Kind() == reflect.Pointer:
			v = v.Elem()
			continue
		case hasOwnJSON(v.Type()):
		case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String && !hasOwnJSON(v.Type().Key()):
			return v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key()))
		case v.Kind() == reflect.Struct:
			members, _ := jsonstruct.Members(v.Type())
			for i := range members {
				if members[i].Name == key {
					member, _ := members[i].FieldOf(v)
					return member
				}
			}
		}
		return reflect.Value{}
	}
	return v
}

// isNil reports whether v is nil. A list or map that writes its own JSON is nil
// only if it says so there.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || isNil(v.Elem())
	case reflect.Pointer:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return v.IsNil() && !hasOwnJSON(v.Type())
	}
	return false
}

// hasOwnJSON reports whether a type writes its JSON itself.
func hasOwnJSON(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// encodeResult returns the result of a Go function.
func (t *Tool) encodeResult(plan *value.Plan, v reflect.Value) (result, error) {
	size, err := plan.Check(v, value.Limits{})
	if err == nil {
		var data []byte
		if data, err = plan.AppendJSON(make([]byte, 0, size), v); err == nil {
			return result{state.JSON(data), v}, nil
		}
	}
	return result{}, &OutputError{Tool: t.name, Err: badResult("the result cannot be encoded: " + publicReason(err))}
}

// compactResult checks the result of a raw function.
func (t *Tool) compactResult(out state.JSON) (result, error) {
	if out == "" {
		return result{text: "null"}, nil
	}
	data := []byte(out)
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return result{}, &OutputError{Tool: t.name, Err: badResult("the result is not valid JSON")}
	}
	return result{text: state.JSON(jsontext.AppendCompact(nil, data))}, nil
}
