package state_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
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
		{"parent deletes and sets again", both, joinDo(joinDelete(joinList), joinSet(joinList, []string{"p"})), joinSet(joinList, []string{"a"}), joinNothing, []string{"list"}, nil},
		{"the handler of SetWith is kept", both, joinSet(joinList, []string{"x"}), func(st *state.State) error {
			return joinList.SetWith(st, []string{"x", "y"}, state.Union[[]string]())
		}, joinNothing, nil, map[string]any{"list": []string{"base", "x", "y"}}},
		{"all conflicts, in the schema's order", both, joinDo(joinKey("zz", 1), joinKey("aa", 1), joinReplace(joinSum, 9), joinSet(joinPlain, "p")), joinDo(joinReplace(joinSum, 8), joinKey("aa", 2), joinSet(joinPlain, "a")), joinKey("zz", 3), []string{"plain", "sum", "aa", "zz"}, nil},
		{"an echo of 1 by another type", both, joinKey("key", 2), joinKey("key", uint8(1)), joinNothing, nil, map[string]any{"key": int64(2)}},
		{"1 and 1.0 are two values", both, joinKey("key", 2), joinKey("key", 1.0), joinNothing, []string{"key"}, nil},
		{"equal undeclared", both, joinNothing, joinKey("key", []string{"a"}), joinKey("key", []any{"a"}), nil, map[string]any{"key": []any{"a"}}},
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
	require.Equal(t, 1, joinSum.GetOr(a, 0), "it can still be read")

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
	require.Equal(t, 3, joinSum.GetOr(st, 0))
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
	require.NoError(t, st.Update(func(tx *state.State) error {
		require.NoError(t, joinSum.Set(tx, 1))
		require.Equal(t, 2, joinSum.GetOr(tx, 0), "its own writes")
		require.Equal(t, 1, joinSum.GetOr(st, 0), "not seen outside")
		return nil
	}))
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
		require.NoError(t, st.Update(func(tx *state.State) error { joinSum.GetOr(tx, 0); return nil }), "reading only takes no version")
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
	require.Equal(t, "s12ba", joinSpy.GetOr(st, ""))
	require.Equal(t, uint64(2), st.Version())
	require.Error(t, st.Join(late), "tx.Fork joins before fn returns")
}

// The model of a join keeps a log of the writes of each branch, and knows
// nothing of versions, cells or journals: a join compares what the logs say.

// joinsField is a field, or anything else that a join merges.
type joinsField struct {
	name      string
	owner     string // the agent that alone may use it; "" if all may
	ephemeral bool
	policy    string // "first" or "last" if the handler says who wins
	read      func(*state.State) any
	write     func(*rand.Rand) joinsWrite
	validate  func(any) error
}

// joinsWrite is one write to a field.
type joinsWrite struct {
	field *joinsField
	text  string
	do    func(*state.State) error
	// apply returns the value after the write. A value that is unset is nil.
	apply                   func(now any) (any, error)
	over, computed, deletes bool
}

// fieldOfJoins returns a declared field with values of one type. merge is what
// its handler does; nil if it replaces.
func fieldOfJoins[T any](f *state.Field[T], value func(*rand.Rand) T, merge func(now T, set bool, v T) (T, error)) (*joinsField, state.Part) {
	jf := &joinsField{name: f.Name, owner: f.Owner, ephemeral: f.Ephemeral}
	if f.Validate != nil {
		jf.validate = func(v any) error { return f.Validate(v.(T)) }
	}
	jf.read = func(st *state.State) any {
		v, err := f.Get(st)
		if err != nil {
			return nil
		}
		return v
	}
	jf.write = func(rng *rand.Rand) joinsWrite {
		v := value(rng)
		w := joinsWrite{field: jf, text: fmt.Sprintf("%s=%v", f.Name, v), over: true, apply: func(any) (any, error) { return v, nil }}
		switch rng.IntN(8) {
		case 0:
			w.text, w.do = "replace "+w.text, func(st *state.State) error { return f.Replace(st, v) }
		case 1:
			w.text, w.computed = "update "+w.text, true
			w.do = func(st *state.State) error { return f.Update(st, func(T) (T, error) { return v, nil }) }
		case 2:
			w.text, w.deletes = "delete "+f.Name, true
			w.do = func(st *state.State) error { _, err := f.Delete(st); return err }
			w.apply = func(any) (any, error) { return nil, nil }
		case 3:
			w.text, w.do = "set with replace "+w.text, func(st *state.State) error { return f.SetWith(st, v, state.Replace[T]()) }
		default:
			w.text, w.do = "set "+w.text, func(st *state.State) error { return f.Set(st, v) }
			if merge == nil {
				break
			}
			w.over, w.apply = false, func(now any) (any, error) {
				before, set := now.(T)
				return merge(before, set, v)
			}
		}
		return w
	}
	if f.Owner == "" && f.Name != state.Messages.Name {
		f.Read, f.Write = state.Public, state.Public
	}
	return jf, f
}

