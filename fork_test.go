package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// The tests of this file prove how branches and transactions combine: which writes
// merge, which conflict, in which order, and that a refused Join leaves parent and
// branches as they were.

// The form of the tests of Join: a field of each way to combine.
var (
	joinPlain = &state.Field[string]{Name: "plain"}
	joinList  = &state.Field[[]string]{Name: "list"}
	joinSum   = &state.Field[int]{Name: "sum", Handler: state.Sum[int]()}
	joinFirst = &state.Field[string]{Name: "first", Handler: state.FirstWins[string]()}
	joinLast  = &state.Field[string]{Name: "last", Handler: state.LastWins[string]()}
	joinSpy   = &state.Field[string]{Name: "spy", Handler: state.NewHandler("concat", func(current string, _ bool, update string) (string, error) {
		if strings.Contains(current+update, "!!") {
			return "", errJoin
		}
		return current + update, nil
	})}
	joinSchema = state.MustSchema(state.AllowUndeclared, joinPlain, joinList, joinSum, joinFirst, joinLast, joinSpy)

	errJoin = errors.New("handler failed")
)

type joinStep = func(*state.State) error

func joinSet[T any](f *state.Field[T], v T) joinStep {
	return func(st *state.State) error { return f.Set(st, v) }
}

func joinReplace[T any](f *state.Field[T], v T) joinStep {
	return func(st *state.State) error { return f.Replace(st, v) }
}

func joinUpdate[T any](f *state.Field[T], v T) joinStep {
	return func(st *state.State) error { return f.Update(st, func(T) (T, error) { return v, nil }) }
}

func joinDelete[T any](f *state.Field[T]) joinStep {
	return func(st *state.State) error { _, err := f.Delete(st); return err }
}

func joinKey(name string, v any) joinStep {
	return func(st *state.State) error { return st.KV().Set(name, v) }
}

func joinDo(steps ...joinStep) joinStep {
	return func(st *state.State) error {
		for _, step := range steps {
			if err := step(st); err != nil {
				return err
			}
		}
		return nil
	}
}

func joinNothing(*state.State) error { return nil }

