package tool

import (
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// Option binds a field to a parameter or to a result, or says more about a
// tool. [From], [FromName], [To], [ToFunc], [ToName], [Annotate] and [Reveal]
// make options.
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
		b.addSource("FromName", nil, source{field: field, param: param, read: read})
	})
}

// Output is an [Option] that writes a result, or a member of it, to a field,
// with the field's handler. [To], [ToFunc] and [ToName] make outputs.
//
// A missing member and a null write nothing: the field does not change,
// whatever its handler. Null is the null and the empty text that a raw function
// returns, and a nil pointer, list, map or interface of Go. An empty list or
// map is not null.
type Output struct {
	add     func(b *binder, o Output)
	handler state.AnyHandler // nil for that of the field
	deletes bool
}

func (o Output) bind(b *binder) {
	if o.add == nil {
		b.fail("an output of no field")
		return
	}
	o.add(b, o)
}

// With returns an output that uses h in place of the field's handler. A nil h is
// the field's handler. [New] refuses the handler of another type than that of
// the field. For [ToName], a call and [BeginStep] do, before they call a function.
func (o Output) With(h state.AnyHandler) Output {
	o.handler = h
	return o
}

// OrDelete returns an output for which a null deletes the field. A missing
// member still writes nothing.
func (o Output) OrDelete() Output {
	o.deletes = true
	return o
}

// To writes the member of the result named key to a field. If key is "", it
// writes the whole result.
func To[T any](f *state.Field[T], key string) Output {
	return toField("To", f, key, func(v T) (T, bool, error) { return v, true, nil })
}

// ToFunc is [To] with a function between the result and the field. The member
// is read as an In. fn is called once for each call of the tool, when the
// tool's function has returned. If fn returns an error, the call fails. If fn
// returns a nil pointer, list, map or interface, nothing is written.
func ToFunc[In, T any](f *state.Field[T], key string, fn func(In) (T, error)) Output {
	if fn == nil {
		return Output{add: func(b *binder, _ Output) { b.fail("ToFunc: key %q: no function", key) }}
	}
	return toField("ToFunc", f, key, func(in In) (v T, ok bool, err error) {
		v, err = fn(in)
		return v, err == nil && !isNil(reflect.ValueOf(&v).Elem()), err
	})
}

// toField makes the outputs to declared fields. convert returns what is written
// for a value that was read from the result, if anything is.
func toField[In, T any](
	option string, f *state.Field[T], key string, convert func(In) (v T, ok bool, err error),
) Output {
	return Output{add: func(b *binder, o Output) {
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
		handler, ok := o.handler.(state.Handler[T])
		if o.handler != nil && !ok {
			b.fail("%s: field %q: With: the handler %q is for another type than %s", option, f.Name,
				o.handler.Name(), reflect.TypeFor[T]())
			return
		}
		s := sink{field: f.Name, of: f, by: o.handler, key: key}
		s.decode = func(text []byte) (writer, error) {
			var in In
			if err := plan.DecodeInto(reflect.ValueOf(&in).Elem(), text); err != nil {
				return nil, err
			}
			v, ok, err := convert(in)
			if err != nil || !ok {
				return nil, err
			}
			return func(st *state.State) error { return f.SetWith(st, v, handler) }, nil
		}
		if o.deletes {
			s.delete = func(st *state.State) error {
				_, err := f.Delete(st)
				return err
			}
		}
		b.addSink(option, typ, s)
	}}
}

// ToName is [To] for tools that are configured as data. The call reports a type
// that does not fit.
func ToName(field, key string) Output {
	return Output{add: func(b *binder, o Output) {
		s := sink{field: field, by: o.handler, key: key}
		s.decode = func(text []byte) (writer, error) {
			v, err := jsontext.Decode(text, jsontext.Limits{})
			return func(st *state.State) error { return st.KV().SetWith(field, v, o.handler) }, err
		}
		if o.deletes {
			s.delete = func(st *state.State) error {
				_, err := st.KV().Delete(field)
				return err
			}
		}
		b.addSink("ToName", nil, s)
	}}
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

// Annotations are hints about what a tool does, as the ToolAnnotations of MCP,
// whose JSON they have. They are for people and clients, who must not trust
// those of tools from elsewhere. In this package, only ReadOnly has an effect:
// see [Run].
type Annotations struct {
	// Title is a name for people.
	Title string `json:"title,omitempty"`
	// ReadOnly says that the tool changes nothing outside the state. A stateful
	// function of such a tool is given a snapshot of the state.
	ReadOnly bool `json:"readOnlyHint,omitempty"`
	// Destructive says whether the tool may destroy something. Nil means yes,
	// unless ReadOnly is set.
	Destructive *bool `json:"destructiveHint,omitempty"`
	// Idempotent says that a repeated call with the same arguments changes
	// nothing more.
	Idempotent bool `json:"idempotentHint,omitempty"`
	// OpenWorld says whether the tool deals with things outside the program,
	// such as the web. Nil means yes.
	OpenWorld *bool `json:"openWorldHint,omitempty"`
}

func (a Annotations) clone() Annotations {
	a.Destructive, a.OpenWorld = cloneBool(a.Destructive), cloneBool(a.OpenWorld)
	return a
}

func cloneBool(b *bool) *bool {
	if b == nil {
		return nil
	}
	c := *b
	return &c
}