type (
	joinsPoint  struct{ X, Y int }
	joinsClient struct{ call func() } // which only a reference can be
)

var errJoins = errors.New("refused by a handler or a validation")

// joinsOf is a schema with a field for each kind of handler, type and right.
func joinsOf() (*state.Schema, []*joinsField) {
	var fields []*joinsField
	parts := []state.Part{state.Team{"a": nil, "b": nil}, state.AllowUndeclared}
	add := func(f *joinsField, part state.Part) *joinsField {
		fields = append(fields, f)
		if part != nil && part != state.Part(state.Messages) {
			parts = append(parts, part)
		}
		return f
	}
	word := func(rng *rand.Rand) string { return string(rune('a' + rng.IntN(4))) }
	words := func(rng *rand.Rand) []string {
		list := make([]string, rng.IntN(3))
		for i := range list {
			list[i] = word(rng)
		}
		return list
	}
	small := func(rng *rand.Rand) int { return rng.IntN(5) - 1 }
	counts := func(rng *rand.Rand) map[string]int {
		return map[string]int{word(rng): small(rng), word(rng): small(rng)}
	}
	point := func(rng *rand.Rand) *joinsPoint { return &joinsPoint{small(rng), 1} }
	appended := func(now []string, _ bool, v []string) ([]string, error) { return slices.Concat(now, v), nil }
	sum := func(now int, _ bool, v int) (int, error) { return now + v, nil }
	merged := func(add bool) func(now map[string]int, _ bool, v map[string]int) (map[string]int, error) {
		return func(now map[string]int, _ bool, v map[string]int) (map[string]int, error) {
			all := maps.Clone(now)
			if all == nil {
				all = map[string]int{}
			}
			for k, n := range v {
				if add {
					n += all[k]
				}
				all[k] = n
			}
			return all, nil
		}
	}
	glued := func(now string, _ bool, v string) (string, error) {
		if strings.HasSuffix(now, v) {
			return "", errJoins
		}
		return now + v, nil
	}
	atMost := func(n int) error {
		if n > 4 {
			return errJoins
		}
		return nil
	}

	add(fieldOfJoins(state.Messages, func(rng *rand.Rand) []state.Message { return []state.Message{state.UserText(word(rng))} },
		func(now []state.Message, _ bool, v []state.Message) ([]state.Message, error) {
			return slices.Concat(now, v), nil
		}))
	add(fieldOfJoins(&state.Field[string]{Name: "text"}, word, nil))
	add(fieldOfJoins(&state.Field[[]string]{Name: "log"}, words, appended))
	add(fieldOfJoins(&state.Field[int]{Name: "total", Handler: state.Sum[int]()}, small, sum))
	add(fieldOfJoins(&state.Field[int]{Name: "checked", Handler: state.Sum[int](), Validate: atMost}, small, sum))
	add(fieldOfJoins(&state.Field[int]{Name: "highest", Handler: state.Max[int]()}, small, func(now int, set bool, v int) (int, error) {
		if set {
			v = max(now, v)
		}
		return v, nil
	}))
	add(fieldOfJoins(&state.Field[[]string]{Name: "recent", Handler: state.KeepLast[[]string](3)}, words,
		func(now []string, _ bool, v []string) ([]string, error) {
			all := slices.Concat(now, v)
			return all[max(0, len(all)-3):], nil
		}))
	add(fieldOfJoins(&state.Field[[]string]{Name: "tags", Handler: state.Union[[]string]()}, words,
		func(now []string, _ bool, v []string) (all []string, _ error) {
			for _, s := range slices.Concat(now, v) {
				if !slices.Contains(all, s) {
					all = append(all, s)
				}
			}
			return all, nil
		}))
	add(fieldOfJoins(&state.Field[map[string]int]{Name: "labels", Handler: state.MergeMap[map[string]int]()}, counts, merged(false)))
	add(fieldOfJoins(&state.Field[map[string]int]{Name: "counts", Handler: state.MergeMap[map[string]int](state.Sum[int]())}, counts, merged(true)))
	add(fieldOfJoins(&state.Field[string]{Name: "own", Handler: state.NewHandler("glue", glued)}, word, glued))
	add(fieldOfJoins(&state.Field[string]{Name: "first", Handler: state.FirstWins[string]()}, word, func(now string, set bool, v string) (string, error) {
		if set {
			v = now
		}
		return v, nil
	})).policy = "first"
	add(fieldOfJoins(&state.Field[string]{Name: "last", Handler: state.LastWins[string]()}, word,
		func(_ string, _ bool, v string) (string, error) { return v, nil })).policy = "last"
	add(fieldOfJoins(&state.Field[*joinsPoint]{Name: "point"}, point, nil))
	add(fieldOfJoins(&state.Field[any]{Name: "free"}, func(rng *rand.Rand) any { return []any{"x", int64(1), 1.0, true}[rng.IntN(4)] }, nil))
	add(fieldOfJoins(&state.Field[string]{Name: "secret", Secret: true}, word, nil))
	add(fieldOfJoins(&state.Field[[]string]{Name: "scrap", Ephemeral: true}, words, appended))
	clients := []*joinsClient{{}, {call: func() {}}}
	add(fieldOfJoins(&state.Field[*joinsClient]{Name: "client", Ephemeral: true, NoCopy: true},
		func(rng *rand.Rand) *joinsClient { return clients[rng.IntN(2)] }, nil))
	add(fieldOfJoins(&state.Field[[]string]{Name: "of a", Owner: "a"}, words, appended))
	add(fieldOfJoins(&state.Field[int]{Name: "of b", Owner: "b", Handler: state.Sum[int]()}, small, sum))
	add(joinsKey("key"), nil)
	add(joinsResults(), nil)
	return state.MustSchema(parts...), fields
}