func TestJoinMergesOverwritesOrConflictsPerField(t *testing.T) {
	both := map[string]any{"plain": "base", "list": []string{"base"}, "sum": 1, "key": 1, "first": "base", "last": "base", "spy": "base"}
	for _, tt := range []struct {
		name         string
		base         map[string]any
		parent, a, b joinStep
		conflict     []string       // or else
		want         map[string]any // these values; nil: unset
	}{
		// All merge: replayed through the handlers on the parent's value.
		{"lists append in argument order", both, joinSet(joinList, []string{"p"}), joinSet(joinList, []string{"a"}), joinSet(joinList, []string{"b"}), nil, map[string]any{"list": []string{"base", "p", "a", "b"}}},
		{"sums add up", both, joinSet(joinSum, 10), joinSet(joinSum, 100), joinDo(joinSet(joinSum, 1000), joinSet(joinSum, 2000)), nil, map[string]any{"sum": 3111}},
		{"an own handler runs again", both, joinSet(joinSpy, "p"), joinSet(joinSpy, "a"), joinDo(joinSet(joinSpy, "b"), joinSet(joinSpy, "c")), nil, map[string]any{"spy": "basepabc"}},
		{"the handler of SetWith is kept", both, joinSet(joinList, []string{"x"}), func(st *state.State) error {
			return joinList.SetWith(st, []string{"x", "y"}, state.Union[[]string]())
		}, joinNothing, nil, map[string]any{"list": []string{"base", "x", "y"}}},
		{"different fields do not meet", both, joinReplace(joinPlain, "p"), joinReplace(joinSum, 7), joinDelete(joinList), nil, map[string]any{"plain": "p", "sum": 7, "list": nil}},
		{"a deletion alone stands", both, joinNothing, joinNothing, joinDelete(joinPlain), nil, map[string]any{"plain": nil}},
		{"merges after an overwrite are the overwrite", both, joinNothing, joinDo(joinReplace(joinSum, 5), joinSet(joinSum, 2)), joinNothing, nil, map[string]any{"sum": 7}},

		// An overwrite while another side wrote the field.
		{"set and set", both, joinNothing, joinSet(joinPlain, "a"), joinSet(joinPlain, "b"), []string{"plain"}, nil},
		{"replace and merge", both, joinNothing, joinReplace(joinSum, 5), joinSet(joinSum, 1), []string{"sum"}, nil},
		{"parent replaces, branch merges", both, joinReplace(joinSum, 5), joinSet(joinSum, 1), joinNothing, []string{"sum"}, nil},
		{"delete and set", both, joinNothing, joinDelete(joinList), joinSet(joinList, []string{"b"}), []string{"list"}, nil},
		{"parent deletes and sets again", both, joinDo(joinDelete(joinList), joinSet(joinList, []string{"p"})), joinSet(joinList, []string{"a"}), joinNothing, []string{"list"}, nil},
		{"undeclared keys", both, joinNothing, joinKey("key", 2), joinKey("key", 3), []string{"key"}, nil},
		{"all conflicts, in the schema's order", both, joinDo(joinKey("zz", 1), joinKey("aa", 1), joinReplace(joinSum, 9), joinSet(joinPlain, "p")), joinDo(joinReplace(joinSum, 8), joinKey("aa", 2), joinSet(joinPlain, "a")), joinKey("zz", 3), []string{"plain", "sum", "aa", "zz"}, nil},

		// An echo: the result equals the value at the fork.
		{"an echo of a scalar does not conflict", both, joinNothing, joinSet(joinPlain, "base"), joinSet(joinPlain, "b"), nil, map[string]any{"plain": "b"}},
		{"an echo by Update", both, joinSet(joinSum, 1), joinUpdate(joinSum, 1), joinNothing, nil, map[string]any{"sum": 2}},
		{"an echo by the parent", both, joinDo(joinSet(joinPlain, "x"), joinSet(joinPlain, "base")), joinSet(joinPlain, "a"), joinNothing, nil, map[string]any{"plain": "a"}},
		{"an echo of 1 by another type", both, joinKey("key", 2), joinKey("key", uint8(1)), joinNothing, nil, map[string]any{"key": int64(2)}},
		{"1 and 1.0 are two values", both, joinKey("key", 2), joinKey("key", 1.0), joinNothing, []string{"key"}, nil},

		// All overwrite with equal results.
		{"equal overwrites", both, joinNothing, joinSet(joinPlain, "x"), joinReplace(joinPlain, "x"), nil, map[string]any{"plain": "x"}},
		{"equal overwrites by different ways", both, joinReplace(joinSum, 5), joinDo(joinReplace(joinSum, 2), joinSet(joinSum, 3)), joinNothing, nil, map[string]any{"sum": 5}},
		{"equal undeclared", both, joinNothing, joinKey("key", []string{"a"}), joinKey("key", []any{"a"}), nil, map[string]any{"key": []any{"a"}}},
		{"equal values of a merge and an overwrite", both, joinNothing, joinSet(joinSum, 4), joinReplace(joinSum, 5), []string{"sum"}, nil},

		// Update is never equal: both counted from the same value.
		{"equal Updates", both, joinNothing, joinUpdate(joinSum, 2), joinUpdate(joinSum, 2), []string{"sum"}, nil},
		{"an Update and an equal Replace", both, joinNothing, joinReplace(joinSum, 2), joinUpdate(joinSum, 2), []string{"sum"}, nil},
		{"a Replace after the Update cancels it", both, joinReplace(joinSum, 2), joinDo(joinUpdate(joinSum, 9), joinReplace(joinSum, 2)), joinNothing, nil, map[string]any{"sum": 2}},
		{"a read-modify-write in a transaction", both, joinNothing,
			func(st *state.State) error {
				return st.Update(func(tx *state.State) error { return joinSum.Replace(tx, joinSum.Or(tx, 0)+1) })
			},
			func(st *state.State) error {
				return st.Update(func(tx *state.State) error { return joinSum.Replace(tx, joinSum.Or(tx, 0)+1) })
			}, []string{"sum"}, nil},

		// FirstWins and LastWins.
		{"first wins", nil, joinNothing, joinSet(joinFirst, "a"), joinSet(joinFirst, "b"), nil, map[string]any{"first": "a"}},
		{"last wins", both, joinNothing, joinSet(joinLast, "a"), joinSet(joinLast, "b"), nil, map[string]any{"last": "b"}},
		{"last wins over the parent", both, joinSet(joinLast, "p"), joinSet(joinLast, "a"), joinNothing, nil, map[string]any{"last": "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := ruleNew(t, joinSchema, tt.base)
			a, b := st.Fork(), st.Fork()
			require.NoError(t, tt.parent(st))
			require.NoError(t, tt.a(a))
			require.NoError(t, tt.b(b))
			if tt.conflict != nil {
				beforeA, beforeB := ruleExport(t, a), ruleExport(t, b)
				ruleUnchanged(t, st, func() {
					err := st.Join(a, b)
					var conflict *state.ConflictError
					require.ErrorAs(t, err, &conflict)
					require.ErrorIs(t, err, state.ErrConflict)
					require.Equal(t, tt.conflict, conflict.Fields)
				})
				require.Equal(t, beforeA, ruleExport(t, a))
				require.Equal(t, beforeB, ruleExport(t, b))
				return
			}
			version := st.Version()
			require.NoError(t, st.Join(a, b))
			require.LessOrEqual(t, st.Version(), version+1, "one version")
			for name, want := range tt.want {
				got, ok := st.KV().Get(name)
				require.Equal(t, want != nil, ok, name)
				require.Equal(t, want, got, name)
			}
		})
	}
}

