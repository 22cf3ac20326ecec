package state_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
)

// The tests of this file prove what each handler does with the first and with
// later writes, the laws that handlers keep, and that a handler that fails,
// panics or changes its input harms nothing.

// ruleWrites sets the values one after the other on a field with a handler and
// returns the result, or the first error.
func ruleWrites[T any](h state.Handler[T], values ...T) (T, error) {
	f := &state.Field[T]{Name: "x", Handler: h}
	st := state.New(state.MustSchema(f))
	for _, v := range values {
		if err := f.Set(st, v); err != nil {
			var zero T
			return zero, err
		}
	}
	return f.Get(st)
}

func TestShippedHandlers(t *testing.T) {
	id := func(d ruleDoc) string { return d.Title }
	doc := func(title string, tags ...string) ruleDoc { return ruleDoc{title, append([]string{}, tags...)} }
	is := func(want any, name string) func(any, error) {
		return func(got any, err error) {
			t.Helper()
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
		}
	}
	list := func(h state.Handler[[]string], values ...[]string) (any, error) { return ruleWrites(h, values...) }
	is([]string{}, "append of nothing")(list(state.Append[[]string](), nil))
	is([]string{"a"}, "append of nothing more")(list(state.Append[[]string](), []string{"a"}, []string{}))
	is([]string{"a", "b"}, "union, also on the first write")(list(state.Union[[]string](), []string{"a", "b", "a"}))
	is([]string{"b", "c"}, "keep last, also on the first write")(list(state.KeepLast[[]string](2), []string{"a", "b", "c"}))
	is([]string{}, "keep last of 0")(list(state.KeepLast[[]string](0), []string{"a"}))
	is([]string{}, "keep last of -1")(list(state.KeepLast[[]string](-1), []string{"a"}))

	docs := func(h state.Handler[[]ruleDoc], values ...[]ruleDoc) (any, error) { return ruleWrites(h, values...) }
	is([]ruleDoc{doc("a", "2"), doc("b"), doc("c")}, "merge by id keeps places")(
		docs(state.MergeByID[[]ruleDoc](id), []ruleDoc{doc("a", "1"), doc("b")}, []ruleDoc{doc("c"), doc("a", "2")}))
	is([]ruleDoc{doc("a", "2")}, "merge by id, also on the first write")(docs(state.MergeByID[[]ruleDoc](id), []ruleDoc{doc("a", "1"), doc("a", "2")}))
	is([]ruleDoc{doc("a"), doc("a", "1")}, "union by value, deeply")(
		docs(state.Union[[]ruleDoc](), []ruleDoc{doc("a")}, []ruleDoc{doc("a", "1"), doc("a")}))

	meta := func(values ...map[string]int) (any, error) {
		return ruleWrites(state.MergeMap[map[string]int](), values...)
	}
	is(map[string]int{}, "merge map of nothing")(meta(nil))
	nested, err := ruleWrites(state.MergeMap[map[string]any](), map[string]any{"a": map[string]any{"x": 1}}, map[string]any{"a": map[string]any{"y": 1}, "b": nil})
	is(map[string]any{"a": map[string]any{"y": int64(1)}, "b": nil}, "merge map does not merge the values under a key")(nested, err)

	with := func(h state.Handler[int], values ...map[string]int) (any, error) {
		return ruleWrites(state.MergeMap[map[string]int](h), values...)
	}
	is(map[string]int{"a": 4, "b": 2, "c": 5}, "merge map with sum")(with(state.Sum[int](), map[string]int{"a": 1, "b": 2}, map[string]int{"a": 3, "c": 5}))
	is(map[string]int{"a": 1, "b": 2, "c": 5}, "merge map with first wins")(with(state.FirstWins[int](), map[string]int{"a": 1, "b": 2}, map[string]int{"a": 3, "c": 5}))
	is(map[string]int{"a": 3}, "merge map with replace")(with(state.Replace[int](), map[string]int{"a": 1}, map[string]int{"a": 3}))
	is(map[string]int{"a": 3}, "merge map with the zero handler")(with(state.Handler[int]{}, map[string]int{"a": 1}, map[string]int{"a": 3}))
	byTeam, err := ruleWrites(state.MergeMap[map[string][]string](state.Append[[]string]()), map[string][]string{"a": {"x"}}, map[string][]string{"a": {"y"}, "b": {"z"}})
	is(map[string][]string{"a": {"x", "y"}, "b": {"z"}}, "merge map with append")(byTeam, err)

	num := func(h state.Handler[int], values ...int) (any, error) { return ruleWrites(h, values...) }
	is(-1, "max, also of negative ones first")(num(state.Max[int](), -1, -2))
	is(2, "min, also of positive ones first")(num(state.Min[int](), 2))
	text, err := ruleWrites(state.Max[string](), "b", "c", "a")
	is("c", "max of strings")(text, err)
}