// joinsKey is an undeclared key.
func joinsKey(name string) *joinsField {
	f := &joinsField{name: name}
	f.read = func(st *state.State) any { v, _ := st.KV().Get(name); return v }
	f.write = func(rng *rand.Rand) joinsWrite {
		v := int64(rng.IntN(3))
		w := joinsWrite{field: f, text: fmt.Sprint("key=", v), over: true, apply: func(any) (any, error) { return v, nil }}
		w.do = func(st *state.State) error { return st.KV().Set(name, v) }
		switch rng.IntN(3) {
		case 0:
			w.text, w.deletes = "delete key", true
			w.do = func(st *state.State) error { _, err := st.KV().Delete(name); return err }
			w.apply = func(any) (any, error) { return nil, nil }
		case 1:
			w.text, w.over = fmt.Sprint("add to key ", v), false
			w.do = func(st *state.State) error { return st.KV().SetWith(name, v, state.Sum[int64]()) }
			w.apply = func(now any) (any, error) { n, _ := now.(int64); return n + v, nil }
		}
		return w
	}
	return f
}

// joinsResults are the results of the history, by their ids.
func joinsResults() *joinsField {
	f := &joinsField{name: "history"}
	f.read = func(st *state.State) any {
		var ids []string
		for _, r := range st.History().Results() {
			ids = append(ids, r.ID)
		}
		if ids == nil {
			return nil
		}
		return ids
	}
	f.write = func(rng *rand.Rand) joinsWrite {
		id := fmt.Sprint(rng.IntN(1000))
		return joinsWrite{field: f, text: "push " + id,
			do: func(st *state.State) error {
				return st.History().AppendOutside(state.InferenceResult{ID: id, Agent: st.Agent()})
			},
			apply: func(now any) (any, error) {
				ids, _ := now.([]string)
				return slices.Concat(ids, []string{id}), nil
			},
		}
	}
	return f
}