func TestJoinKeepsWhoWrote(t *testing.T) {
	st := state.New(joinSchema)
	a := st.As("ann").Fork()
	require.NoError(t, joinSum.Set(a.WithCause("call_1"), 1))
	require.NoError(t, joinSum.Set(a, 2))
	b := st.Fork()
	require.NoError(t, joinList.Set(b, []string{"b"}))
	require.NoError(t, st.Join(a, b))
	require.ElementsMatch(t, []state.Change{
		{Version: 1, Agent: "ann", Cause: "call_1", Op: state.OpSet, Field: "sum", Value: 1},
		{Version: 1, Agent: "ann", Op: state.OpSet, Field: "sum", Value: 2},
		{Version: 1, Op: state.OpSet, Field: "list", Value: []string{"b"}},
	}, ruleChanges(t, st, 0))
}

func TestABranchJoinsOnceIntoTheStateItWasForkedFrom(t *testing.T) {
	st := state.New(joinSchema)
	a := st.Fork()
	require.NoError(t, joinSum.Set(a, 1))
	require.NoError(t, st.Join(a))
	ruleUnchanged(t, st, func() {
		require.ErrorIs(t, st.Join(a), state.ErrReadOnly)
		require.ErrorIs(t, joinSum.Set(a, 1), state.ErrReadOnly)
		require.ErrorIs(t, a.Patch(map[string]any{"sum": 1}), state.ErrReadOnly)
		require.ErrorIs(t, a.Update(func(*state.State) error { return nil }), state.ErrReadOnly)
	})
	require.Equal(t, 1, joinSum.Or(a, 0), "it can still be read")

	b := st.Fork()
	require.NoError(t, joinSum.Set(b, 1))
	other := state.New(joinSchema)
	grandchild := b.Fork()
	for name, join := range map[string]func() error{
		"twice":                  func() error { return st.Join(b, b) },
		"twice by other handles": func() error { return st.Join(b, b.WithCause("x")) },
		"itself":                 func() error { return st.Join(st) },
		"a stranger":             func() error { return st.Join(other) },
		"a stranger's branch":    func() error { return st.Join(b, other.Fork()) },
		"into a stranger":        func() error { return other.Join(b) },
		"a grandchild":           func() error { return st.Join(grandchild) },
		"the parent":             func() error { return b.Join(st) },
		"a snapshot":             func() error { return st.Join(st.Snapshot()) },
		"a snapshot's fork":      func() error { return st.Join(st.Snapshot().Fork()) },
		"a branch's snapshot":    func() error { return st.Join(b.Snapshot()) },
		"a sibling":              func() error { return st.Fork().Join(b) },
		"nil":                    func() error { return st.Join(nil) },
		"with a joined one":      func() error { return st.Join(b, a) },
	} {
		ruleUnchanged(t, st, func() {
			err := join()
			require.Error(t, err, name)
			require.True(t, strings.HasPrefix(err.Error(), "state: "), "%s: %v", name, err)
		})
	}
	require.NoError(t, joinSum.Set(b, 1), "a failed Join leaves the branch usable")
	require.NoError(t, st.Join(b))
	require.Equal(t, 3, joinSum.Or(st, 0))
	require.NoError(t, st.Join(), "nothing")
}

