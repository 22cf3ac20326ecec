package tool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Updater returns the tool update_state, with which a model keeps up to date the
// fields that agent may write. Its parameters are exactly these fields but for
// the messages, each described by its Description and UpdateRules, and each may be
// left out or null.
//
// A call assigns what it is given with [state.State.Patch], with the rights of
// agent and as one version: null deletes, and handlers have no part in it. If any
// value is bad, nothing is written and the error is an [*ArgumentError] that
// lists every bad field. The result names the fields that were assigned.
func Updater(schema *state.Schema, agent string) (*Tool, error) {
	t := &Tool{
		name:        "update_state",
		description: "Update fields of the shared state. Give only those that change; null clears a field.",
		stateful:    true,
		receive:     func() arguments { return &patchArguments{values: map[string]any{}, names: []string{}} },
	}
	var properties []byte
	for _, info := range state.New(schema).As(agent).Fields() {
		if !info.Writable || info.Name == state.Messages.Name {
			continue
		}
		s, err := fieldSchema(info)
		if err == nil {
			properties, err = appendProperty(properties, info.Name, s)
		}
		if err != nil {
			return nil, t.fail("field %q: %w", info.Name, err)
		}
		t.params = append(t.params, param{name: info.Name})
	}
	if len(t.params) == 0 {
		return nil, t.fail("there is no field that agent %q may write", agent)
	}
	t.schema = state.JSON(fmt.Sprintf(`{"type":"object","properties":{%s},"additionalProperties":false}`, properties))
	t.review = func(st *state.State, in any) []error {
		bad, _ := blame(st.Fork().As(agent).Patch(in.(*patchArguments).values))
		return bad
	}
	t.run = func(_ context.Context, st *state.State, in any) (state.JSON, error) {
		patch := in.(*patchArguments)
		bad, err := blame(st.As(agent).Patch(patch.values))
		if len(bad) > 0 {
			return "", &ArgumentError{Tool: t.name, Errs: bad}
		}
		if err != nil {
			return "", err
		}
		return state.JSONOf(map[string][]string{"updated": patch.names})
	}
	return t, nil
}

// fieldSchema returns the schema of what a model may assign to a field.
func fieldSchema(info state.FieldInfo) (property, error) {
	s := property{&jsonschema.Schema{}}
	if len(info.OneOf) == 0 {
		var err error
		if s, err = schemaOf(info.GoType); err != nil {
			return s, err
		}
	}
	for _, typ := range info.OneOf {
		one, err := schemaOf(typ)
		if err != nil {
			return s, err
		}
		s.AnyOf = append(s.AnyOf, one.Schema)
	}
	text := info.Description
	if text != "" && info.UpdateRules != "" {
		text += "\n"
	}
	s.about(text + info.UpdateRules)
	return s.nullable(), nil
}

// patchArguments are assigned by name.
type patchArguments struct {
	values map[string]any
	names  []string // in the order of the model
}

func (a *patchArguments) set(_ *param, m jsontext.Member) error {
	v, err := jsontext.Decode(m.Value, jsontext.Limits{})
	if err != nil {
		return err
	}
	a.values[m.Name] = v
	a.names = append(a.names, m.Name)
	return nil
}

func (a *patchArguments) inject(*param, string, any) error {
	return &fault.Error{Path: "$", Want: "an argument", Got: "a field"}
}

func (a *patchArguments) value() any { return a }

// blame splits what is wrong with a patch into what the values are to blame for
// and, if that is nothing, what they are not.
func blame(err error) (bad []error, other error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil, err
	}
	for _, e := range joined.Unwrap() {
		for _, not := range []error{state.ErrDenied, state.ErrUnknownField, state.ErrReadOnly} {
			if errors.Is(e, not) {
				return nil, err
			}
		}
		if wrong := (*state.TypeError)(nil); errors.As(e, &wrong) && reflect.TypeOf(e) == reflect.TypeOf(wrong) {
			bad = append(bad, badArgument(quote(wrong.Field)+wrong.Path[1:], mismatch(wrong.Want, wrong.Got)))
			continue
		}
		bad = append(bad, errors.New(strings.TrimPrefix(e.Error(), "state: ")))
	}
	return bad, nil
}
