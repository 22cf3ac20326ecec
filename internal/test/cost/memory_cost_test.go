package cost_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort"
)

// The tests of this file prove the law of memory: a state that has seen any
// number of operations holds little more than one that was made with the same
// content, but for the journal, which is bounded.

var (
	memText   = &state.Field[string]{Name: "text", Owner: "ann", Read: state.Public, Write: state.Public}
	memMine   = &state.Field[string]{Name: "mine", Owner: "ann"}
	memYours  = &state.Field[string]{Name: "yours", Owner: "ben"}
	memTotal  = &state.Field[int]{Name: "total", Read: state.Public, Write: state.Public, Handler: state.Sum[int]()}
	memTags   = &state.Field[[]string]{Name: "tags", Read: state.Public, Write: state.Public}
	memLatest = &state.Field[[]string]{Name: "latest", Read: state.Public, Write: state.Public, Handler: state.KeepLast[[]string](50)}
	memLarge  = &state.Field[[]string]{Name: "large", Read: state.Public, Write: state.Public, Handler: state.KeepLast[[]string](2)}
	memMap    = &state.Field[map[string]int]{Name: "map", Read: state.Public, Write: state.Public, Handler: state.MergeMap[map[string]int]()}
	memUnion  = &state.Field[[]string]{Name: "union", Read: state.Public, Write: state.Public, Handler: state.Union[[]string]()}
	memSecret = &state.Field[string]{Name: "secret", Secret: true}
	memScrap  = &state.Field[string]{Name: "scrap", Ephemeral: true}
	memAny    = &state.Field[any]{Name: "any", Read: state.Public, Write: state.Public}
)

// The journal of memSchema holds at most this much: 5 sets of readers, 16
// changes and half as many that wait to be dropped, of less than 2 KB each.
const memJournal = 5 * 24 * 2 << 10

var memSchema = state.MustSchema(
	state.Team{"ann": {"ben"}}, state.Limits{Journal: 16}, state.AllowUndeclared,
	memText, memMine, memYours, memTotal, memTags, memLatest, memLarge, memMap, memUnion, memSecret, memScrap, memAny,
)