func TestHandlersHaveTheNamesParseSchemaKnows(t *testing.T) {
	for want, h := range map[string]state.AnyHandler{
		"replace": state.Replace[int](), "append": state.Append[[]int](), "union": state.Union[[]int](), "merge_map": state.MergeMap[map[string]int](),
		"sum": state.Sum[int](), "max": state.Max[int](), "min": state.Min[int](), "keep_last(3)": state.KeepLast[[]int](3),
		"first_wins": state.FirstWins[int](), "last_wins": state.LastWins[int](),
		"merge_by_id": state.MergeByID[[]int](func(i int) string { return "" }), "merge_map(sum)": state.MergeMap[map[string]int](state.Sum[int]()), "mine": state.NewHandler("mine", func(int, bool, int) (int, error) { return 0, nil }),
		"": state.Handler[int]{},
	} {
		require.Equal(t, want, h.Name())
	}
}

func TestListsAppendByDefaultAllElseIsReplaced(t *testing.T) {
	type tags []string
	for _, tt := range []struct {
		field  state.Part
		v      any
		append bool
	}{
		{&state.Field[[]string]{Name: "x"}, []string{"a"}, true},
		{&state.Field[tags]{Name: "x"}, tags{"a"}, true},
		{&state.Field[[]any]{Name: "x"}, []any{"a"}, true},
		{&state.Field[[][]int]{Name: "x"}, [][]int{{1}}, true},
		{&state.Field[[1]string]{Name: "x"}, [1]string{"a"}, false},
		{&state.Field[[]byte]{Name: "x"}, []byte("a"), false},
		{&state.Field[map[string]int]{Name: "x"}, map[string]int{"a": 1}, false},
		{&state.Field[string]{Name: "x"}, "a", false},
		{&state.Field[any]{Name: "x"}, []any{"a"}, false},
	} {
		st := state.New(state.MustSchema(tt.field))
		require.NoError(t, st.KV().Set("x", tt.v))
		require.NoError(t, st.KV().Set("x", tt.v))
		got, _ := st.KV().Get("x")
		if !tt.append {
			require.Equal(t, tt.v, got)
			continue
		}
		require.Equal(t, reflect.TypeOf(tt.v), reflect.TypeOf(got))
		require.Equal(t, 2, reflect.ValueOf(got).Len())
	}
}

func TestOwnHandlerRunsOnTheFirstWriteToo(t *testing.T) {
	type call struct {
		current int
		present bool
		update  int
	}
	var calls []call
	h := state.NewHandler("own", func(current int, present bool, update int) (int, error) {
		calls = append(calls, call{current, present, update})
		return current*10 + update, nil
	})
	got, err := ruleWrites(h, 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, 123, got)
	require.Equal(t, []call{{0, false, 1}, {1, true, 2}, {12, true, 3}}, calls)

	st := state.New(nil)
	require.NoError(t, st.KV().SetWith("key", 4, h), "also on an undeclared key, converted to what it takes")
	require.NoError(t, st.KV().SetWith("key", 5.0, h))
	require.ErrorIs(t, st.KV().SetWith("key", "text", h), state.ErrWrongType)
	v, _ := st.KV().Get("key")
	require.Equal(t, int64(45), v)
}

