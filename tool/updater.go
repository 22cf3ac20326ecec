package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Updater returns the tool update_state, with which a model maintains the
// fields that agent may write. Its parameters are these fields without the
// messages and without references. Each is described by its Description and
// UpdateRules, and may be left out or null.
//
// A call assigns its arguments with [state.State.Patch], with the rights of
// agent and as one version. A null deletes the field. Handlers are not used. If
// any value is bad, nothing is written and the error is an [*ArgumentError]
// that lists every bad field. The result names the fields that were assigned.
func Updater(schema *state.Schema, agent string) (*Tool, error) {
	t := &Tool{
		name:         "update_state",
		description:  "Update fields of the shared state. Give only those that change; null clears a field.",
		stateful:     true,
		newArguments: func() arguments { return &patchArguments{values: map[string]any{}, names: []string{}} },
	}
	var object objectSchema
	for _, info := range state.New(schema).As(agent).Fields() {
		if !info.Writable || info.Name == state.Messages.Name || info.Reference {
			continue
		}
		s, err := object.types.fieldSchema(info)
		if err == nil {
			err = object.add(info.Name, s, joinLines(info.Description, info.UpdateRules), false)
		}
		if err != nil {
			return nil, t.invalid(fmt.Errorf("field %q: %w", info.Name, err))
		}
		t.params = append(t.params, param{name: info.Name})
	}
	if len(t.params) == 0 {
		return nil, t.invalid(fmt.Errorf("there is no field that agent %q may write", agent))
	}
	t.schema = object.json()
	t.review = func(st *state.State, input any) []error {
		bad, _ := splitPatchError(st.Fork().As(agent).Patch(input.(*patchArguments).values))
		return bad
	}
	t.call = func(_ context.Context, st *state.State, input any) (result, error) {
		patch := input.(*patchArguments)
		bad, err := splitPatchError(st.As(agent).Patch(patch.values))
		if len(bad) > 0 {
			return result{}, &ArgumentError{Tool: t.name, Errs: bad}
		}
		if err != nil {
			return result{}, err
		}
		text, err := state.JSONOf(map[string][]string{"updated": patch.names})
		return result{text: text}, err
	}
	return t, nil
}

// fieldSchema returns the schema of what a model may assign to a field.
func (ts *typeSchemas) fieldSchema(info state.FieldInfo) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{}
	if len(info.OneOf) == 0 {
		var err error
		if s, err = ts.schemaOf(info.GoType); err != nil {
			return nil, err
		}
	}
	for _, typ := range info.OneOf {
		alternative, err := ts.schemaOf(typ)
		if err != nil {
			return nil, err
		}
		s.AnyOf = append(s.AnyOf, alternative)
	}
	allowNull(s)
	return s, nil
}

// patchArguments are assigned to fields by name.
type patchArguments struct {
	values map[string]any
	names  []string // in the order of the model
}

func (a *patchArguments) addArgument(_ *param, m jsontext.Member) error {
	v, err := jsontext.Decode(m.Value, jsontext.Limits{})
	if err != nil {
		return err
	}
	a.values[m.Name] = v
	a.names = append(a.names, m.Name)
	return nil
}

// addField is not called: the tool injects nothing.
func (a *patchArguments) addField(*param, string, any) error {
	return errors.New("nothing is injected")
}

func (a *patchArguments) input() any { return a }

// splitPatchError returns the error of a Patch as entries of an ArgumentError
// if the values are wrong, and as it is if something else is.
func splitPatchError(err error) (bad []error, other error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil, err
	}
	for _, sentinel := range []error{state.ErrDenied, state.ErrUnknownField, state.ErrReadOnly} {
		if errors.Is(err, sentinel) {
			return nil, err
		}
	}
	for _, e := range joined.Unwrap() {
		if mismatch, ok := e.(*state.TypeError); ok {
			path := fault.Quote(mismatch.Field) + strings.TrimPrefix(mismatch.Path, "$")
			bad = append(bad, &fault.Error{Path: path, Want: mismatch.Want, Got: mismatch.Got})
			continue
		}
		bad = append(bad, errors.New(strings.TrimPrefix(e.Error(), "state: ")))
	}
	return bad, nil
}