// memKinds are operations on a state, each with one after which its content is
// about as large as before.
var memKinds = map[string]func(st *state.State, i int) error{
	"set": func(st *state.State, i int) error { return memText.Set(st, fmt.Sprint("text ", i)) },
	"set any": func(st *state.State, i int) error {
		return memAny.Set(st, map[string]any{"n": i, "list": []any{i, "x"}})
	},
	"replace": func(st *state.State, i int) error { return memTags.Replace(st, []string{"a", fmt.Sprint(i)}) },
	"update": func(st *state.State, i int) error {
		return memText.Update(st, func(s string) (string, error) { return fmt.Sprint("updated ", i), nil })
	},
	"sum":    func(st *state.State, i int) error { return memTotal.Set(st, 1-i%2*2) },
	"merge":  func(st *state.State, i int) error { return memMap.Set(st, map[string]int{fmt.Sprint(i % 20): i}) },
	"union":  func(st *state.State, i int) error { return memUnion.Set(st, []string{fmt.Sprint(i % 20)}) },
	"secret": func(st *state.State, i int) error { return memSecret.Set(st, fmt.Sprint("secret number ", i)) },
	"append and clear": func(st *state.State, i int) error {
		if i%100 == 99 {
			return memTags.Replace(st, nil)
		}
		return memTags.Set(st, []string{fmt.Sprint(i)})
	},
	"keep last": func(st *state.State, i int) error { return memLatest.Set(st, []string{fmt.Sprint(i)}) },
	"keep last of large": func(st *state.State, i int) error {
		return memLarge.Set(st, []string{fmt.Sprint(i, strings.Repeat("x", 500))})
	},
	"set and delete": func(st *state.State, i int) error {
		if i%2 == 1 {
			_, err := memText.Delete(st)
			return err
		}
		return memText.Set(st, "again")
	},
	"ephemeral": func(st *state.State, i int) error {
		if i%2 == 1 {
			return st.EndRun()
		}
		return memScrap.Set(st, fmt.Sprint(i))
	},
	"keys": func(st *state.State, i int) error {
		if _, err := st.KV().Delete(fmt.Sprint("key ", i-10)); err != nil {
			return err
		}
		return st.KV().Set(fmt.Sprint("key ", i), i)
	},
	"patch": func(st *state.State, i int) error {
		return st.Patch(map[string]any{"text": fmt.Sprint(i), "mine": fmt.Sprint(i), "yours": fmt.Sprint(i), "key": i})
	},
	"patches of many sets of readers": func(st *state.State, i int) error {
		values := map[string]any{}
		for j, name := range []string{"text", "mine", "yours", "secret"} {
			if i>>j&1 == 1 {
				values[name] = fmt.Sprint(i)
			}
		}
		return st.Patch(values)
	},
	"transaction": func(st *state.State, i int) error {
		return st.Update(func(tx *state.State) error { return memText.Set(tx, fmt.Sprint(len(memText.GetOr(tx, "")), i)) })
	},
	"aborted transaction": func(st *state.State, i int) error {
		_ = st.Update(func(tx *state.State) error { _ = memText.Set(tx, "lost"); return context.Canceled })
		return nil
	},
	"fork and join": func(st *state.State, i int) error {
		a, b := st.Fork(), st.Fork()
		if err := memLatest.Set(a, []string{"a"}); err != nil {
			return err
		}
		if err := memTotal.Set(b, 1); err != nil {
			return err
		}
		return st.Join(a, b)
	},
	"fork that is dropped": func(st *state.State, i int) error { return memText.Set(st.Fork(), "dropped") },
	"snapshot": func(st *state.State, i int) error {
		snap := st.Snapshot()
		if err := memText.Set(st, fmt.Sprint(snap.Version())); err != nil {
			return err
		}
		if i%100 > 0 {
			return nil
		}
		return st.Revert(snap)
	},
	"agents": func(st *state.State, i int) error {
		if err := memMine.Set(st.As("ann").WithCause(fmt.Sprint("call ", i)), fmt.Sprint(i)); err != nil {
			return err
		}
		return memYours.Set(st.As("ben"), fmt.Sprint(i))
	},
	"say": func(st *state.State, i int) error {
		if i%50 == 49 {
			return state.Messages.Replace(st, nil)
		}
		return state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprint("message ", i))})
	},
	"append and pop a result": func(st *state.State, i int) error {
		if i%2 == 1 {
			_, _, err := st.History().Pop()
			return err
		}
		return st.History().Append(state.InferenceResult{
			ID: fmt.Sprint(i), Agent: "ann", Prompt: []state.Message{state.UserText(fmt.Sprint("prompt ", i))},
		})
	},
	"append large results and pop them": func(st *state.State, i int) error {
		if i%2 == 1 {
			_, _, err := st.History().Pop()
			return err
		}
		return st.History().Append(state.InferenceResult{Raw: strings.Repeat("r", 2_000), Prompt: []state.Message{state.UserText(fmt.Sprint(i, strings.Repeat("p", 2_000)))}})
	},
	"results of a fork that is dropped": func(st *state.State, i int) error {
		return st.Fork().History().Append(state.InferenceResult{Prompt: []state.Message{state.UserText(fmt.Sprint("prompt ", i))}})
	},
	"answer": func(st *state.State, i int) error {
		call := state.ToolCall{ID: "call", Name: "tool"}
		err := st.History().AppendOutside(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}})
		if err == nil {
			err = st.History().Answer(state.ToolResult(call, state.JSON(fmt.Sprint(i))))
		}
		if err == nil {
			_, _, err = st.History().Pop()
		}
		return err
	},
	"reset results": func(st *state.State, i int) error {
		return st.History().Reset([]state.InferenceResult{{ID: fmt.Sprint(i), Prompt: []state.Message{state.UserText(fmt.Sprint("prompt ", i))}}})
	},
	"watch": func(st *state.State, i int) error {
		since := st.Version()
		if err := memText.Set(st, fmt.Sprint(i)); err != nil {
			return err
		}
		for _, err := range st.Watch(context.Background(), since) {
			return err
		}
		return nil
	},
	"look back": func(st *state.State, i int) error {
		if err := memText.Set(st, fmt.Sprint(i)); err != nil {
			return err
		}
		_, err := st.At(st.Version() - 1)
		return err
	},
}

func exported(t testing.TB, st *state.State) string {
	data, err := st.Export()
	require.NoError(t, err)
	return string(data)
}

// memNew returns a state with a content of some size.
func memNew(t testing.TB) *state.State {
	st := state.New(memSchema)
	for i := range 500 {
		require.NoError(t, st.KV().Set(fmt.Sprint("kept ", i), strings.Repeat("x", 500)))
	}
	for i := range 20 {
		require.NoError(t, st.History().Append(state.InferenceResult{
			ID: fmt.Sprint("kept ", i), Agent: "ann", Output: []state.Message{state.AssistantText(strings.Repeat("y", 1000))},
		}))
	}
	for name, v := range map[string]any{"text": "t", "mine": "m", "yours": "y", "secret": "hidden"} {
		require.NoError(t, st.KV().Replace(name, v))
	}
	return st
}

