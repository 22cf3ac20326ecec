package tool_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

func updaterSchema() *state.Schema {
	positive := func(n int) error {
		if n <= 0 {
			return errors.New("want more than nothing")
		}
		return nil
	}
	return state.MustSchema(
		state.Team{"support": {"billing"}},
		&state.Field[string]{Name: "name", Owner: "support", Description: "Who asks.", UpdateRules: "Never guess.", MaxBytes: 12},
		&state.Field[int]{Name: "amount", Owner: "support", UpdateRules: "In cents.", Validate: positive},
		&state.Field[[]string]{Name: "tags", Owner: "billing", Read: state.Public, Write: state.Public},
		&state.Field[any]{Name: "either", Owner: "support", OneOf: []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[[]int]()}},
		&state.Field[any]{Name: "free", Owner: "support", Description: "Anything."},
		&state.Field[string]{Name: "token", Owner: "support", Secret: true, Validate: func(s string) error { return errors.New("bad token " + s) }},
		&state.Field[string]{Name: "readonly", Owner: "billing", Read: state.Public},
		&state.Field[string]{Name: "hidden", Owner: "billing"},
	)
}

func TestUpdaterSchema(t *testing.T) {
	update, err := tool.Updater(updaterSchema(), "support")
	require.NoError(t, err)
	require.True(t, update.Stateful())
	require.Equal(t, "update_state", update.Name())
	require.NotEmpty(t, update.Description())
	require.Equal(t, state.JSON(`{"type":"object","properties":{`+
		`"name":{"type":["string","null"],"description":"Who asks.\nNever guess."},`+
		`"amount":{"type":["integer","null"],"description":"In cents."},`+
		`"tags":{"type":["array","null"],"items":{"type":"string"}},`+
		`"either":{"anyOf":[{"type":"boolean"},{"type":"array","items":{"type":"integer"}},{"type":"null"}]},`+
		`"free":{"description":"Anything."},`+
		`"token":{"type":["string","null"]}`+
		`},"additionalProperties":false}`), update.Schema())
}

func TestUpdaterOfNothing(t *testing.T) {
	for _, agent := range []string{"stranger", ""} {
		_, err := tool.Updater(updaterSchema(), agent)
		require.ErrorContains(t, err, "there is no field that agent")
	}
	_, err := tool.Updater(nil, "support")
	require.ErrorContains(t, err, `there is no field that agent "support" may write`)
}

func TestUpdaterCall(t *testing.T) {
	schema := updaterSchema()
	update, err := tool.Updater(schema, "support")
	require.NoError(t, err)
	st := state.New(schema)
	require.NoError(t, st.KV().Set("tags", []string{"old"}))
	before := st.Version()

	out, err := update.Call(t.Context(), st.WithCause("call_1"), `{"tags":["new"],"name":"Ada","free":{"a":[1]},"either":true}`)
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"updated":["tags","name","free","either"]}`), out)
	require.Equal(t, before+1, st.Version(), "one version")
	require.Equal(t, map[string]any{"tags": []string{"new"}, "name": "Ada", "free": map[string]any{"a": []any{int64(1)}}, "either": true}, st.KV().All())
	for c, err := range st.Changes(before) {
		require.NoError(t, err)
		require.Equal(t, []string{"support", "call_1"}, []string{c.Agent, c.Cause})
	}

	_, err = update.Call(t.Context(), st, `{"name":null,"free":null,"amount":null}`)
	require.NoError(t, err)
	require.Equal(t, []string{"either", "tags"}, st.KV().Keys(), "null clears")

	out, err = update.Call(t.Context(), st, ``)
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"updated":[]}`), out)
}

func TestUpdaterListsEveryBadField(t *testing.T) {
	schema := updaterSchema()
	update, err := tool.Updater(schema, "support")
	require.NoError(t, err)
	tests := []struct {
		name, args string
		want       []string
	}{
		{"values", `{"token":"tok-secret","either":"x","tags":["a",1],"amount":-1,"name":"much too long a name"}`, []string{
			`"name": limit MaxBytes: 22 is more than 12`, `"amount": want more than nothing`, `"tags"[1]: want string, got number`,
			`"either"`, `"token": validation refused the value`}},
		{"names and values", `{"hidden":1,"readonly":"x","messages":[],"Name":"x","amount":"x"}`, []string{
			`"hidden": is unknown, there are`, `"readonly": is unknown`, `"messages": is unknown`, `"Name": is unknown, it is spelled "name"`,
			`"amount": want integer, got string`}},
		{"name next to a good value", `{"hidden":1,"tags":["x"]}`, []string{`"hidden": is unknown`}},
		{"one", `{"amount":1.5}`, []string{`"amount": want integer`}},
		{"twice", `{"amount":1,"amount":2}`, []string{`amount`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := state.New(schema)
			_, err := update.Call(t.Context(), st, state.JSON(tt.args))
			var bad *tool.ArgumentError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "update_state", bad.Tool)
			require.Len(t, bad.Errs, len(tt.want), "%v", err)
			for i, want := range tt.want {
				require.ErrorContains(t, bad.Errs[i], want)
			}
			require.NotContains(t, err.Error(), "tok-secret")
			require.Zero(t, st.Version())
		})
	}
}

func TestUpdaterRights(t *testing.T) {
	schema := updaterSchema()
	update, err := tool.Updater(schema, "support")
	require.NoError(t, err)
	var bad *tool.ArgumentError

	_, err = update.Call(t.Context(), state.New(schema).As("billing"), `{"name":"Ada"}`)
	require.ErrorIs(t, err, state.ErrDenied, "the rights of the caller and those of the agent")
	require.False(t, errors.As(err, &bad))

	_, err = update.Call(t.Context(), state.New(schema).Snapshot(), `{"name":"Ada"}`)
	require.ErrorIs(t, err, state.ErrReadOnly)
	require.False(t, errors.As(err, &bad))

	_, err = update.Call(t.Context(), state.New(state.MustSchema(coreText)), `{"name":"Ada"}`)
	require.ErrorIs(t, err, state.ErrUnknownField)
}

// What the function of the updater refuses reads as what the checks refuse: the
// tool is named once.
func TestTheUpdaterNamesItselfOnce(t *testing.T) {
	even := &state.Field[int]{Name: "even", Owner: "a", Validate: func(n int) error {
		if n%2 == 1 {
			return errors.New("the number is odd")
		}
		return nil
	}}
	schema := state.MustSchema(state.Team{"a": nil}, even)
	x, err := tool.Updater(schema, "a")
	require.NoError(t, err)
	_, err = x.Call(t.Context(), state.New(schema), `{"even":1}`)
	require.ErrorAs(t, err, new(*tool.ArgumentError))
	require.Equal(t, 1, strings.Count(err.Error(), "update_state"), err.Error())
}
