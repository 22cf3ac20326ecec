package tool

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/value"
)

// Tool is a function that a model can call, together with the fields that it
// reads and writes. [New], [NewStateful], [Raw], [RawStateful] and [Updater] make
// tools. A Tool is immutable. It is safe for concurrent use if its function is.
type Tool struct {
	name        string
	description string
	schema      state.JSON
	stateful    bool
	signature

	newArguments func() arguments
	call         func(ctx context.Context, st *state.State, input any) (result, error)
	// review returns what else is wrong with arguments that have been refused.
	// It may be nil.
	review func(st *state.State, input any) []error
}

// New returns a tool that calls fn. In is a struct, or map[string]any if the
// parameters are not known in advance. The JSON members of the struct are the
// parameters. A parameter is required unless its tag has omitempty or omitzero.
// The tag jsonschema describes it to the model. Out is any type that a state
// can hold.
//
// The options say which fields fn reads and writes. The context of fn carries
// no State. The error lists all mistakes: an option for a parameter or a key of
// the result that does not exist, types that do not convert, a parameter that
// is injected twice, a field that is written twice from one key.
func New[In, Out any](
	name, description string, fn func(ctx context.Context, in In) (Out, error), opts ...Option,
) (*Tool, error) {
	t := &Tool{name: name, description: description}
	if fn == nil {
		return nil, t.invalid(errors.New("no function"))
	}
	withState := func(ctx context.Context, _ *state.State, in In) (Out, error) { return fn(ctx, in) }
	return newTyped(t, withState, opts)
}

// NewStateful is [New] for a function that is also given the state, with the
// rights of the handle that the tool is called with. The model does not see it.
//
// The function may use any field, and therefore [Run] never runs it at the same
// time as another call: it sees what all calls in front of it wrote, and all
// calls behind it see what it writes. The rule that a reader comes after the
// writers of its field, wherever they are in the step, does not hold for it: a
// call in front of it that reads a field does not see what the function writes
// there. Where that matters, write the field with [To].
//
// A function of a tool annotated as ReadOnly is given a snapshot, to which
// writes fail.
func NewStateful[In, Out any](
	name, description string, fn func(ctx context.Context, st *state.State, in In) (Out, error), opts ...Option,
) (*Tool, error) {
	t := &Tool{name: name, description: description, stateful: true}
	if fn == nil {
		return nil, t.invalid(errors.New("no function"))
	}
	return newTyped(t, fn, opts)
}

// Raw returns a tool whose parameters are given as the JSON Schema of an
// object. fn is given the arguments of the model together with the injected
// ones, and returns JSON. "" stands for no result: the model reads that the tool
// was executed, and outputs take it for null.
//
// A parameter can be injected if it is one of the schema's properties or
// required, or if the schema has additionalProperties that are true or a
// schema: a server that does not know the parameter would ignore it.
// Tool.Schema leaves injected parameters out of properties, required,
// dependentRequired, examples and default. It is an error if the schema speaks
// of them anywhere else, such as in oneOf or dependentSchemas, because no
// general rule says what would be left.
//
// A call is checked for unknown and missing arguments and for their types. fn
// must check the rest of the schema.
func Raw(
	name, description string, schema state.JSON,
	fn func(ctx context.Context, args state.JSON) (state.JSON, error), opts ...Option,
) (*Tool, error) {
	t := &Tool{name: name, description: description}
	if fn == nil {
		return nil, t.invalid(errors.New("no function"))
	}
	withState := func(ctx context.Context, _ *state.State, args state.JSON) (state.JSON, error) { return fn(ctx, args) }
	return newRaw(t, schema, withState, opts)
}

// RawStateful is [Raw] for a function that is also given the state, as by
// [NewStateful].
func RawStateful(
	name, description string, schema state.JSON,
	fn func(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error), opts ...Option,
) (*Tool, error) {
	t := &Tool{name: name, description: description, stateful: true}
	if fn == nil {
		return nil, t.invalid(errors.New("no function"))
	}
	return newRaw(t, schema, fn, opts)
}