// joinsBranch is a state or a branch, and what the model knows of it.
type joinsBranch struct {
	st      *state.State
	agent   string         // of the handle
	opened  string         // the agent of the handle that was forked
	given   map[string]any // to With
	parent  *joinsBranch
	joined  bool
	base    map[*joinsField]any // at the fork
	now     map[*joinsField]any
	log     map[*joinsField][]joinsVersion
	at      map[*joinsField]int // the length of the parent's log at the fork
	version uint64
}

// joinsVersion is what one version did to a field: a write, or a join.
type joinsVersion struct {
	writes                  []joinsWrite
	over, computed, deletes bool
}

func (b *joinsBranch) fork(st *state.State) *joinsBranch {
	at := map[*joinsField]int{}
	for f, log := range b.log {
		at[f] = len(log)
	}
	return &joinsBranch{
		st: st, agent: b.agent, opened: b.agent, given: b.given, parent: b,
		base: maps.Clone(b.now), now: maps.Clone(b.now), log: map[*joinsField][]joinsVersion{}, at: at, version: b.version,
	}
}

// reads reports whether the handle may read a field.
func (b *joinsBranch) reads(f *joinsField) bool {
	return f.owner == "" || b.agent == "" || b.agent == f.owner
}

// add adds what one version did to some fields.
func (b *joinsBranch) add(versions map[*joinsField]joinsVersion) {
	for f, version := range versions {
		b.log[f] = append(b.log[f], version)
	}
	if len(versions) > 0 {
		b.version++
	}
}

// do returns the content after writes that are one version, or the error.
func (b *joinsBranch) do(writes []joinsWrite) (now map[*joinsField]any, err error) {
	now = maps.Clone(b.now)
	for _, w := range writes {
		switch _, given := b.given[w.field.name]; {
		case !b.reads(w.field):
			return nil, state.ErrDenied
		case given:
			return nil, state.ErrReadOnly
		case b.joined:
			return nil, state.ErrReadOnly
		}
		if now[w.field], err = w.apply(now[w.field]); err != nil {
			return nil, state.ErrRefused
		}
		if v := now[w.field]; v != nil && w.field.validate != nil && w.field.validate(v) != nil {
			return nil, state.ErrRefused
		}
	}
	return now, nil
}

// note notes that writes were made. In a transaction, all that overwrite are
// computed.
func (b *joinsBranch) note(now map[*joinsField]any, writes []joinsWrite, transaction bool) {
	versions := map[*joinsField]joinsVersion{}
	for _, w := range writes {
		if w.deletes && b.now[w.field] == nil {
			continue // there was nothing to delete
		}
		versions[w.field] = joinsVersion{[]joinsWrite{w}, w.over, w.over && (w.computed || transaction), w.deletes}
	}
	b.now = now
	b.add(versions)
}

// joinsSide is what the parent or a branch has done to a field.
type joinsSide struct {
	value          any
	over, computed bool
}

// sideOf returns what a log says of a field, which has no part if it is not
// written, or overwritten and left as it was found.
func sideOf(base, now any, log []joinsVersion) (side joinsSide, part bool) {
	side.value = now
	for _, v := range log {
		if v.over {
			side.over, side.computed = true, v.computed
		}
	}
	return side, len(log) > 0 && !(side.over && joinsSame(base, now))
}

// since returns what was done to a field of b since a branch was forked from it.
// If the field was unset meanwhile, what was before is forgotten: a field that
// was set at the fork was overwritten, and one that was not is as it was.
func (b *joinsBranch) since(f *joinsField, fork *joinsBranch) (side joinsSide, part bool) {
	log := b.log[f][fork.at[f]:]
	last := -1
	for i, v := range log {
		if v.deletes {
			last = i
		}
	}
	side, part = sideOf(fork.base[f], b.now[f], log[last+1:])
	if last >= 0 && fork.base[f] != nil {
		side.over, part = true, !joinsSame(fork.base[f], b.now[f])
	}
	return side, part
}