// A stored nil and an unset field are told apart.
func TestOwnHandlerSeesWhetherTheFieldIsSet(t *testing.T) {
	var seen []bool
	h := state.NewHandler("own", func(_ any, present bool, update any) (any, error) {
		seen = append(seen, present)
		return update, nil
	})
	_, err := ruleWrites(h, nil, nil, any(1))
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, true}, seen)
}

func TestEveryShippedHandlerWorksOnUndeclaredKeys(t *testing.T) {
	for _, tt := range []struct {
		h        state.AnyHandler
		one, two any
		want     any
	}{
		{state.Replace[[]string](), []string{"a"}, []string{"b"}, []any{"b"}},
		{state.Append[[]string](), []string{"a"}, []string{"b"}, []any{"a", "b"}},
		{state.KeepLast[[]string](2), []string{"a", "b"}, []string{"c"}, []any{"b", "c"}},
		{state.Union[[]string](), []string{"a"}, []string{"b", "a"}, []any{"a", "b"}},
		{state.MergeByID[[]string](func(s string) string { return s }), []string{"a"}, []string{"b", "a"}, []any{"a", "b"}},
		{state.MergeMap[map[string]int](), map[string]int{"a": 1}, map[string]int{"b": 2}, map[string]any{"a": int64(1), "b": int64(2)}},
		{state.Sum[float64](), 1, 2.5, 3.5},
		{state.Max[int](), 1, 2, int64(2)},
		{state.Min[int](), 1, 2, int64(1)},
		{state.FirstWins[any](), 1, 2, int64(1)},
		{state.LastWins[any](), 1, 2, int64(2)},
	} {
		t.Run(tt.h.Name(), func(t *testing.T) {
			st := state.New(nil)
			require.NoError(t, st.KV().SetWith("key", tt.one, tt.h))
			require.NoError(t, st.KV().SetWith("key", tt.two, tt.h))
			got, _ := st.KV().Get("key")
			require.Equal(t, tt.want, got)
		})
	}
}

// Bytes are a slice too, though they are no list.
func TestBytesCanBeAppended(t *testing.T) {
	got, err := ruleWrites(state.Append[[]byte](), []byte("a"), []byte("b"))
	require.NoError(t, err)
	require.Equal(t, "ab", string(got))
}

func TestAHandlerThatFailsOrPanicsChangesNothing(t *testing.T) {
	failed := errors.New("failed")
	var how string
	f := &state.Field[[]string]{Name: "x", Handler: state.NewHandler("own", func(current []string, _ bool, update []string) ([]string, error) {
		for _, list := range [][]string{current, update} {
			for i := range list {
				list[i] = "mutated"
			}
		}
		switch how {
		case "fail":
			return []string{"result"}, failed
		case "panic":
			panic(fmt.Sprint("with the value ", current))
		case "bad":
			return []string{"\xff"}, nil
		case "big":
			return []string{strings.Repeat("x", 1000)}, nil
		}
		return update, nil
	})}
	st := state.New(state.MustSchema(f, ruleText, state.Limits{ValueBytes: 500}))
	require.NoError(t, f.Replace(st, []string{"kept"}))
	given := []string{"given"}
	for _, tt := range []struct{ how, want string }{
		{"fail", `state: "x": handler own: failed`},
		{"panic", `state: "x": handler own panicked with a string`},
		{"bad", `state: "x": $[0]: want valid UTF-8`},
		{"big", `state: "x": limit ValueBytes`},
	} {
		how = tt.how
		ruleUnchanged(t, st, func() {
			for _, err := range []error{
				f.Set(st, given), st.KV().Set("x", given), f.SetWith(st, given, f.Handler),
				st.Update(func(tx *state.State) error {
					require.NoError(t, ruleText.Set(tx, "half"))
					return f.Set(tx, given)
				}),
			} {
				require.ErrorContains(t, err, tt.want)
				require.Equal(t, tt.how == "fail", errors.Is(err, failed))
			}
		})
		require.Equal(t, []string{"given"}, given)
	}
	require.Equal(t, []string{"kept"}, f.GetOr(st, nil))
}

