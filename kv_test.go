package state_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
)

// spaced marshals with space, which the JSON of a value does not keep.
type spaced struct{ Text string }

func (s spaced) MarshalJSON() ([]byte, error) {
	return json.MarshalIndent(map[string]string{"text": s.Text}, "", "  ")
}

func (s *spaced) UnmarshalJSON(data []byte) error {
	var in struct{ Text string }
	err := json.Unmarshal(data, &in)
	s.Text = in.Text
	return err
}

func TestJSONByNameIsTheValueAsMarshalJSONShowsIt(t *testing.T) {
	const secret = "sk-live-99887766"
	schema := state.MustSchema(state.Team{"ann": {"ben"}}, state.AllowUndeclared,
		&state.Field[string]{Name: "key", Owner: "ann", Secret: true},
		&state.Field[[]string]{Name: "notes", Read: state.Public},
		&state.Field[spaced]{Name: "spaced", Read: state.Public},
		&state.Field[string]{Name: "unset", Read: state.Public},
		&state.Field[int64]{Name: "number", Read: state.Public},
		&state.Field[func()]{Name: "ref", Ephemeral: true, NoCopy: true})
	st := state.New(schema)
	for name, v := range map[string]any{
		"key": secret, "notes": []string{"<b>", "the key is " + secret}, "spaced": spaced{"a  b"}, "number": int64(1) << 60,
		"free": map[string]any{"n": 1.0}, "token": json.RawMessage(`{"` + secret + `": 1}`),
		"messages": []state.Message{state.UserText("hello " + secret)},
	} {
		require.NoError(t, st.KV().Set(name, v), name)
	}
	require.NoError(t, st.KV().Set("ref", func() {}))
	for _, handle := range []*state.State{st, st.As("ann"), st.As("ben"), st.As("eve"), st.Snapshot(), nil} {
		var shown struct{ Values map[string]json.RawMessage }
		data, err := json.Marshal(handle)
		if handle == nil {
			data, err = []byte(`{}`), nil
		}
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &shown))
		for _, name := range []string{"key", "notes", "spaced", "unset", "number", "ref", "free", "token", "messages", "unknown", "old"} {
			got, ok := handle.KV().JSON(name)
			want, shows := shown.Values[name]
			require.Equal(t, shows, ok, name)
			if ok {
				require.JSONEq(t, string(want), string(got), name)
				require.True(t, got.Valid(), name)
			} else {
				require.Empty(t, got)
			}
			if handle.Agent() != "ben" { // who may not know the secret, and so cannot mask it
				require.NotContains(t, got, secret, name)
			}
		}
	}
	got, ok := st.KV().JSON("spaced")
	require.True(t, ok)
	require.Equal(t, state.JSON(`{"text":"a  b"}`), got)
	got, _ = st.KV().JSON("notes")
	require.Equal(t, state.JSON(`["<b>","the key is [SECRET]"]`), got)
	got, _ = st.KV().JSON("number")
	require.Equal(t, state.JSON("1152921504606846976"), got)

	given, err := st.With(map[string]any{"unset": "given " + secret})
	require.NoError(t, err)
	got, _ = given.KV().JSON("unset")
	require.Equal(t, state.JSON(`"given [SECRET]"`), got)
}

// A transaction depends on what it reads as JSON.
func TestJSONByNameIsARead(t *testing.T) {
	a, b := &state.Field[string]{Name: "a"}, &state.Field[string]{Name: "b"}
	st := state.New(state.MustSchema(a, b))
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		seen, _ := tx.KV().JSON("a")
		if runs++; runs == 1 {
			if err := a.Set(st, "meanwhile"); err != nil {
				return err
			}
		}
		return b.Set(tx, seen.Text())
	}))
	require.Equal(t, 2, runs)
	require.Equal(t, "meanwhile", b.Or(st, ""))
}

// numbersMixed returns numbers of all kinds in all places of an any.
func numbersMixed(f float64, n int64) any {
	return map[string]any{"f": f, "n": n, "list": []any{f, n, []float64{f}, map[string]float64{"f": f}}, "struct": struct {
		F float64
		N int64
		A any
	}{f, n, f}}
}

func TestNumbersOfAnyKeepTheirKind(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		f := rapid.OneOf(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.Map(rapid.Int64(), func(n int64) float64 { return float64(n) }),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 5, 1e3, 1e20, 1e21, 1 << 53, 1 << 63, 1 << 64})).Draw(rt, "f")
		n := rapid.Int64().Draw(rt, "n")
		want := map[string]any{"f": f, "n": n, "list": []any{f, n, []any{f}, map[string]any{"f": f}}, "struct": map[string]any{"F": f, "N": n, "A": f}}

		schema := state.MustSchema(state.AllowUndeclared)
		st := state.New(schema)
		empty := st.Snapshot()
		require.NoError(rt, st.KV().Set("key", numbersMixed(f, n)))
		states := map[string]*state.State{"live": st, "fork": st.Fork()}
		data, err := st.Export()
		require.NoError(rt, err)
		states["imported"], err = state.Import(schema, data)
		require.NoError(rt, err)
		effects, err := st.Effects(empty)
		require.NoError(rt, err)
		require.Len(rt, effects, 1)
		states["effects"] = state.New(schema)
		require.NoError(rt, states["effects"].KV().Set("key", json.RawMessage(effects[0].Value)))
		for name, st := range states {
			got, _ := st.KV().Get("key")
			require.Equal(rt, want, got, name)
		}
		for c := range st.Changes(0) {
			require.Equal(rt, want, c.Value)
		}
	})
}

func TestTheTextOfANumberSaysItsKind(t *testing.T) {
	for text, want := range map[string]any{
		"5": int64(5), "5.0": 5.0, "5.5": 5.5, "1e3": 1e3, "1E3": 1e3, "-0": int64(0), "18446744073709551615": uint64(math.MaxUint64),
		"9007199254740993":   int64(9007199254740993),
		"9007199254740993.0": int64(9007199254740993),             // no float64 holds it
		"1e20":               1e20, "100000000000000000000": 1e20, // no integer holds it
	} {
		st := state.New(nil)
		for name, v := range map[string]any{"number": json.Number(text), "raw": json.RawMessage(text), "JSON": state.JSON(text)} {
			require.NoError(t, st.KV().Set(name, v))
			got, _ := st.KV().Get(name)
			require.Equal(t, want, got, "%s from %s", text, name)
		}
	}
}

// A field of a number type has one kind, and spells it as encoding/json does.
func TestTypedFloatsAreSpelledAsEncodingJSONDoes(t *testing.T) {
	f := &state.Field[float64]{Name: "f"}
	list := &state.Field[[]float64]{Name: "list"}
	st := state.New(state.MustSchema(f, list, state.AllowUndeclared))
	require.NoError(t, st.Patch(map[string]any{"f": 5, "list": []any{1.0, 2}, "any": []any{1.0, 2}}))
	data := ruleExport(t, st)
	require.Contains(t, data, `{"name":"f","value":5}`)
	require.Contains(t, data, `{"name":"list","value":[1,2]}`)
	require.Contains(t, data, `{"name":"any","value":[1.0,2]}`)
}
