package state_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// The tests of this file prove the rules of the journal: what a Change contains,
// what Changes, Watch and At return and for how long, that its memory is bounded,
// and that Revert adds a version.

func TestAChangeHoldsTheUpdateNotTheResult(t *testing.T) {
	st := ruleNew(t, ruleOpen, map[string]any{"text": "a", "tags": []string{"x"}, "key": 1})
	v := st.Version()
	for _, tt := range []struct {
		write func() error
		want  []state.Change
	}{
		{func() error { return ruleTags.Set(st, []string{"y"}) }, []state.Change{{Op: state.OpSet, Field: "tags", Value: []string{"y"}}}},
		{func() error { return st.KV().Set("tags", "z") }, []state.Change{{Op: state.OpSet, Field: "tags", Value: []string{"z"}}}},
		{func() error { return ruleTags.Replace(st, []string{"w"}) }, []state.Change{{Op: state.OpReplace, Field: "tags", Value: []string{"w"}}}},
		{func() error {
			return ruleTags.Update(st, func(s []string) ([]string, error) { return append(s, "u"), nil })
		}, []state.Change{{Op: state.OpUpdate, Field: "tags", Value: []string{"w", "u"}}}},
		{func() error { return ruleTags.SetWith(st, []string{"u", "n"}, state.Union[[]string]()) }, []state.Change{{Op: state.OpSet, Field: "tags", Value: []string{"u", "n"}}}},
		{func() error { return ruleTags.Set(st, nil) }, []state.Change{{Op: state.OpSet, Field: "tags", Value: []string{}}}},
		{func() error { return st.Patch(map[string]any{"key": nil, "text": "b", "count": 3.0}) }, []state.Change{
			{Op: state.OpReplace, Field: "text", Value: "b"}, {Op: state.OpReplace, Field: "count", Value: 3}, {Op: state.OpDelete, Field: "key"},
		}},
		{func() error { return ruleDeleteOnly(ruleText, st) }, []state.Change{{Op: state.OpDelete, Field: "text"}}},
		{func() error { return st.As("a").WithCause("c").KV().Set("key", []int{1}) }, []state.Change{{Agent: "a", Cause: "c", Op: state.OpSet, Field: "key", Value: []any{int64(1)}}}},
		{func() error { return st.History().Append(ruleResult("1", "a")) }, []state.Change{
			{Op: state.OpAppend, Value: ruleResult("1", "a")},
			{Op: state.OpSet, Field: "messages", Value: []state.Message{state.AssistantText("I look"), state.ToolCalls(ruleCall), state.ToolResult(ruleCall, `["found"]`)}},
		}},
		{func() error { _, _, err := st.History().Pop(); return err }, []state.Change{{Op: state.OpPop, Value: ruleResult("1", "a")}}},
		{func() error { return st.History().Reset([]state.InferenceResult{ruleResult("2", "a")}) }, []state.Change{{Op: state.OpReset, Value: []state.InferenceResult{ruleResult("2", "a")}}}},
	} {
		require.NoError(t, tt.write())
		v++
		for i := range tt.want {
			tt.want[i].Version = v
		}
		require.ElementsMatch(t, tt.want, ruleChanges(t, st, v-1))
	}
	require.Len(t, ruleChanges(t, st, v), 0)
	require.Len(t, ruleChanges(t, st, v+99), 0)
	n := 0
	for range st.Changes(0) {
		n++
		break
	}
	require.Equal(t, 1, n)
}

func ruleDeleteOnly[T any](f *state.Field[T], st *state.State) error {
	_, err := f.Delete(st)
	return err
}

func TestChangesAreAsOfTheCallAndHoldNoLock(t *testing.T) {
	st := ruleNew(t, ruleSchema, map[string]any{"text": "a", "count": 1})
	n := 0
	for _, err := range st.Changes(0) {
		require.NoError(t, err)
		require.NoError(t, ruleCost.Set(st, 1))
		n++
	}
	require.Equal(t, 2, n)
	require.Equal(t, uint64(3), st.Version())
}

// The records of a version stay together, however many there are.
func TestJournalOfPatchesIsBoundedByCount(t *testing.T) {
	for fields := 1; fields <= 5; fields++ {
		st := state.New(state.MustSchema(state.AllowUndeclared, state.Limits{Journal: 16}))
		for i := range 4000 {
			values := map[string]any{}
			for j := range 1 + i%fields {
				values[fmt.Sprint(j)] = i
			}
			require.NoError(t, st.Patch(values))
		}
		held := 0
		for _, err := st.At(st.Version()); err == nil; _, err = st.At(st.Version() - uint64(held)) {
			held++
		}
		require.Less(t, held, 100, "up to %d fields at once", fields)
	}
}

