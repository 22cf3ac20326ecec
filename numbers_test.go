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
