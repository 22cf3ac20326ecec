package state_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
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
