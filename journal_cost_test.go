package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

func TestJournalIsBoundedByBytes(t *testing.T) {
	effort.Cost(t)
	const mib = 1 << 20
	grown := &state.Field[map[string]string]{Name: "grown", Handler: state.MergeMap[map[string]string]()}
	joined := &state.Field[[]string]{Name: "joined", Handler: state.Union[[]string]()}
	appended := &state.Field[string]{Name: "own", Handler: state.NewHandler("own", func(_ string, _ bool, update string) (string, error) {
		return update, nil
	})}
	secret := &state.Field[string]{Name: "secret", Secret: true}
	schema := state.MustSchema(ruleText, grown, joined, appended, secret, state.AllowUndeclared)
	big := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", mib)) }
	for name, write := range map[string]func(st *state.State, i int) error{
		"replaced values":   func(st *state.State, i int) error { return ruleText.Set(st, big(i)) },
		"undeclared values": func(st *state.State, i int) error { return st.KV().Set("key", []string{big(i)}) },
		"deleted values": func(st *state.State, i int) error {
			_ = st.KV().Set("key", big(i))
			_, err := st.KV().Delete("key")
			return err
		},
		"patches":             func(st *state.State, i int) error { return st.Patch(map[string]any{"text": big(i), "key": big(i)}) },
		"what a handler made": func(st *state.State, i int) error { return appended.Set(st, big(i)[:1+i%2*mib]) },
		"secrets":             func(st *state.State, i int) error { return secret.Set(st, big(i)) },
		"maps that are merged": func(st *state.State, i int) error {
			return grown.Set(st, map[string]string{fmt.Sprint(i % 10): big(i)[:mib/20], "k": fmt.Sprint(i)})
		},
		"lists that are united": func(st *state.State, i int) error {
			if i == 0 {
				return joined.Set(st, make([]string, 1))
			}
			list := make([]string, 0, 1000)
			for j := range 1000 {
				list = append(list, fmt.Sprint(j%900, strings.Repeat("x", 300)))
			}
			return joined.Set(st, list)
		},
	} {
		t.Run(name, func(t *testing.T) {
			grew := ruleHeap(func() any {
				st := state.New(schema)
				for i := range 150 {
					require.NoError(t, write(st, i))
				}
				require.Equal(t, st.Version(), st.Snapshot().Version())
				return st
			})
			require.Less(t, grew, 32*mib)
		})
	}
}

// A merge makes a new map each time: the maps before it are held too.
func TestJournalCountsTheValuesThatMergesReplaced(t *testing.T) {
	effort.Cost(t)
	grown := &state.Field[map[string]string]{Name: "grown", Handler: state.MergeMap[map[string]string]()}
	schema := state.MustSchema(grown)
	grew := ruleHeap(func() any {
		st := state.New(schema)
		all := map[string]string{}
		for i := range 10_000 {
			all[fmt.Sprint(i)] = "x"
		}
		require.NoError(t, grown.Set(st, all))
		for i := range 500 {
			require.NoError(t, grown.Set(st, map[string]string{"k": fmt.Sprint(i)}))
		}
		return st
	})
	require.Less(t, grew, 100<<20, "500 maps of half a MiB each")
}