// join joins branches, or changes nothing and returns the error.
func (b *joinsBranch) join(as string, branches []*joinsBranch, fields []*joinsField) error {
	for i, branch := range branches {
		switch {
		case branch.parent != b:
			return state.ErrInvalid
		case as != "" && branch.opened != as:
			return state.ErrDenied
		case slices.Contains(branches[:i], branch):
			return state.ErrInvalid
		}
	}
	for _, branch := range branches {
		if branch.joined {
			return state.ErrReadOnly
		}
	}
	now, versions := maps.Clone(b.now), map[*joinsField]joinsVersion{}
	var conflicts []string
	for _, f := range fields {
		value, version, err := b.joinField(f, branches)
		switch {
		case err == state.ErrConflict:
			conflicts = append(conflicts, f.name)
		case err != nil:
			return err
		case len(version.writes) > 0:
			now[f], versions[f] = value, version
		}
	}
	if len(conflicts) > 0 {
		return &state.ConflictError{Fields: conflicts}
	}
	b.now = now
	b.add(versions)
	for _, branch := range branches {
		branch.joined = true
	}
	return nil
}

func (b *joinsBranch) joinField(f *joinsField, branches []*joinsBranch) (value any, version joinsVersion, err error) {
	var sides []joinsSide
	parent, wrote := joinsSide{value: b.now[f]}, false
	for _, branch := range branches {
		side, part := sideOf(branch.base[f], branch.now[f], branch.log[f])
		if !part {
			continue
		}
		sides = append(sides, side)
		for _, v := range branch.log[f] {
			version.writes = append(version.writes, v.writes...)
			version.over = version.over || v.over
		}
		if mine, part := b.since(f, branch); part {
			wrote, parent.over, parent.computed = true, parent.over || mine.over, parent.computed || mine.computed
		}
	}
	if wrote {
		sides = slices.Insert(sides, 0, parent)
	}
	over := func(s joinsSide) bool { return s.over }
	differs := func(s joinsSide) bool { return !s.over || s.computed || !joinsSame(s.value, sides[0].value) }
	switch {
	case !slices.ContainsFunc(sides, over): // done again, one after the other
		value = b.now[f]
		for _, w := range version.writes {
			if value, err = w.apply(value); err != nil {
				return nil, version, state.ErrRefused
			}
		}
		if value != nil && f.validate != nil && f.validate(value) != nil {
			err = state.ErrRefused
		}
		return value, version, err
	case len(sides) > 1 && f.policy == "last":
		sides = sides[len(sides)-1:]
	case len(sides) > 1 && f.policy == "" && slices.ContainsFunc(sides, differs):
		return nil, version, state.ErrConflict
	}
	version.computed, version.deletes = version.over && sides[0].computed, sides[0].value == nil
	return sides[0].value, version, nil
}

// joinsSame reports whether two values are equal. Nil and empty lists are.
func joinsSame(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() || x.Type() != y.Type() {
		return x.IsValid() == y.IsValid() && !x.IsValid()
	}
	if x.Kind() == reflect.Slice && x.Len() == 0 && y.Len() == 0 {
		return true
	}
	if client, ok := a.(*joinsClient); ok {
		return client == b
	}
	return reflect.DeepEqual(a, b)
}

// The test below proves that Join does what its doc says, for random
// trees of branches. They are compared with the model above.

func TestJoinsOfRandomBranches(t *testing.T) {
	seed := effort.LogSeed(t)
	joined, refused := 0, map[error]int{}
	for i := range effort.Runs(500) {
		p := &joinsProgram{t: t, rng: rand.New(rand.NewPCG(seed, uint64(i))), refused: refused}
		p.run()
		joined += p.joined
		if t.Failed() {
			t.Fatalf("program %d:\n%s", i, strings.Join(p.steps, "\n"))
		}
	}
	t.Logf("%d branches were joined; errors: %v", joined, refused)
	for _, err := range []error{state.ErrConflict, state.ErrRefused, state.ErrDenied, state.ErrReadOnly, state.ErrInvalid} {
		require.NotZero(t, refused[err], err)
	}
}

// joinsProgram is a random program on a tree of branches.
type joinsProgram struct {
	t        *testing.T
	rng      *rand.Rand
	fields   []*joinsField
	branches []*joinsBranch
	steps    []string
	joined   int
	refused  map[error]int
}

func (p *joinsProgram) run() {
	schema, fields := joinsOf()
	p.fields = fields
	root := &joinsBranch{st: state.New(schema), now: map[*joinsField]any{}, log: map[*joinsField][]joinsVersion{}}
	p.branches = []*joinsBranch{root}
	for range 6 {
		p.write(root)
	}
	for range 10 + p.rng.IntN(40) {
		b := p.branches[p.rng.IntN(len(p.branches))]
		switch p.rng.IntN(10) {
		case 0, 1, 2:
			p.fork(b)
		case 3, 4:
			p.join(b)
		default:
			p.write(b)
		}
		if p.t.Failed() {
			return
		}
	}
	for _, b := range slices.Backward(p.branches) { // all that is left, from the leaves
		p.join(b)
	}
}