func TestJournalIsBoundedByCount(t *testing.T) {
	st := state.New(state.MustSchema(ruleCount, state.Limits{Journal: 10}))
	for i := range 3000 {
		require.NoError(t, ruleCount.Set(st, i))
	}
	v := st.Version()
	changes := ruleChanges(t, st, v-10)
	require.Len(t, changes, 10)
	require.Equal(t, 2990, changes[0].Value)
	past, err := st.At(v - 10)
	require.NoError(t, err)
	require.Equal(t, 2989, ruleCount.Or(past, 0))

	n := 0
	for c, err := range st.Changes(0) {
		require.ErrorIs(t, err, state.ErrCompacted, "the only thing yielded")
		require.Zero(t, c)
		n++
	}
	require.Equal(t, 1, n)
	_, err = st.At(0)
	require.ErrorIs(t, err, state.ErrCompacted)
	held := 0
	for ; held < 3000; held++ {
		if _, err := st.At(v - uint64(held)); err != nil {
			break
		}
	}
	require.Less(t, held, 10+300, "not much more than the limit is held")
	for range st.Watch(context.Background(), 0) {
		n++
		break
	}
	require.Equal(t, 2, n)
}

func TestAtIsAFrozenViewOfThePast(t *testing.T) {
	st := state.New(ruleOpen)
	var exports []string
	exports = append(exports, ruleExport(t, st))
	for i, write := range []func() error{
		func() error { return ruleText.Set(st, "a") },
		func() error { return ruleTags.Set(st, []string{"x"}) },
		func() error { return ruleTags.Set(st, []string{"y"}) },
		func() error { return st.Patch(map[string]any{"key": 1, "text": nil}) },
		func() error { return st.History().Append(ruleResult("1", "a")) },
		func() error { return ruleTags.Replace(st, nil) },
		func() error { _, _, err := st.History().Pop(); return err },
		func() error { _, err := st.KV().Delete("key"); return err },
		func() error { _, err := ruleTags.Delete(st); return err },
	} {
		require.NoError(t, write(), "write %d", i)
		exports = append(exports, ruleExport(t, st))
	}
	for v, want := range exports {
		past, err := st.At(uint64(v))
		require.NoError(t, err)
		require.Equal(t, want, ruleExport(t, past), "version %d", v)
		require.Equal(t, uint64(v), past.Version())
		back, err := state.Import(ruleOpen, []byte(want))
		require.NoError(t, err)
		require.Equal(t, back.KV().Keys(), past.KV().Keys())
		require.Equal(t, back.KV().Len(), past.KV().Len())
		require.Equal(t, back.Fields(), past.Fields())
		require.ErrorIs(t, past.KV().Set("key", 1), state.ErrReadOnly)
	}
	_, err := st.At(st.Version() + 1)
	require.ErrorIs(t, err, state.ErrNotFound)
	_, err = st.As("a").At(1)
	require.ErrorIs(t, err, state.ErrDenied)
}

func TestRevertMakesAnOldContentTheNextVersion(t *testing.T) {
	secret := &state.Field[string]{Name: "secret", Secret: true}
	schema := state.MustSchema(ruleText, ruleTags, ruleCount, secret, state.AllowUndeclared)
	st := ruleNew(t, schema, map[string]any{"text": "old", "tags": []string{"x"}, "key": 1, "secret": "first"})
	require.NoError(t, st.History().Append(ruleResult("1", "a")))
	snap := st.Snapshot()
	v := snap.Version()
	require.NoError(t, st.Patch(map[string]any{"text": "new", "count": 2, "key": nil, "other": 1, "secret": "second"}))
	require.NoError(t, ruleTags.Set(st, []string{"y"}))
	require.NoError(t, st.History().Append(ruleResult("2", "a")))
	now := st.Version()
	for name, target := range map[string]func() *state.State{
		"a snapshot": func() *state.State { return snap },
		"At":         func() *state.State { past, err := st.At(v); require.NoError(t, err); return past },
	} {
		before := st.Version()
		require.NoError(t, st.Patch(map[string]any{"text": "newer"}))
		require.NoError(t, st.Revert(target()), name)
		require.Equal(t, before+2, st.Version(), name)
		require.Equal(t, map[string]any{"text": "old", "tags": []string{"x"}, "key": int64(1), "secret": state.Masked{}, "messages": state.Messages.Or(snap, nil)}, st.KV().All(), name)
		require.Equal(t, "second", secret.Or(st, ""), "secrets stay as they are")
		require.Equal(t, "1", ruleIDs(st.History().Results()), name)
	}
	past, err := st.At(now)
	require.NoError(t, err, "nothing is rewritten")
	require.Equal(t, "new", ruleText.Or(past, ""))
	for c := range st.Changes(now) {
		require.NotEqual(t, "secret", c.Field)
	}
	require.NoError(t, ruleTags.Set(st, []string{"z"}), "and it goes on")
	require.Equal(t, []string{"x", "z"}, ruleTags.Or(st, nil))

	team := state.MustSchema(state.Team{"a": nil}, ruleText)
	bound := state.New(team)
	ruleUnchanged(t, st, func() {
		require.Error(t, st.Revert(st), "not to what still changes")
		require.Error(t, st.Revert(state.New(schema).Fork()))
		require.Error(t, st.Revert(state.New(ruleSchema).Snapshot()), "another schema")
		for _, foreign := range []*state.State{nil, {}, state.New(schema).Snapshot(), nilAt(st)} {
			require.ErrorIs(t, st.Revert(foreign), state.ErrInvalid)
		}
		_, err := st.Effects(nil)
		require.ErrorIs(t, err, state.ErrInvalid)
		_, err = st.Effects(&state.State{})
		require.ErrorIs(t, err, state.ErrInvalid)
		require.ErrorIs(t, bound.As("a").Revert(bound.Snapshot()), state.ErrDenied)
		require.ErrorIs(t, bound.Revert(bound.Snapshot().As("a")), state.ErrDenied)
	})
}

