package state_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The test of this file proves that a schema, a state or a tree of branches may
// be of any size: what it takes is linear in the size, or it is refused.

var sizes = map[string]func(n int) error{
	"agents": func(n int) error {
		_, err := sizeCrowd(n, 1)
		return err
	},
	"agents with a field each": func(n int) error {
		_, err := sizeCrowd(n, n)
		return err
	},
	"agents who do not read the messages": func(n int) error {
		team := state.Team{"lead": nil}
		for i := range n {
			team["lead"] = append(team["lead"], fmt.Sprint("agent ", i))
		}
		schema, err := state.NewSchema(team, &state.Field[[]state.Message]{Name: "messages", Owner: "lead"})
		if err != nil {
			return err
		}
		return state.New(schema).As("agent 1").History().Append(state.InferenceResult{ID: "1"})
	},
	"writes of agents": func(n int) error {
		schema, err := sizeCrowd(1000, 1000)
		if err != nil {
			return err
		}
		st := state.New(schema)
		for i := range n {
			if err := st.As(fmt.Sprint("agent ", i%1000)).KV().Set(fmt.Sprint("field ", i%1000), i); err != nil {
				return err
			}
		}
		return nil
	},
	"fields": func(n int) error {
		schema, err := sizeFields(n)
		if err != nil {
			return err
		}
		st := state.New(schema)
		for i := range n {
			if err := st.KV().Set(fmt.Sprint("field ", i), i); err != nil {
				return err
			}
		}
		return nil
	},
	"keys in a patch": func(n int) error {
		values := map[string]any{}
		for i := range n {
			values[fmt.Sprint("key ", i)] = i
		}
		return state.New(nil).Patch(values)
	},
	"forks in a join": func(n int) error {
		st := state.New(nil)
		forks := make([]*state.State, n)
		for i := range forks {
			forks[i] = st.Fork()
			if err := forks[i].KV().Set(fmt.Sprint("key ", i), i); err != nil {
				return err
			}
		}
		return st.Join(forks...)
	},
	"forks of forks": func(n int) error {
		chain := []*state.State{state.New(nil)}
		for i := range n {
			fork := chain[i].Fork()
			if err := fork.KV().Set("key", i); err != nil {
				return err
			}
			chain = append(chain, fork)
		}
		for i := n; i > 0; i-- {
			if err := chain[i-1].Join(chain[i]); err != nil {
				return err
			}
		}
		return nil
	},
	"writes of a fork": func(n int) error {
		st := state.New(nil)
		fork := st.Fork()
		for i := range n {
			if err := fork.KV().Set(fmt.Sprint("key ", i), i); err != nil {
				return err
			}
		}
		return st.Join(fork)
	},
	"reads of a transaction": func(n int) error {
		st := state.New(nil)
		return st.Update(func(tx *state.State) error {
			for i := range n {
				tx.KV().Get(fmt.Sprint("key ", i))
			}
			return tx.KV().Set("key", 1)
		})
	},
	"snapshots that are kept": func(n int) error {
		st := state.New(nil)
		kept := make([]*state.State, n)
		for i := range kept {
			if err := st.KV().Set("key", i); err != nil {
				return err
			}
			kept[i] = st.Snapshot()
		}
		return nil
	},
}

func sizeCrowd(agents, fields int) (*state.Schema, error) {
	team := state.Team{}
	parts := []state.Part{team, state.Limits{Journal: 10}}
	for i := range agents {
		team[fmt.Sprint("agent ", i)] = nil
	}
	for i := range fields {
		parts = append(parts, &state.Field[int]{Name: fmt.Sprint("field ", i), Owner: fmt.Sprint("agent ", i)})
	}
	return state.NewSchema(parts...)
}

func sizeFields(n int) (*state.Schema, error) {
	parts := make([]state.Part, n)
	for i := range parts {
		parts[i] = &state.Field[int]{Name: fmt.Sprint("field ", i)}
	}
	return state.NewSchema(parts...)
}

func TestAnySizeIsLinearOrRefused(t *testing.T) {
	effort.Cost(t)
	for name, do := range sizes {
		t.Run(name, func(t *testing.T) {
			var err error
			cost := func(n int) uint64 { return hostileAllocated(func() { err = do(n) }) }
			cost(10)
			small := cost(5_000)
			require.NoError(t, err)
			large := cost(100_000)
			if err != nil {
				require.True(t, errors.Is(err, state.ErrLimitExceeded), err)
				require.Less(t, large, uint64(256<<20))
				return
			}
			require.Less(t, large, 30*small)
		})
	}
}

func TestAWriteAfterASnapshotOfManyFieldsCopiesLittle(t *testing.T) {
	effort.Cost(t)
	schema, err := sizeFields(100_000)
	require.NoError(t, err)
	st := state.New(schema)
	i := 0
	require.Less(t, crowdAllocated(100, func() {
		i++
		st.Snapshot()
		require.NoError(t, st.KV().Set("field 500", i))
	}), uint64(40<<10))
}

// A list has the size of its elements, however many writes have made it: one that
// stays short always has room.
func TestListThatStaysShortAlwaysHasRoom(t *testing.T) {
	effort.Cost(t)
	texts := func(handler state.Handler[[]string]) *state.Field[[]string] {
		return &state.Field[[]string]{Name: "texts", Handler: handler, MaxBytes: 100}
	}
	t.Run("KeepLast", func(t *testing.T) {
		last := texts(state.KeepLast[[]string](3))
		st := state.New(state.MustSchema(last))
		for range 1000 {
			require.NoError(t, last.Set(st, []string{"x"}))
		}
	})
	for _, each := range []int{1, 3, 7} {
		t.Run(fmt.Sprint("Append of ", each), func(t *testing.T) {
			list, whole := texts(state.Append[[]string]()), []string{}
			st := state.New(state.MustSchema(list))
			for {
				more := slices.Repeat([]string{"x"}, each)
				whole = append(whole, more...)
				want := list.Replace(state.New(state.MustSchema(list)), whole)
				require.Equal(t, want, list.Set(st, more))
				if want != nil {
					break
				}
			}
		})
	}
	t.Run("the conversation", func(t *testing.T) {
		schema := state.MustSchema(&state.Field[[]state.Message]{Name: state.Messages.Name, MaxBytes: 10_000})
		st := state.New(schema)
		whole := []state.Message{}
		require.NoError(t, state.Messages.Set(st, whole))
		for i := 0; ; i++ {
			call := state.ToolCall{ID: fmt.Sprint("c", i), Name: "look", Input: "{}"}
			said := []state.Message{state.ToolCalls(call), state.ToolResult(call, `"found"`), state.AssistantText("done")}
			if err := state.Messages.Replace(state.New(schema), append(whole, said...)); err != nil {
				require.Equal(t, err, state.Messages.Set(st, said))
				require.Equal(t, err, st.History().Append(state.InferenceResult{Output: said}))
				require.Greater(t, i, 20)
				break
			}
			require.NoError(t, st.History().Append(state.InferenceResult{Output: said[:1]}))
			require.NoError(t, st.History().Answer(said[1].(state.ToolResultMessage)))
			require.NoError(t, st.History().Append(state.InferenceResult{Output: said[2:]}))
			whole = append(whole, said...)
		}
	})
}