func (p *joinsProgram) step(format string, args ...any) {
	p.steps = append(p.steps, fmt.Sprintf(format, args...))
}

func (p *joinsProgram) index(b *joinsBranch) int { return slices.Index(p.branches, b) }

func (p *joinsProgram) fork(b *joinsBranch) {
	st, agent := b.st, b.agent
	if agent == "" && p.rng.IntN(3) == 0 {
		agent = []string{"a", "b"}[p.rng.IntN(2)]
		st = st.As(agent)
	}
	var given map[string]any
	if p.rng.IntN(6) == 0 {
		given = map[string]any{"text": "given", "total": 99}
		var err error
		st, err = st.With(given)
		require.NoError(p.t, err)
	}
	child := b.fork(st.Fork())
	child.agent, child.opened = agent, agent
	if given != nil {
		child.given = given
	}
	if agent == "" && p.rng.IntN(4) == 0 { // narrowed after the fork
		child.agent = []string{"a", "b"}[p.rng.IntN(2)]
		child.st = child.st.As(child.agent)
	}
	p.branches = append(p.branches, child)
	p.step("%d: fork of %d, opened by %q, agent %q, given %v", len(p.branches)-1, p.index(b), child.opened, child.agent, child.given)
}

// write makes some writes, alone or in a transaction.
func (p *joinsProgram) write(b *joinsBranch) {
	writes := []joinsWrite{p.fields[p.rng.IntN(len(p.fields))].write(p.rng)}
	transaction := p.rng.IntN(6) == 0
	if b.joined { // a handler could refuse it first
		writes[0], transaction = p.fields[1].write(p.rng), false
	}
	if transaction {
		for _, i := range p.rng.Perm(len(p.fields))[:p.rng.IntN(3)] {
			if f := p.fields[i]; f != writes[0].field {
				writes = append(writes, f.write(p.rng))
			}
		}
	}
	do := func(st *state.State) error {
		for _, w := range writes {
			if err := w.do(st); err != nil {
				return err
			}
		}
		return nil
	}
	if !b.joined && p.rng.IntN(20) == 0 { // all ephemeral fields at once
		writes, transaction, do = nil, false, (*state.State).EndRun
		for _, f := range p.fields {
			if f.ephemeral {
				writes = append(writes, joinsWrite{field: f, text: "end run", over: true, deletes: true,
					apply: func(any) (any, error) { return nil, nil }})
			}
		}
	}
	var texts []string
	for _, w := range writes {
		texts = append(texts, w.text)
	}
	p.step("%d: %s, transaction: %v", p.index(b), strings.Join(texts, ", "), transaction)
	now, want := b.do(writes)
	var err error
	if transaction {
		err = b.st.Update(do)
	} else {
		err = do(b.st)
	}
	if p.agree(want, err); want == nil {
		b.note(now, writes, transaction)
	}
	p.compare(b)
}

// join joins some of the branches of b in some order, and sometimes others.
func (p *joinsProgram) join(b *joinsBranch) {
	if b.joined {
		return
	}
	var sides []*joinsBranch
	for _, i := range p.rng.Perm(len(p.branches)) {
		side := p.branches[i]
		if side.parent == b && (!side.joined || p.rng.IntN(20) == 0) && p.rng.IntN(4) > 0 {
			sides = append(sides, side)
		}
	}
	if p.rng.IntN(20) == 0 {
		sides = append(sides, p.branches[p.rng.IntN(len(p.branches))])
	}
	st, as := b.st, b.agent
	if as == "" && p.rng.IntN(6) == 0 {
		as = []string{"a", "b"}[p.rng.IntN(2)]
		st = st.As(as)
	}
	var handles []*state.State
	var numbers []int
	for _, side := range sides {
		handles, numbers = append(handles, side.st), append(numbers, p.index(side))
	}
	p.step("%d: join %v as %q", p.index(b), numbers, as)
	want := b.join(as, sides, p.fields)
	err := st.Join(handles...)
	if p.agree(want, err); err == nil {
		p.joined += len(sides)
	}
	p.compare(b)
	for _, side := range sides {
		p.compare(side)
	}
}

