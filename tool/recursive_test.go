package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

type plan struct {
	Title string  `json:"title" jsonschema:"what to do"`
	Steps []plan  `json:"steps"`
	Next  *plan   `json:"next,omitempty"`
	By    *person `json:"by,omitempty"`
}

// person and team refer to each other.
type person struct {
	Name string          `json:"name"`
	Team map[string]team `json:"team"`
}

type team []*person

type planIn struct {
	Plan plan    `json:"plan" jsonschema:"the whole plan"`
	Last *plan   `json:"last,omitempty"`
	Team team    `json:"team,omitempty"`
	Boss *person `json:"boss,omitempty" jsonschema:"who leads"`
}

const planText = `{"plan":{"title":"a","steps":[{"title":"b","steps":[{"title":"c","steps":[{"title":"d","steps":[{"title":"e","steps":[]}]}]}]}],"by":{"name":"x","team":{"t":[{"name":"y","team":{}},null]}}}}`

func schemaAccepts(t *testing.T, schema state.JSON, text string) error {
	t.Helper()
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(schema), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err, "%s", schema)
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return resolved.Validate(v)
}

func TestRecursiveArgumentsHaveASchema(t *testing.T) {
	var got planIn
	x, err := tool.New("plan", "", func(_ context.Context, in planIn) (plan, error) { got = in; return in.Plan, nil })
	require.NoError(t, err)
	schema := x.Schema()
	require.Contains(t, string(schema), `"$ref":"#/$defs/plan"`)
	require.Equal(t, 1, strings.Count(string(schema), `"what to do"`), "a type is defined once: %s", schema)
	require.Contains(t, string(schema), `"boss":{"description":"who leads","anyOf":[{"$ref":"#/$defs/person"},{"type":"null"}]}`)
	require.NoError(t, schemaAccepts(t, schema, planText))
	require.NoError(t, schemaAccepts(t, schema, `{"plan":{"title":"a","steps":[]},"last":null}`))
	require.Error(t, schemaAccepts(t, schema, `{"plan":{"title":"a","steps":[{"title":1,"steps":[]}]}}`))
	require.Error(t, schemaAccepts(t, schema, `{"plan":{"title":"a","steps":[{"title":"b"}]}}`), "steps are required")
	require.Error(t, schemaAccepts(t, schema, `{"plan":{"title":"a","steps":[],"other":1}}`))
	require.Error(t, schemaAccepts(t, schema, `{"plan":{"title":"a","steps":[]},"team":[{"name":"x"}]}`))
	result, err := x.Call(t.Context(), state.New(nil), planText)
	require.NoError(t, err)
	require.Equal(t, "e", got.Plan.Steps[0].Steps[0].Steps[0].Steps[0].Title)
	require.Contains(t, string(result), `"title":"e"`)

	deep := `{"plan":` + strings.Repeat(`{"title":"a","steps":[`, 100_000) + strings.Repeat(`]}`, 100_000) + `}`
	_, err = x.Call(t.Context(), state.New(nil), state.JSON(deep))
	var bad *tool.ArgumentError
	require.ErrorAs(t, err, &bad)
	require.Less(t, len(err.Error()), 1000)
}

func TestTheUpdaterWritesRecursiveFields(t *testing.T) {
	f := &state.Field[plan]{Name: "plan", Owner: "a"}
	list := &state.Field[[]person]{Name: "people", Owner: "a"}
	next := &state.Field[*plan]{Name: "next", Owner: "a"}
	schema := state.MustSchema(state.Team{"a": nil}, f, list, next)
	x, err := tool.Updater(schema, "a")
	require.NoError(t, err)
	require.NoError(t, schemaAccepts(t, x.Schema(), `{"plan":null}`))
	require.Contains(t, string(x.Schema()), `"next":{"anyOf":[{"$ref":"#/$defs/plan"},{"type":"null"}]}`)
	require.NoError(t, schemaAccepts(t, x.Schema(), planText))
	require.Error(t, schemaAccepts(t, x.Schema(), `{"plan":{"title":"a","steps":[1]}}`))
	st := state.New(schema)
	_, err = x.Call(t.Context(), st, planText)
	require.NoError(t, err)
	require.Equal(t, "d", f.GetOr(st, plan{}).Steps[0].Steps[0].Steps[0].Title)
	_, err = x.Call(t.Context(), st, `{"plan":{"title":"a","steps":[{"title":1}]}}`)
	require.ErrorContains(t, err, `"plan".steps[0].title`)
}

// client has methods that nobody may call.
type client struct{ Ch chan int }

func (*client) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }
func (*client) UnmarshalJSON([]byte) error   { panic("UnmarshalJSON") }

func TestReferencesAreNotInjected(t *testing.T) {
	ref := &state.Field[*client]{Name: "client", Ephemeral: true, NoCopy: true}
	text := &state.Field[string]{Name: "text"}
	schema := state.MustSchema(ref, text)
	st := state.New(schema)
	c := &client{}
	require.NoError(t, ref.Set(st, c))

	type in struct {
		C any `json:"c"`
	}
	typed, err := tool.New("typed", "", func(context.Context, in) (string, error) { return "", nil }, tool.From(ref, "c"))
	require.NoError(t, err)
	named, err := tool.New("named", "", func(context.Context, map[string]any) (string, error) { return "", nil }, tool.FromName("client", "c"))
	require.NoError(t, err)
	raw, err := tool.Raw("raw", "", `{"type":"object","properties":{"c":{}}}`, func(context.Context, state.JSON) (state.JSON, error) { return "", nil }, tool.FromName("client", "c"))
	require.NoError(t, err)
	for _, x := range []*tool.Tool{typed, named, raw} {
		_, err := x.Call(t.Context(), st, `{}`)
		var input *tool.InputError
		require.ErrorAs(t, err, &input)
		require.Equal(t, "client", input.Field)
		require.ErrorIs(t, err, state.ErrWrongType)
		require.ErrorContains(t, err, "a reference")
	}

	// A stateful tool reads it, and a model is not asked for one.
	var got *client
	stateful, err := tool.NewStateful("read", "", func(_ context.Context, st *state.State, _ struct{}) (string, error) {
		got = ref.GetOr(st, nil)
		return "", nil
	})
	require.NoError(t, err)
	_, err = stateful.Call(t.Context(), st, `{}`)
	require.NoError(t, err)
	require.True(t, got == c)
	team := state.MustSchema(state.Team{"a": nil}, &state.Field[*client]{Name: "client", Ephemeral: true, NoCopy: true, Owner: "a"}, &state.Field[string]{Name: "text", Owner: "a"})
	update, err := tool.Updater(team, "a")
	require.NoError(t, err)
	require.NotContains(t, string(update.Schema()), "client")
}