func TestWatchOfNamesAndOfTheHistory(t *testing.T) {
	st := state.New(ruleOpen)
	for _, write := range []func() error{
		func() error { return ruleText.Set(st, "a") }, func() error { return ruleCount.Set(st, 1) }, func() error { return st.KV().Set("key", 1) },
		func() error { return st.History().Append(ruleResult("1", "a")) }, func() error { return ruleText.Set(st, "b") },
	} {
		require.NoError(t, write())
	}
	for _, tt := range []struct {
		since uint64
		names []string
		want  []string
	}{
		{0, nil, []string{"text", "count", "key", "", "messages", "text"}}, {0, []string{"text"}, []string{"text", "text"}}, {1, []string{"text"}, []string{"text"}},
		{0, []string{"key", "count"}, []string{"count", "key"}}, {0, []string{""}, []string{""}}, {0, []string{"messages"}, []string{"messages"}}, {5, nil, nil}, {0, []string{"nobody"}, nil},
	} {
		var fields []string
		// A snapshot no longer changes: the watch ends after the last change.
		for c, err := range st.Snapshot().Watch(context.Background(), tt.since, tt.names...) {
			require.NoError(t, err)
			fields = append(fields, c.Field)
		}
		require.ElementsMatch(t, tt.want, fields, "%v", tt)
	}
}

func TestWatchEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := state.New(ruleSchema)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan int)
		go func() {
			n := 0
			for range st.Watch(ctx, 0) {
				n++
			}
			done <- n
		}()
		synctest.Wait()
		cancel()
		require.Zero(t, <-done)
		require.NoError(t, ruleText.Set(st, "a"))
		for range st.Watch(ctx, 0) {
			t.Fatal("an ended context yields nothing")
		}
		bounded := state.New(state.MustSchema(state.AllowUndeclared, state.Limits{Journal: 1}))
		for i := range 10 {
			require.NoError(t, bounded.KV().Set("n", i))
		}
		for range bounded.Watch(ctx, 0) {
			t.Fatal("not even that the journal is compacted")
		}
		require.NoError(t, ruleText.Set(st, "b"))
		inside, leave := context.WithCancel(context.Background())
		defer leave()
		n := 0
		for range st.Watch(inside, 0) {
			n++
			leave()
		}
		require.Equal(t, 1, n)
	})
}

// nilAt returns the state that At returns with an error.
func nilAt(st *state.State) *state.State {
	past, _ := st.At(1 << 40)
	return past
}

// A state without a schema has the schema of the nil state, which is not a
// snapshot of it.
func TestRevertToNothingDoesNotEmptyAState(t *testing.T) {
	st := state.New(nil)
	require.NoError(t, st.KV().Set("k", 1))
	ruleUnchanged(t, st, func() {
		require.ErrorIs(t, st.Revert(nilAt(st)), state.ErrInvalid)
		require.ErrorIs(t, st.Revert(state.New(nil).Snapshot()), state.ErrInvalid)
		require.ErrorIs(t, (*state.State)(nil).Revert(nil), state.ErrInvalid)
	})
	require.NoError(t, st.Fork().Revert(st.Snapshot()), "the snapshot of its parent")
}

func TestWatchOfANameThatCannotBeReadIsAnError(t *testing.T) {
	st := state.New(aclSchema(t))
	open := state.New(aclSchema(t, state.AllowUndeclared))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		st   *state.State
		name string
		want error
	}{
		{st, "pubic", state.ErrUnknownField}, {st.As("ann"), "pubic", state.ErrUnknownField},
		{st.As("ann"), "private_host", state.ErrDenied}, {open.As("mallory"), "any", state.ErrDenied},
		{st, "public", nil}, {st, "", nil}, {st.As("ann"), "public", nil}, {open, "any", nil},
	} {
		var got error
		for _, err := range tt.st.Watch(ctx, 0, "", tt.name) {
			got = err
		}
		require.ErrorIs(t, got, tt.want, tt.name)
	}
}