// agree compares an error with that of the model.
func (p *joinsProgram) agree(want, got error) {
	var conflict, wanted *state.ConflictError
	if errors.As(want, &wanted) {
		if errors.As(got, &conflict) {
			require.ElementsMatch(p.t, wanted.Fields, conflict.Fields, p.steps)
		}
		want = state.ErrConflict
	}
	if !errors.Is(got, want) {
		p.t.Errorf("the error is %v, want %v", got, want)
	}
	p.refused[want]++
}

// compare compares what the handle of a branch may read with the model.
func (p *joinsProgram) compare(b *joinsBranch) {
	set := 0
	for _, f := range p.fields {
		if !b.reads(f) {
			continue
		}
		want, got := b.now[f], f.read(b.st)
		if want != nil && f.name != "history" {
			set++
		}
		if v, given := b.given[f.name]; given {
			want = v
		}
		if !joinsSame(want, got) {
			p.t.Errorf("%d has %s = %v, want %v", p.index(b), f.name, got, want)
		}
	}
	if got := b.st.KV().Len(); got != set && b.given == nil {
		p.t.Errorf("%d has %d fields, want %d", p.index(b), got, set)
	}
	if got := b.st.Version(); got != b.version {
		p.t.Errorf("%d has version %d, want %d", p.index(b), got, b.version)
	}
}

// The test below proves that transactions are serialisable, whatever they
// do with forks. Of two random transactions one runs while the other is under
// way. What they read and leave must be as if one had come after the other.

var (
	serialX     = &state.Field[int]{Name: "x"}
	serialY     = &state.Field[int]{Name: "y"}
	serialSum   = &state.Field[int]{Name: "sum", Handler: state.Sum[int]()}
	serialFirst = &state.Field[int]{Name: "first", Handler: state.FirstWins[int]()}
	serialLast  = &state.Field[int]{Name: "last", Handler: state.LastWins[int]()}
	serialList  = &state.Field[[]int]{Name: "list"}
	serialOwn   = &state.Field[int]{Name: "own", Handler: state.NewHandler("own", func(a int, _ bool, b int) (int, error) { return (2*a + b) % 7, nil })}
	serialInts  = []*state.Field[int]{serialX, serialX, serialY, serialY, serialSum, serialFirst, serialLast, serialOwn}
	serialState = state.MustSchema(serialX, serialY, serialSum, serialFirst, serialLast, serialList, serialOwn, state.AllowUndeclared)
)

// serialStep is one step of a transaction: on the transaction, or on one of the
// forks that it has made.
type serialStep struct {
	kind, on, field, value int
	derived                bool // the value depends on what was read before
	inner                  []serialStep
}

const serialKinds = 18

// serialPalette is what the steps of one program have to do with. With few
// kinds and fields they meet more often.
type serialPalette struct{ kinds, fields []int }

func serialPick(rng *rand.Rand) serialPalette {
	p := serialPalette{rng.Perm(serialKinds)[:3+rng.IntN(6)], rng.Perm(len(serialInts))[:1+rng.IntN(3)]}
	if rng.IntN(2) == 0 {
		p.kinds = []int{0, 4, 2 + rng.IntN(6)} // reads, overwrites and one more
	}
	return p
}

func (p serialPalette) draw(rng *rand.Rand, n, depth int) []serialStep {
	steps := make([]serialStep, n)
	for i := range steps {
		steps[i] = serialStep{
			kind: p.kinds[rng.IntN(len(p.kinds))], on: rng.IntN(4), field: p.fields[rng.IntN(len(p.fields))],
			value: rng.IntN(3), derived: rng.IntN(3) == 0,
		}
		switch rng.IntN(6) {
		case 0:
			steps[i].kind = 13 // fork
		case 1:
			steps[i].kind = 15 // join
		}
		if steps[i].kind == serialKinds-1 && depth > 0 {
			steps[i].inner = p.draw(rng, 1+rng.IntN(4), depth-1)
		}
	}
	return steps
}