// Must returns t and panics if err is not nil. It is for package variables.
func Must(t *Tool, err error) *Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// newRaw completes a tool with a function of JSON.
func newRaw(
	t *Tool, schema state.JSON, fn func(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error),
	opts []Option,
) (*Tool, error) {
	parsed, err := parseSchema(schema)
	if err != nil {
		return nil, t.invalid(err)
	}
	t.params, t.open, t.undeclared = parsed.params, parsed.open, parsed.undeclared
	t.newArguments = func() arguments { return &jsonArguments{} }
	t.call = func(ctx context.Context, st *state.State, input any) (result, error) {
		out, err := fn(ctx, st, input.(state.JSON))
		if err != nil {
			return result{}, err
		}
		return compactResult(t.name, out)
	}
	if err := t.bind(opts, reflect.TypeFor[state.JSON](), nil); err != nil {
		return nil, err
	}
	if t.schema, err = parsed.without(t.hides); err != nil {
		return nil, t.invalid(err)
	}
	return t, nil
}

// newTyped completes a tool with a function of Go types.
func newTyped[In, Out any](
	t *Tool, fn func(ctx context.Context, st *state.State, in In) (Out, error), opts []Option,
) (*Tool, error) {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if in == reflect.TypeFor[map[string]any]() {
		t.open, t.undeclared = true, true
		t.newArguments = func() arguments { return mapArguments{} }
	} else {
		var err error
		if t.params, err = structParams(in); err != nil {
			return nil, t.invalid(err)
		}
		t.newArguments = func() arguments { return structArguments{reflect.ValueOf(new(In)).Elem()} }
	}
	plan, err := value.For(out)
	if err != nil {
		return nil, t.invalid(fmt.Errorf("the result: %w", err))
	}
	t.call = func(ctx context.Context, st *state.State, input any) (result, error) {
		in, ok := input.(*In)
		if !ok { // a map is not given by reference
			m := input.(In)
			in = &m
		}
		out, err := fn(ctx, st, *in)
		if err != nil {
			return result{}, err
		}
		return encodeResult(t.name, plan, reflect.ValueOf(&out).Elem())
	}
	if err := t.bind(opts, in, out); err != nil {
		return nil, err
	}
	schema := objectSchema{open: t.open}
	for _, p := range t.params {
		if t.injects(p.name) {
			continue
		}
		s, err := schema.types.schemaOf(p.plan.Type())
		if err == nil {
			err = schema.add(p.name, s, p.member.Tag.Get("jsonschema"), p.required)
		}
		if err != nil {
			return nil, t.invalid(fmt.Errorf("parameter %q: %w", p.name, err))
		}
	}
	t.schema = schema.json()
	return t, nil
}

// bind applies the options and returns all mistakes.
func (t *Tool) bind(opts []Option, in, out reflect.Type) error {
	var errs []error
	if problem := checkToolName(t.name); problem != "" {
		errs = append(errs, t.invalid(errors.New(problem)))
	}
	for _, err := range t.bindOptions(opts, in, out) {
		errs = append(errs, t.invalid(err))
	}
	return errors.Join(errs...)
}

// Name returns the name by which the model calls the tool.
func (t *Tool) Name() string { return t.name }

// Description returns what the model is told about the tool.
func (t *Tool) Description() string { return t.description }

// Schema returns the JSON Schema of what the model may fill in, without
// injected parameters and without the state.
func (t *Tool) Schema() state.JSON { return t.schema }

// Reads returns the names of the fields that are injected, each once.
func (t *Tool) Reads() []string { return append([]string{}, t.reads...) }

// Writes returns the names of the fields that results are written to, each
// once.
func (t *Tool) Writes() []string { return append([]string{}, t.writes...) }

// Annotations returns a copy of the tool's annotations.
func (t *Tool) Annotations() Annotations { return t.annotations.clone() }

// Stateful reports whether the function is given the state. Such a function may
// read and write other fields than Reads and Writes return.
func (t *Tool) Stateful() bool { return t.stateful }

// errorf returns an error about the tool.
func (t *Tool) errorf(format string, args ...any) error {
	return fmt.Errorf("%s"+format, append([]any{toolPrefix(t.name)}, args...)...)
}

// toolPrefix returns how errors about a tool begin.
func toolPrefix(name string) string { return fmt.Sprintf("tool %q: ", name) }

// invalid returns an error about the declaration of the tool.
func (t *Tool) invalid(err error) error {
	return &kindError{ErrInvalidTool, t.errorf("%w", err)}
}