func TestAHandlerThatWritesItsOwnFieldGetsAnErrorNeverADeadlock(t *testing.T) {
	for name, write := range map[string]func(*state.State, *state.Field[int]) error{
		"Set":    func(st *state.State, f *state.Field[int]) error { return f.Set(st, 1) },
		"KV.Set": func(st *state.State, f *state.Field[int]) error { return st.KV().Set("x", 1) },
		"Update": func(st *state.State, f *state.Field[int]) error {
			return f.Update(st, func(int) (int, error) { return 1, nil })
		},
		"a joined branch": func(st *state.State, f *state.Field[int]) error {
			branch := st.Fork()
			if err := f.SetWith(branch, 1, state.NewHandler("other", func(int, bool, int) (int, error) { return 1, nil })); err != nil {
				return err
			}
			return st.Join(branch)
		},
		"a transaction": func(st *state.State, f *state.Field[int]) error {
			return st.Update(func(tx *state.State) error {
				return f.SetWith(tx, 1, state.NewHandler("other", func(int, bool, int) (int, error) { return 1, nil }))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var st *state.State
				var f *state.Field[int]
				calls := 0
				f = &state.Field[int]{Name: "x", Handler: state.NewHandler("own", func(_ int, _ bool, update int) (int, error) {
					calls++
					err := write(st, f)
					require.ErrorIs(t, err, state.ErrConflict)
					require.EqualError(t, err, `state: "x": no turn to write within 1s: `+
						`does the handler own, Validate or a function given to Update write the field itself?`)
					var conflict *state.ConflictError
					require.ErrorAs(t, err, &conflict)
					require.Equal(t, []string{"x"}, conflict.Fields)
					return update, nil
				})}
				st = state.New(state.MustSchema(f))
				start := time.Now()
				require.NoError(t, f.Set(st, 7))
				require.Equal(t, time.Second, time.Since(start))
				require.Equal(t, 1, calls)
				require.Equal(t, 7, f.GetOr(st, 0))
				require.EqualValues(t, 1, st.Version(), "no other write")
				require.NoError(t, f.Replace(st, 8), "afterwards all is as before")
			})
		})
	}
}

func TestAConflictNamesTheWholeKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := state.New(nil)
		key := strings.Repeat("k", 200)
		var err error
		outer := state.NewHandler("outer", func(current any, _ bool, _ any) (any, error) {
			err = st.KV().SetWith(key, 1, state.NewHandler("inner", func(any, bool, any) (any, error) { return 1, nil }))
			return current, nil
		})
		require.NoError(t, st.KV().SetWith(key, 0, outer))
		var conflict *state.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, []string{key}, conflict.Fields)
		require.ErrorContains(t, err, "the handler outer,")
	})
}

// A write that needs no turn overtakes the handler that makes it, each time.
func TestAHandlerThatReplacesItsOwnFieldFailsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st *state.State
		var f *state.Field[int]
		f = &state.Field[int]{Name: "x", Handler: state.NewHandler("own", func(current int, _ bool, update int) (int, error) {
			return update, f.Replace(st, current+1)
		})}
		st = state.New(state.MustSchema(f))
		start := time.Now()
		err := f.Set(st, 7)
		require.ErrorIs(t, err, state.ErrConflict)
		require.ErrorContains(t, err, `"x"`)
		require.LessOrEqual(t, time.Since(start), time.Second)
		require.Less(t, st.Version(), uint64(20))
	})
}

