package state_test

import (
	"fmt"
	"math/rand/v2"
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

func TestCountsOfVersionsDoNotGrowWithTheCombinationsOfReaders(t *testing.T) {
	c := newCrowd(t, 24, state.Limits{Journal: 16})
	st := state.New(c.schema)
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]uint64{}
	total := effort.Runs(5000)
	patch := func() {
		values := map[string]any{}
		for _, i := range rng.Perm(24)[:8] {
			values[c.names[i]] = rng.IntN(1000)
			want[c.names[i]]++
		}
		require.NoError(t, st.Patch(values))
	}
	early := crowdAllocated(100, patch)
	grew := ruleHeap(func() any {
		for range total {
			patch()
		}
		return st
	})
	require.Less(t, grew, 1<<20)
	require.Less(t, crowdAllocated(100, patch), early+early/5)
	for _, name := range c.names {
		require.Equal(t, want[name], st.As(name).Version())
	}
	require.EqualValues(t, total+200, st.Version())
	require.Less(t, len(ruleExport(t, st)), 6000)
}

func TestAnUpdateOfTwoFieldsCostsTheSameInALargeTeam(t *testing.T) {
	cost := func(agents int) uint64 {
		c := newCrowd(t, agents)
		st := state.New(c.schema)
		i := 0
		return crowdAllocated(200, func() {
			i++
			require.NoError(t, st.Patch(map[string]any{c.names[1]: i, c.names[2]: i}))
		})
	}
	require.Less(t, cost(1000), 3*cost(10))
}

// What the journal still holds of one agent does not depend on what others do.
func TestJournalForgetsAsMuchWhateverOthersWrite(t *testing.T) {
	held := func(others int) int {
		c := newCrowd(t, 20, state.Limits{Journal: 100})
		st := state.New(c.schema)
		for i := range 400 {
			require.NoError(t, st.KV().Set(c.names[0], i))
			for j := range others {
				require.NoError(t, st.KV().Set(c.names[1+j%19], fmt.Sprint(i, string(make([]byte, j*1000)))))
			}
		}
		me := st.As(c.names[0])
		n := 0
		for ; n < 400; n++ {
			for _, err := range me.Changes(me.Version() - uint64(n) - 1) {
				if err != nil {
					return n
				}
				break
			}
		}
		return n
	}
	alone := held(0)
	require.Less(t, alone, 100)
	require.GreaterOrEqual(t, alone, 100*4/22, "its share of what four sets of readers may keep")
	require.Equal(t, alone, held(19))
}

func TestChangesCostWhatTheyYield(t *testing.T) {
	cost := func(agents int, as func(*state.State) *state.State) uint64 {
		c := newCrowd(t, agents)
		st := state.New(c.schema)
		for i := range 20 {
			for _, name := range c.names {
				require.NoError(t, st.KV().Set(name, i))
			}
		}
		require.NoError(t, st.KV().Set("public", 1))
		s := as(st)
		return crowdAllocated(100, func() {
			n := 0
			for _, err := range s.Changes(s.Version() - 1) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 1, n)
		})
	}
	for name, as := range map[string]func(*state.State) *state.State{
		"host":     func(st *state.State) *state.State { return st },
		"an agent": func(st *state.State) *state.State { return st.As("agent0") },
	} {
		require.Less(t, cost(300, as), 2*cost(3, as), name)
	}
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