func TestAStateHoldsWhatItShows(t *testing.T) {
	effort.Cost(t)
	check := func(t *testing.T, begin func(*state.State) *state.State, do func(st *state.State, i int) error) {
		var data []byte
		run := func(n int) func() any {
			return func() any {
				st := begin(memNew(t))
				for i := range n {
					require.NoError(t, do(st, i))
				}
				data = []byte(exported(t, st))
				return []any{st, data}
			}
		}
		run(10)() // what is made once in a process
		grew := cost.Grew(run(max(10_000, effort.Runs(1000))))
		fresh := cost.Grew(func() any {
			st, err := state.Import(memSchema, data)
			require.NoError(t, err)
			return []any{st, []byte(exported(t, st))}
		})
		t.Logf("%d bytes, and %d if it is imported: %.3f", grew, fresh, float64(grew)/float64(fresh))
		require.Less(t, grew, fresh*12/10+memJournal)
	}
	names := slices.Sorted(maps.Keys(memKinds))
	same := func(st *state.State) *state.State { return st }
	for _, name := range names {
		t.Run(name, func(t *testing.T) { check(t, same, memKinds[name]) })
	}
	t.Run("all in turn", func(t *testing.T) {
		check(t, same, func(st *state.State, i int) error { return memKinds[names[i%len(names)]](st, i/len(names)) })
	})
	// A fork of a frozen state can be joined to nothing, so it keeps no record of
	// what it would bring.
	clone := func(st *state.State) *state.State { return st.Snapshot().Fork() }
	for _, name := range []string{"sum", "keep last"} {
		t.Run(name+" in a clone", func(t *testing.T) { check(t, clone, memKinds[name]) })
	}
}

func TestForksOfForksDoNotKeepTheirAncestors(t *testing.T) {
	effort.Cost(t)
	for name, next := range map[string]func(st *state.State) *state.State{
		"forks":              (*state.State).Fork,
		"forks of snapshots": func(st *state.State) *state.State { return st.Snapshot().Fork() },
	} {
		for _, writes := range []bool{false, true} {
			grew := cost.Grew(func() any {
				st := state.New(memSchema)
				for i := range effort.Runs(10_000) {
					if st = next(st); writes {
						require.NoError(t, memText.Set(st, fmt.Sprint(i)))
					}
				}
				return st
			})
			require.Less(t, grew, 64<<10, "%s, writes: %v", name, writes)
		}
	}
}

// The tests below prove that a schema, a state or a tree of branches may
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
			allocated := func(n int) uint64 { return cost.Allocated(func() { err = do(n) }) }
			allocated(10)
			small := allocated(5_000)
			require.NoError(t, err)
			large := allocated(100_000)
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
	require.Less(t, cost.Allocated(func() {
		for i := range 100 {
			st.Snapshot()
			require.NoError(t, st.KV().Set("field 500", i))
		}
	}), uint64(100*40<<10))
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
		require.NoError(t, state.Messages.Set(st, []state.Message{}))
		for i := 0; ; i++ {
			call := state.ToolCall{ID: fmt.Sprint("c", i), Name: "look", Input: "{}"}
			said := []state.Message{state.ToolCalls(call), state.ToolResult(call, `"found"`), state.AssistantText("done")}
			whole := state.Messages.GetOr(st, nil) // with the keys of the calls
			if err := state.Messages.Replace(state.New(schema), append(whole, said...)); err != nil {
				require.Equal(t, err, state.Messages.Set(st, said))
				require.ErrorIs(t, st.History().Append(state.InferenceResult{Output: said}), state.ErrLimitExceeded)
				require.Greater(t, i, 20)
				break
			}
			for _, step := range []func() error{
				func() error { return st.History().Append(state.InferenceResult{Output: said[:1]}) },
				func() error { return st.History().Answer(said[1].(state.ToolResultMessage)) },
				func() error { return st.History().Append(state.InferenceResult{Output: said[2:]}) },
			} {
				if err := step(); err != nil { // for want of room for a key
					require.ErrorIs(t, err, state.ErrLimitExceeded)
					require.Greater(t, i, 20)
					return
				}
			}
		}
	})
}