// Code of users for one field takes turns, in the order of the writes, and delays
// nothing else.
func TestHandlersOfOneFieldTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		f := &state.Field[[]int]{Name: "x", Handler: state.NewHandler("slow", func(current []int, _ bool, update []int) ([]int, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(100 * time.Millisecond)
			running.Add(-1)
			return append(current, update...), nil
		})}
		plain := &state.Field[int]{Name: "plain"}
		st := state.New(state.MustSchema(f, plain))
		branch := st.Fork()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() { require.NoError(t, f.Set(st, []int{i})) })
			synctest.Wait()
		}
		require.NoError(t, plain.Set(st, 1))
		require.Empty(t, f.GetOr(st, nil))
		require.Zero(t, time.Since(start), "another field, and reads, do not wait")
		wg.Wait()
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.Equal(t, []int{0, 1, 2, 3, 4}, f.GetOr(st, nil))
		require.EqualValues(t, 1, most.Load())
		start = time.Now()
		wg.Go(func() { require.NoError(t, f.Set(st, []int{5})) })
		wg.Go(func() { require.NoError(t, f.Set(branch, []int{6})) })
		wg.Wait()
		require.Equal(t, 100*time.Millisecond, time.Since(start), "branches do not wait for each other")
	})
}

func TestValidationsOfOneFieldTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		f := &state.Field[int]{Name: "x", Validate: func(int) error {
			running++
			most = max(most, running)
			time.Sleep(10 * time.Millisecond)
			running--
			return nil
		}}
		st := state.New(state.MustSchema(f))
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { require.NoError(t, f.Set(st, i)) })
			wg.Go(func() { require.NoError(t, st.Patch(map[string]any{"x": i})) })
			wg.Go(func() { require.NoError(t, f.Update(st, func(n int) (int, error) { return n + 1, nil })) })
		}
		wg.Wait()
		require.Equal(t, 1, most)
	})
}

func TestATransactionWaitsASecondForAllItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fields := make([]*state.Field[time.Duration], 3)
		var parts []state.Part
		for i := range fields {
			fields[i] = &state.Field[time.Duration]{
				Name: "f" + strconv.Itoa(i),
				Handler: state.NewHandler("slow", func(_ time.Duration, _ bool, update time.Duration) (time.Duration, error) {
					time.Sleep(update)
					return update, nil
				}),
			}
			parts = append(parts, fields[i])
		}
		st := state.New(state.MustSchema(parts...))
		var wg sync.WaitGroup
		for i, f := range fields {
			wg.Go(func() { require.NoError(t, f.Set(st, time.Duration(i+1)*900*time.Millisecond)) })
		}
		synctest.Wait()
		start := time.Now()
		require.ErrorIs(t, st.Update(func(tx *state.State) error {
			for _, f := range fields {
				if err := f.Set(tx, 0); err != nil {
					return err
				}
			}
			return nil
		}), state.ErrConflict)
		require.Equal(t, time.Second, time.Since(start))
		wg.Wait()
		require.NoError(t, fields[0].Set(st, 0), "it has given back the turns that it had")
	})
}

// A transaction that has one of its turns and waits for another runs no code.
// Who waits for it does not fail, however long that takes.
func TestATransactionThatWaitsForATurnIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := state.NewHandler("sleep", func(_ time.Duration, _ bool, update time.Duration) (time.Duration, error) {
			time.Sleep(update)
			return update, nil
		})
		a := &state.Field[time.Duration]{Name: "a", Handler: sleep}
		b := &state.Field[time.Duration]{Name: "b", Handler: sleep}
		st := state.New(state.MustSchema(a, b))
		start := time.Now()
		var wg sync.WaitGroup
		do := func(write func() error) {
			wg.Go(func() { require.NoError(t, write()) })
			synctest.Wait()
		}
		do(func() error { return a.Set(st, 500*time.Millisecond) })
		for range 3 {
			do(func() error { return b.Set(st, 900*time.Millisecond) })
		}
		do(func() error {
			return st.Update(func(tx *state.State) error { return errors.Join(a.Set(tx, 0), b.Set(tx, 0)) })
		})
		do(func() error { return a.Set(st, 0) })
		wg.Wait()
		require.Equal(t, 2700*time.Millisecond, time.Since(start))
	})
}

