package tool

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/value"
)

// Tool is a function that a model can call, with what it reads from and writes
// to a state. [New], [NewStateful], [Raw] and [Updater] make one. It is immutable
// and safe for concurrent use, as far as its function is.
type Tool struct {
	name        string
	description string
	schema      state.JSON
	stateful    bool
	params      []param // of the function, the injected ones too
	open        bool    // arguments that are not among params are accepted
	sources     []source
	sinks       []sink
	keyed       bool                                  // some sink takes a key of the result
	receive     func() arguments                      // returns where the arguments of a call go
	review      func(st *state.State, in any) []error // says what else is wrong with bad arguments; may be nil
	run         func(ctx context.Context, st *state.State, in any) (state.JSON, error)
}

// New returns a tool that calls fn. In is a struct, or map[string]any where the
// parameters are not known beforehand. Its JSON members are the parameters; those
// without omitempty or omitzero are required, and the tag jsonschema describes
// them to the model. Out is any type that a state can hold.
//
// The options say which fields fn reads and writes. The context that it is given
// carries no State. All mistakes are reported at once: an option for a parameter
// or a key of the result that does not exist, types that do not convert, a
// parameter that is injected twice, a field that is written twice from one key.
func New[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), opts ...Option) (*Tool, error) {
	t := &Tool{name: name, description: description}
	if fn == nil {
		return nil, t.fail("no function")
	}
	return typed(t, func(ctx context.Context, _ *state.State, in In) (Out, error) { return fn(ctx, in) }, opts)
}

// NewStateful is [New] for a function that is also given the state, with the
// rights of the handle that the tool is called with. The model does not see it.
// Since the function may use any field, [Run] runs it apart from all others.
func NewStateful[In, Out any](name, description string, fn func(ctx context.Context, st *state.State, in In) (Out, error), opts ...Option) (*Tool, error) {
	t := &Tool{name: name, description: description, stateful: true}
	if fn == nil {
		return nil, t.fail("no function")
	}
	return typed(t, fn, opts)
}

// Raw returns a tool whose parameters are given as a JSON Schema of an object.
// fn is given the arguments together with the injected ones, which are taken out
// of the schema's properties and required, and returns JSON; "" is null.
//
// A call is checked for the names of its arguments, for those that are required,
// and for their type. The rest of the schema is for fn to check.
func Raw(name, description string, schema state.JSON, fn func(ctx context.Context, args state.JSON) (state.JSON, error), opts ...Option) (*Tool, error) {
	t := &Tool{name: name, description: description}
	if fn == nil {
		return nil, t.fail("no function")
	}
	object, err := parseSchema(schema)
	if err != nil {
		return nil, t.fail("%w", err)
	}
	t.params, t.open = object.params, object.open
	t.receive = func() arguments { return &objectArguments{} }
	t.run = func(ctx context.Context, _ *state.State, in any) (state.JSON, error) {
		out, err := fn(ctx, in.(state.JSON))
		if err != nil {
			return "", err
		}
		return t.result(out)
	}
	if err := t.bind(opts, nil); err != nil {
		return nil, err
	}
	t.schema = object.without(t.injects)
	return t, nil
}

// Must returns t, for package variables: it panics if there is an error.
func Must(t *Tool, err error) *Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// typed completes a tool with a function of Go types.
func typed[In, Out any](t *Tool, fn func(ctx context.Context, st *state.State, in In) (Out, error), opts []Option) (*Tool, error) {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if in == reflect.TypeFor[map[string]any]() {
		t.open = true
		t.receive = func() arguments { return mapArguments{} }
	} else {
		var err error
		if t.params, err = parameters(in); err != nil {
			return nil, t.fail("%w", err)
		}
		t.receive = func() arguments { return structArguments{reflect.ValueOf(new(In)).Elem()} }
	}
	plan, err := value.For(out)
	if err != nil {
		return nil, t.fail("the result: %w", err)
	}
	t.run = func(ctx context.Context, st *state.State, in any) (state.JSON, error) {
		arg, ok := in.(*In)
		if !ok {
			m := in.(In)
			arg = &m
		}
		result, err := fn(ctx, st, *arg)
		if err != nil {
			return "", err
		}
		return encode(plan, &result)
	}
	if err := t.bind(opts, out); err != nil {
		return nil, err
	}
	if t.schema, err = t.object(); err != nil {
		return nil, t.fail("%w", err)
	}
	return t, nil
}

// Name returns the name by which the model calls the tool.
func (t *Tool) Name() string { return t.name }

// Description returns what the model is told about the tool.
func (t *Tool) Description() string { return t.description }

// Schema returns the JSON Schema of what the model may fill in. Injected
// parameters and the state are not in it.
func (t *Tool) Schema() state.JSON { return t.schema }

// Reads returns the names of the fields that are injected, each once.
func (t *Tool) Reads() []string {
	names := []string{}
	for _, s := range t.sources {
		if !slices.Contains(names, s.field) {
			names = append(names, s.field)
		}
	}
	return names
}

// Writes returns the names of the fields that results are written to, each once.
func (t *Tool) Writes() []string {
	names := []string{}
	for _, s := range t.sinks {
		if !slices.Contains(names, s.field) {
			names = append(names, s.field)
		}
	}
	return names
}

// Stateful reports whether the function is given the state, so that it may read
// and write more than Reads and Writes tell.
func (t *Tool) Stateful() bool { return t.stateful }

// injects reports whether a parameter is filled in from a field.
func (t *Tool) injects(param string) bool {
	return slices.ContainsFunc(t.sources, func(s source) bool { return s.param == param })
}

// fail returns an error about the tool.
func (t *Tool) fail(format string, args ...any) error {
	return fmt.Errorf("tool %q: "+format, append([]any{t.name}, args...)...)
}