// serialRun does the steps, calls between before one of them, and returns what
// was read.
func serialRun(tx *state.State, steps []serialStep, between func(i int)) string {
	handles := []*state.State{tx}
	seen := ""
	read := func(v ...any) { seen += fmt.Sprintln(v...) }
	for i, step := range steps {
		between(i)
		st, f, v := handles[step.on%len(handles)], serialInts[step.field], step.value
		if step.derived { // from all that was read
			v = int(crc32.ChecksumIEEE([]byte(seen)) % 3)
		}
		var err error
		switch step.kind {
		case 0, 1:
			read(f.GetOr(st, -1))
		case 2, 3:
			err = f.Set(st, v)
		case 4, 5:
			err = f.Replace(st, v)
		case 6:
			err = f.Update(st, func(n int) (int, error) { return n + v, nil })
		case 7:
			_, err = f.Delete(st)
		case 8:
			err = serialList.Set(st, []int{v})
		case 9:
			read(state.ListLen(st, serialList))
		case 10:
			err = st.KV().Set("k", v)
		case 11:
			read(st.KV().Len())
		case 12:
			read(st.Version())
		case 13, 14:
			handles = append(handles, st.Fork())
		case 15:
			read(errors.Is(tx.Join(handles[1+step.value%max(1, len(handles)-1):]...), state.ErrConflict))
		case 16:
			if v == 0 {
				_, _, err = st.History().Pop()
			} else {
				err = st.History().Append(state.InferenceResult{Input: fmt.Sprint(v)})
			}
		case 17:
			err = st.Update(func(inner *state.State) error {
				seen += serialRun(inner, step.inner, func(int) {})
				return nil
			})
		}
		if err != nil {
			read(errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrReadOnly))
		}
	}
	return seen
}

func TestTransactionsWithForksAreSerialisable(t *testing.T) {
	base := effort.Seed(0)
	for i := range uint64(effort.Runs(500)) {
		rng := rand.New(rand.NewPCG(base+i, 7))
		p := serialPick(rng)
		begin, one, two := p.draw(rng, 6, 0), p.draw(rng, 2+rng.IntN(10), 1), p.draw(rng, 1+rng.IntN(6), 1)
		at := rng.IntN(len(one))
		do := func(st *state.State, steps []serialStep, between func(int)) (seen string) {
			require.NoError(t, st.Update(func(tx *state.State) error {
				seen = serialRun(tx, steps, between)
				return nil
			}))
			return seen
		}
		nothing := func(int) {}
		outcome := func(st *state.State, one, two string) string {
			inputs := []string{}
			for _, r := range st.History().All() {
				inputs = append(inputs, r.Input)
			}
			return fmt.Sprint(st.KV().All(), inputs, "\nfirst:\n", one, "second:\n", two)
		}
		start := func() *state.State {
			st := state.New(serialState)
			do(st, begin, nothing)
			return st
		}
		st, second, ran := start(), "", false
		first := do(st, one, func(i int) {
			if i == at && !ran {
				ran = true
				second = do(st, two, nothing)
			}
		})
		got := outcome(st, first, second)
		st = start()
		first = do(st, one, nothing)
		oneTwo := outcome(st, first, do(st, two, nothing))
		st = start()
		second = do(st, two, nothing)
		twoOne := outcome(st, do(st, one, nothing), second)
		if got != oneTwo && got != twoOne {
			require.Failf(t, "not serialisable", "program %d, second before step %d of first\nfirst %+v\nsecond %+v\n%s\none by one\n%s\nor\n%s",
				base+i, at, one, two, got, oneTwo, twoOne)
		}
	}
}

// An echo in a fork is dropped by the join: that it is one was read.
func TestAnEchoInAForkIsARead(t *testing.T) {
	st := state.New(serialState)
	require.NoError(t, st.Patch(map[string]any{"x": 5, "y": 0}))
	first := true
	require.NoError(t, st.Update(func(tx *state.State) error { // x = 5, y = 1
		f := tx.Fork()
		require.NoError(t, errors.Join(serialX.Replace(f, 5), serialY.Replace(f, 1), tx.Join(f)))
		if first {
			first = false
			return st.Update(func(other *state.State) error { // if y == 0 then x = 6
				if serialY.GetOr(other, -1) == 0 {
					return serialX.Set(other, 6)
				}
				return nil
			})
		}
		return nil
	}))
	require.Equal(t, 5, serialX.GetOr(st, 0))
	require.Equal(t, 1, serialY.GetOr(st, 0))
}