func TestAValidationThatPatchesItsOwnFieldGetsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st *state.State
		f := &state.Field[int]{Name: "x", Validate: func(n int) error {
			start := time.Now()
			require.ErrorIs(t, st.Patch(map[string]any{"x": n + 1}), state.ErrConflict)
			require.Equal(t, time.Second, time.Since(start))
			return nil
		}}
		st = state.New(state.MustSchema(f))
		require.NoError(t, st.Patch(map[string]any{"x": 1}))
		require.Equal(t, 1, f.GetOr(st, 0))
	})
}

// A channel of one bubble cannot be used in another one.
func TestTurnsAreTakenInSeveralBubbles(t *testing.T) {
	var st *state.State
	f := &state.Field[int]{Name: "x", Handler: state.NewHandler("slow", func(_ int, _ bool, update int) (int, error) {
		time.Sleep(time.Duration(update) * time.Second)
		return update, nil
	})}
	st = state.New(state.MustSchema(f))
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			for _, write := range []struct {
				seconds int
				err     error
			}{{2, nil}, {0, state.ErrConflict}} {
				wg.Go(func() { require.ErrorIs(t, f.Set(st, write.seconds), write.err) })
				synctest.Wait()
			}
			wg.Wait()
			for range 2 {
				wg.Go(func() { require.NoError(t, f.Set(st, 0)) })
			}
			wg.Wait()
		})
	}
}

func TestSumOutOfRangeIsAnError(t *testing.T) {
	check := func(name string, err error) {
		t.Helper()
		require.Error(t, err, name)
		require.Contains(t, err.Error(), `"x"`, name)
	}
	_, err := ruleWrites(state.Sum[int8](), 100, 27, 1)
	check("int8", err)
	_, err = ruleWrites(state.Sum[int8](), -100, -28, -1)
	check("int8 down", err)
	_, err = ruleWrites(state.Sum[uint8](), 200, 55, 1)
	check("uint8", err)
	_, err = ruleWrites(state.Sum[int64](), math.MaxInt64, 1)
	check("int64", err)
	_, err = ruleWrites(state.Sum[int64](), math.MinInt64, -1)
	check("int64 down", err)
	_, err = ruleWrites(state.Sum[uint64](), math.MaxUint64, 1)
	check("uint64", err)
	_, err = ruleWrites(state.Sum[float64](), math.MaxFloat64, math.MaxFloat64)
	check("float64", err)
	_, err = ruleWrites(state.Sum[float32](), math.MaxFloat32, math.MaxFloat32)
	check("float32", err)
	n, err := ruleWrites(state.Sum[int8](), 100, 27, -128, 0)
	require.NoError(t, err)
	require.Equal(t, int8(-1), n)
}

// ruleLaws checks what a handler claims: it changes no input, gives the same
// result again, and merging xs and then ys equals merging both at once, if there
// is a join of two updates.
func ruleLaws[T any](t *testing.T, name string, h state.Handler[T], draw *rapid.Generator[T], clone func(T) T, join func(T, T) T) {
	t.Run(name, func(t *testing.T) {
		property.Check(t, func(rt *rapid.T) {
			base, xs, ys := draw.Draw(rt, "base"), draw.Draw(rt, "xs"), draw.Draw(rt, "ys")
			b, x, y := clone(base), clone(xs), clone(ys)
			got, err := ruleWrites(h, base, xs, ys)
			require.Empty(rt, gocmp.Diff([]T{b, x, y}, []T{base, xs, ys}), "an input was changed")
			again, err2 := ruleWrites(h, base, xs, ys)
			require.Equal(rt, err == nil, err2 == nil)
			require.Empty(rt, gocmp.Diff(got, again), "not deterministic")
			if join == nil || err != nil {
				return
			}
			batched, err := ruleWrites(h, base, join(xs, ys))
			if err == nil {
				require.Empty(rt, gocmp.Diff(got, batched), "one after the other and both at once differ")
			}
			first, err := ruleWrites(h, xs, ys)
			require.NoError(rt, err)
			both, err := ruleWrites(h, join(xs, ys))
			if err == nil {
				require.Empty(rt, gocmp.Diff(first, both), "on an unset field they differ")
			}
		})
	})
}

