package state_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The tests of this file prove that a team may be large: what a write, a count
// and a look at the journal cost depends on what they touch and not on how many
// agents have touched what before.

// crowd is a schema of n agents with a private field each and a public one.
type crowd struct {
	names  []string // of the agents, and of their fields
	schema *state.Schema
}

func newCrowd(t testing.TB, n int, parts ...state.Part) *crowd {
	c := &crowd{}
	team := state.Team{}
	parts = append(parts, team, &state.Field[int]{Name: "public", Read: state.Public, Write: state.Public})
	for i := range n {
		name := fmt.Sprintf("agent%d", i)
		c.names = append(c.names, name)
		team[name] = nil
		parts = append(parts, &state.Field[any]{Name: name, Owner: name})
	}
	var err error
	c.schema, err = state.NewSchema(parts...)
	require.NoError(t, err)
	return c
}

// crowdAllocated returns the bytes that fn allocates at each of n calls.
func crowdAllocated(n int, fn func()) uint64 {
	return hostileAllocated(func() {
		for range n {
			fn()
		}
	}) / uint64(n)
}

func TestForksOfForksDoNotKeepTheirAncestors(t *testing.T) {
	n := effort.Runs(10_000)
	text := &state.Field[string]{Name: "text"}
	schema := state.MustSchema(text, state.AllowUndeclared)
	for name, next := range map[string]func(st *state.State) *state.State{
		"forks":              (*state.State).Fork,
		"forks of snapshots": func(st *state.State) *state.State { return st.Snapshot().Fork() },
	} {
		for _, writes := range []bool{false, true} {
			grew := ruleHeap(func() any {
				st := state.New(schema)
				for i := range n {
					if st = next(st); writes {
						require.NoError(t, text.Set(st, fmt.Sprint(i)))
					}
				}
				return st
			})
			require.Less(t, grew, 64<<10, "%s, writes: %v", name, writes)
		}
	}
}

// A fork of a frozen state can be joined to nothing, so it keeps no record of
// what it would bring: it is a clone.
func TestAForkOfASnapshotKeepsNoRecordForAJoin(t *testing.T) {
	sum := &state.Field[int]{Name: "sum", Handler: state.Sum[int]()}
	schema := state.MustSchema(sum, state.Limits{Journal: 100})
	st := state.New(schema)
	require.NoError(t, sum.Set(st, 1))
	clone := st.Snapshot().Fork()
	grew := ruleHeap(func() any {
		for range effort.Runs(20_000) {
			require.NoError(t, sum.Set(clone, 1))
		}
		return clone
	})
	require.Less(t, grew, 256<<10)
	require.Equal(t, effort.Runs(20_000)+1, sum.Or(clone, 0))
	require.Error(t, st.Join(clone))
	require.Error(t, st.Snapshot().Join(clone))
	runtime.KeepAlive(clone)
}

// A state, and a clone of one, hold little more after many writes than a state
// with the same content that was just imported. With STATE_EFFORT=40 these are
// 400 000 writes through Sum and 200 000 through KeepLast.
func TestAStateHoldsNoMoreAfterManyWritesThanItsImport(t *testing.T) {
	sum := &state.Field[int]{Name: "sum", Handler: state.Sum[int]()}
	latest := &state.Field[[]string]{Name: "latest", Handler: state.KeepLast[[]string](10)}
	schema := state.MustSchema(sum, latest, state.AllowUndeclared, state.Limits{Journal: 16})
	start := func() *state.State {
		st := state.New(schema)
		for i := range 500 {
			require.NoError(t, st.KV().Set(fmt.Sprint("kept ", i), fmt.Sprint(i, strings.Repeat("x", 200))))
		}
		return st
	}
	for name, begin := range map[string]func() *state.State{
		"a state": start,
		"a clone": func() *state.State { return start().Snapshot().Fork() },
	} {
		t.Run(name, func(t *testing.T) {
			writes := effort.Runs(10_000)
			write := func(n int) *state.State {
				st := begin()
				for i := range n {
					require.NoError(t, sum.Set(st, 1))
					if i%2 == 0 {
						require.NoError(t, latest.Set(st, []string{fmt.Sprint("line ", i)}))
					}
				}
				return st
			}
			write(10) // what is made once in a process
			var st *state.State
			grew := ruleHeap(func() any { st = write(writes); return st })
			require.Equal(t, writes, sum.Or(st, 0))
			text := ruleExport(t, st)
			fresh := ruleHeap(func() any {
				imported, err := state.Import(schema, []byte(text))
				require.NoError(t, err)
				return imported
			})
			runtime.KeepAlive([]any{st, text})
			t.Logf("%d bytes, and %d if it is imported: %.3f", grew, fresh, float64(grew)/float64(fresh))
			require.Less(t, float64(grew), 1.3*float64(fresh))
		})
	}
}