func TestJoinChecksLimitsAndValidation(t *testing.T) {
	odd := &state.Field[int]{Name: "odd", Handler: state.Sum[int](), Validate: func(n int) error {
		if n%2 == 0 {
			return errRuleEven
		}
		return nil
	}}
	short := &state.Field[[]string]{Name: "short", MaxBytes: 20}
	st := state.New(state.MustSchema(odd, short, state.AllowUndeclared, state.Limits{Keys: 3}))
	for name, write := range map[string]struct {
		write joinStep
		want  error
	}{
		"validation": {joinSet(odd, 1), errRuleEven},
		"MaxBytes":   {joinSet(short, []string{"0123456789"}), state.ErrLimitExceeded},
	} {
		a, b := st.Fork(), st.Fork()
		require.NoError(t, write.write(a))
		require.NoError(t, write.write(b))
		ruleUnchanged(t, st, func() { require.ErrorIs(t, st.Join(a, b), write.want, name) })
	}
	a, b := st.Fork(), st.Fork()
	require.NoError(t, joinDo(joinKey("1", 1), joinKey("2", 1))(a))
	require.NoError(t, joinDo(joinKey("3", 1), joinKey("4", 1))(b))
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.Join(a, b), state.ErrLimitExceeded, "keys") })
	require.NoError(t, st.Join(a))
}

func TestATransactionCommitsAllOrNothingAsOneVersion(t *testing.T) {
	st := ruleNew(t, joinSchema, map[string]any{"sum": 1, "list": []string{"a"}})
	v := st.Version()
	require.NoError(t, st.Update(func(tx *state.State) error {
		require.NoError(t, joinSum.Set(tx, 1))
		require.NoError(t, joinSum.Set(tx, 1))
		require.Equal(t, 3, joinSum.Or(tx, 0), "its own writes")
		require.Equal(t, 1, joinSum.Or(st, 0), "not seen outside")
		require.NoError(t, tx.KV().Set("key", 1))
		return tx.History().Append(ruleResult("1", "a"))
	}))
	require.Equal(t, v+1, st.Version())
	require.Equal(t, 3, joinSum.Or(st, 0))
	failed := errors.New("failed")
	ruleUnchanged(t, st, func() {
		var kept *state.State
		require.Equal(t, failed, st.Update(func(tx *state.State) error {
			kept = tx
			require.NoError(t, joinSum.Set(tx, 1))
			require.NoError(t, tx.History().Append(ruleResult("2", "a")))
			return failed
		}))
		require.ErrorIs(t, joinSum.Set(kept, 1), state.ErrReadOnly, "tx after fn")
		require.PanicsWithValue(t, "mine", func() {
			_ = st.Update(func(tx *state.State) error { kept = tx; _ = joinSum.Set(tx, 1); panic("mine") })
		})
		require.ErrorIs(t, joinSum.Set(kept, 1), state.ErrReadOnly, "also after a panic")
		require.NoError(t, st.Update(func(tx *state.State) error { joinSum.Or(tx, 0); return nil }), "reading only takes no version")
	})
}

func TestTransactionsNestAndJoinTheirForks(t *testing.T) {
	st := ruleNew(t, joinSchema, map[string]any{"spy": "s"})
	var late *state.State
	require.NoError(t, st.Update(func(tx *state.State) error {
		require.NoError(t, joinSpy.Set(tx, "1"))
		require.NoError(t, tx.Update(func(inner *state.State) error { return joinSpy.Set(inner, "2") }))
		failed := errors.New("failed")
		require.Equal(t, failed, tx.Update(func(inner *state.State) error {
			require.NoError(t, joinSpy.Set(inner, "never"))
			return failed
		}))
		a, b := tx.Fork(), tx.Fork()
		require.NoError(t, joinSpy.Set(a, "a"))
		require.NoError(t, joinSpy.Set(b, "b"))
		require.NoError(t, tx.Join(b, a))
		require.Error(t, st.Join(tx), "a transaction is no branch")
		late = tx.Fork()
		return nil
	}))
	require.Equal(t, "s12ba", joinSpy.Or(st, ""))
	require.Equal(t, uint64(2), st.Version())
	require.Error(t, st.Join(late), "tx.Fork joins before fn returns")
}