func TestHandlerLaws(t *testing.T) {
	same := func(n int) int { return n }
	small := rapid.IntRange(-3, 3)
	list := rapid.SliceOfN(small, 0, 6)
	concat := func(x, y []int) []int { return slices.Concat(x, y) }
	for name, h := range map[string]state.Handler[[]int]{
		"append": state.Append[[]int](), "union": state.Union[[]int](),
		"keep_last": state.KeepLast[[]int](3),
		"merge_by_id": state.MergeByID[[]int](func(n int) string {
			return fmt.Sprint(n % 2)
		}),
	} {
		ruleLaws(t, name, h, list, slices.Clone, concat)
	}
	deep := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) ruleDoc {
		return ruleDoc{rapid.StringN(0, 1, 1).Draw(rt, "title"), rapid.SliceOfN(rapid.StringN(0, 1, 1), 0, 2).Draw(rt, "tags")}
	}), 0, 4)
	for name, h := range map[string]state.Handler[[]ruleDoc]{
		"append of structs": state.Append[[]ruleDoc](), "union of structs": state.Union[[]ruleDoc](), "keep_last of structs": state.KeepLast[[]ruleDoc](2),
		"merge_by_id of structs": state.MergeByID[[]ruleDoc](func(d ruleDoc) string { return d.Title }),
	} {
		ruleLaws(t, name, h, deep, ruleCloneDocs, func(x, y []ruleDoc) []ruleDoc { return slices.Concat(x, y) })
	}
	ruleLaws(t, "merge_map", state.MergeMap[map[string]int](), rapid.MapOf(rapid.StringN(0, 1, 1), small), maps.Clone, func(x, y map[string]int) map[string]int {
		both := map[string]int{}
		maps.Copy(both, x)
		maps.Copy(both, y)
		return both
	})
	ruleLaws(t, "merge_map(sum)", state.MergeMap[map[string]int](state.Sum[int]()), rapid.MapOf(rapid.StringN(0, 1, 1), small), maps.Clone, func(x, y map[string]int) map[string]int {
		both := maps.Clone(x)
		for k, v := range y {
			both[k] += v
		}
		return both
	})
	ruleLaws(t, "sum", state.Sum[int](), rapid.IntRange(-1e6, 1e6), same, func(x, y int) int { return x + y })
	ruleLaws(t, "max", state.Max[int](), rapid.Int(), same, func(x, y int) int { return max(x, y) })
	ruleLaws(t, "min", state.Min[int](), rapid.Int(), same, func(x, y int) int { return min(x, y) })
	ruleLaws(t, "replace", state.Replace[int](), rapid.Int(), same, func(_, y int) int { return y })
	ruleLaws(t, "last_wins", state.LastWins[int](), rapid.Int(), same, func(_, y int) int { return y })
	ruleLaws(t, "first_wins", state.FirstWins[int](), rapid.Int(), same, func(x, _ int) int { return x })
	ruleLaws(t, "sum of floats", state.Sum[float64](), rapid.Float64(), func(f float64) float64 { return f }, nil)
}

func ruleCloneDocs(docs []ruleDoc) []ruleDoc {
	docs = slices.Clone(docs)
	for i := range docs {
		docs[i].Tags = slices.Clone(docs[i].Tags)
	}
	return docs
}
