package state_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// exported returns a state with values, exported.
func exported(t *testing.T, values map[string]any, parts ...state.Part) []byte {
	t.Helper()
	data, err := ruleNew(t, state.MustSchema(parts...), values).Export()
	require.NoError(t, err)
	return data
}

// centsOf returns the amount that an older program wrote as a text of euros.
func centsOf(text state.JSON) (int, error) {
	var euros string
	if err := json.Unmarshal([]byte(text), &euros); err != nil {
		return 0, errors.New("want a text of euros")
	}
	amount, err := strconv.ParseFloat(euros, 64)
	return int(100 * amount), err
}

func TestImportLoadsFormerNamesAndForms(t *testing.T) {
	text := func(name string) state.Part { return &state.Field[string]{Name: name} }
	list := func(name string) state.Part { return &state.Field[[]string]{Name: name} }
	for _, tt := range []struct {
		name   string
		old    []state.Part
		values map[string]any
		field  state.Part
		want   any
	}{
		{"a former name", []state.Part{text("order")}, map[string]any{"order": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order"}}, "W1"},
		{"the oldest of former names", []state.Part{text("order")}, map[string]any{"order": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order_no", "order"}}, "W1"},
		{"the present name", []state.Part{text("order_id")}, map[string]any{"order_id": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order"}}, "W1"},
		{"a list under a former name", []state.Part{list("remarks")}, map[string]any{"remarks": []string{"a", "b"}},
			&state.Field[[]string]{Name: "notes", Was: []string{"remarks"}}, []string{"a", "b"}},
		{"an undeclared key", []state.Part{state.AllowUndeclared}, map[string]any{"order": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order"}}, "W1"},
		{"a former form", []state.Part{text("amount")}, map[string]any{"amount": "12.50"},
			&state.Field[int]{Name: "amount", Convert: centsOf}, 1250},
		{"a value that fits is not converted", []state.Part{&state.Field[int]{Name: "amount"}}, map[string]any{"amount": 7},
			&state.Field[int]{Name: "amount", Convert: centsOf}, 7},
		{"a former name and form", []state.Part{text("euros")}, map[string]any{"euros": "12.50"},
			&state.Field[int]{Name: "cents", Was: []string{"euros"}, Convert: centsOf}, 1250},
		{"a value under a former name is always converted", []state.Part{&state.Field[int]{Name: "euros"}}, map[string]any{"euros": 12},
			&state.Field[int]{Name: "cents", Was: []string{"euros"}, Convert: func(text state.JSON) (int, error) {
				euros, err := strconv.Atoi(string(text))
				return 100 * euros, err
			}}, 1200},
		{"a converted list", []state.Part{text("tag")}, map[string]any{"tag": "a"},
			&state.Field[[]string]{Name: "tag", Convert: func(text state.JSON) ([]string, error) {
				var tag string
				err := json.Unmarshal([]byte(text), &tag)
				return []string{tag}, err
			}}, []string{"a"}},
		{"a secret", []state.Part{&state.Field[string]{Name: "card", Secret: true}}, map[string]any{"card": "4242"},
			&state.Field[string]{Name: "card_number", Was: []string{"card"}, Secret: true}, "4242"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := exported(t, tt.values, tt.old...)
			schema := state.MustSchema(tt.field)
			st, err := state.Import(schema, data)
			require.NoError(t, err)
			got, ok := st.KV().Get(st.Fields()[1].Name)
			require.True(t, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestImportRefusesWhatConvertRefuses(t *testing.T) {
	field := func(convert func(state.JSON) (int, error), secret bool) *state.Field[int] {
		return &state.Field[int]{Name: "amount", Was: []string{"euros"}, Convert: convert, Secret: secret}
	}
	panics := func(state.JSON) (int, error) { panic("4242") }
	data := exported(t, map[string]any{"euros": "much, 4242"}, &state.Field[string]{Name: "euros"})
	for _, tt := range []struct {
		field *state.Field[int]
		want  string
	}{
		{field(centsOf, false), `state: import: "amount": from Convert: strconv.ParseFloat: parsing "much, 4242": invalid syntax`},
		{field(centsOf, true), `state: import: "amount": refused by Convert`},
		{field(panics, false), `state: import: "amount": Convert panicked with a string`},
	} {
		schema := state.MustSchema(tt.field)
		_, err := state.Import(schema, data)
		require.EqualError(t, err, tt.want)
	}
	both := exported(t, map[string]any{"euros": "1", "amount": 2}, &state.Field[string]{Name: "euros"}, &state.Field[int]{Name: "amount"})
	_, err := state.Import(state.MustSchema(field(centsOf, false)), both)
	require.ErrorIs(t, err, state.ErrWrongType)
	require.ErrorContains(t, err, "given twice")
}

func TestImportNamesTheFieldThatItRefuses(t *testing.T) {
	data := exported(t, map[string]any{"a": "x", "b": "y"}, &state.Field[string]{Name: "a"}, &state.Field[string]{Name: "b"})
	_, err := state.Import(state.MustSchema(&state.Field[int]{Name: "a"}), data)
	require.EqualError(t, err, `state: import: "a": $: want integer, got string`)
	_, err = state.Import(state.MustSchema(&state.Field[string]{Name: "a"}), data)
	require.ErrorIs(t, err, state.ErrUnknownField)
	require.EqualError(t, err, `state: import: "b": unknown field: declare it, or name it in Was of the field that has its values now`)
}

func TestAccessByAFormerNameIsAnError(t *testing.T) {
	for name, parts := range map[string][]state.Part{
		"closed": {&state.Field[string]{Name: "order_id", Was: []string{"order"}}},
		"open":   {&state.Field[string]{Name: "order_id", Was: []string{"order"}}, state.AllowUndeclared},
	} {
		st := state.New(state.MustSchema(parts...))
		err := st.KV().Set("order", "W1")
		require.ErrorIs(t, err, state.ErrUnknownField, name)
		require.EqualError(t, err, `state: "order": unknown field, it is named "order_id" now`, name)
		require.False(t, st.KV().Has("order"))
	}
}

func TestSchemaMistakesOfWas(t *testing.T) {
	for _, tt := range []struct {
		parts []state.Part
		want  string
	}{
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"b"}}, &state.Field[int]{Name: "b"}}, `field "a": Was: "b" is a name of "b"`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"c"}}, &state.Field[int]{Name: "b", Was: []string{"c"}}}, `field "b": Was: "c" is a name of "a"`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"c", "c"}}}, `field "a": Was: "c" is given twice`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"a"}}}, `field "a": Was: "a" is its present name`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{""}}}, `state: field "a": Was: "": name: want a name, got nothing`},
		{[]state.Part{&state.Field[[]state.Message]{Name: "messages", Was: []string{"talk"}}}, `field "messages": cannot have Was or Convert`},
	} {
		_, err := state.NewSchema(tt.parts...)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestSchemaKeepsFormerNamesThroughJSON(t *testing.T) {
	data, err := json.Marshal(state.MustSchema(&state.Field[string]{Name: "order_id", Was: []string{"order", "no"}}))
	require.NoError(t, err)
	schema, err := state.ParseSchema(data)
	require.NoError(t, err)
	require.Equal(t, []string{"order", "no"}, state.New(schema).Fields()[1].Was)
	st, err := state.Import(schema, exported(t, map[string]any{"no": "W1"}, &state.Field[string]{Name: "no"}))
	require.NoError(t, err)
	require.True(t, st.KV().Has("order_id"))
}
