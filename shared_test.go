package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// Shared is data of the schema, and has no effect on a State alone.
func TestSharedIsData(t *testing.T) {
	total := &state.Field[int]{Name: "total", Handler: state.Sum[int](), Shared: true, Was: []string{"sum"}}
	schema := state.MustSchema(total, &state.Field[string]{Name: "note"})
	shared := func(s *state.Schema) (names []string) {
		for _, f := range s.Fields() {
			if f.Shared {
				names = append(names, f.Name)
			}
		}
		return names
	}
	require.Equal(t, []string{"total"}, shared(schema))
	data, err := schema.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(data), `"shared":true`)
	parsed, err := state.ParseSchema(data)
	require.NoError(t, err)
	require.Equal(t, []string{"total"}, shared(parsed))
	for _, ephemeral := range []bool{false, true} {
		_, err = state.NewSchema(&state.Field[[]state.Message]{Name: "messages", Shared: true, Ephemeral: ephemeral},
			&state.Field[int]{Name: "gone", Shared: true, Ephemeral: true})
		require.ErrorIs(t, err, state.ErrInvalidSchema)
		require.ErrorContains(t, err, `"messages": cannot be Shared`)
		require.ErrorContains(t, err, `"gone": cannot be Shared`)
	}
	s := state.New(schema)
	require.NoError(t, total.Set(s, 1))
	fork := s.Fork()
	require.NoError(t, total.Set(fork, 2))
	require.NoError(t, s.Join(fork))
	exported, err := s.Export()
	require.NoError(t, err)
	imported, err := state.Import(schema, exported)
	require.NoError(t, err)
	require.Equal(t, 3, total.GetOr(imported, 0))
}
