package state_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/test/statemodel"
	"github.com/agentstate/state/transcript"
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
		require.ElementsMatch(t, tt.want, callkeys.Changes(ruleChanges(t, st, v-1)...))
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
	require.Equal(t, 2989, ruleCount.GetOr(past, 0))

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

func TestRevertLeavesSecretsAndThePast(t *testing.T) {
	secret := &state.Field[string]{Name: "secret", Secret: true}
	schema := state.MustSchema(ruleText, ruleTags, ruleCount, secret, state.AllowUndeclared)
	st := ruleNew(t, schema, map[string]any{"text": "old", "tags": []string{"x"}, "key": 1, "secret": "first"})
	require.NoError(t, st.History().Append(ruleResult("1", "a")))
	snap := st.Snapshot()
	require.NoError(t, st.Patch(map[string]any{"text": "new", "count": 2, "key": nil, "other": 1, "secret": "second"}))
	require.NoError(t, ruleTags.Set(st, []string{"y"}))
	require.NoError(t, st.History().Append(ruleResult("2", "a")))
	now := st.Version()
	require.NoError(t, st.Revert(snap))
	require.Equal(t, "second", secret.GetOr(st, ""), "secrets stay as they are")
	past, err := st.At(now)
	require.NoError(t, err, "nothing is rewritten")
	require.Equal(t, "new", ruleText.GetOr(past, ""))
	for c := range st.Changes(now) {
		require.NotEqual(t, "secret", c.Field)
	}

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

// The tests below prove that Effects returns what turns one state into
// another: applied to a plain copy of the earlier content, the effects give the
// later one, for any two states of random programs. They also prove that the
// effects are not more than what changed.

// effectDoc is the content of a state as nothing but texts.
type effectDoc struct {
	Fields, Keys map[string]string // JSON
	Talk         []string          // messages; nil if they are unset
	Results      []string
}

func effectDocOf(t require.TestingT, st *state.State) effectDoc {
	data, err := st.Export()
	require.NoError(t, err)
	var in form.State
	require.NoError(t, json.Unmarshal(data, &in))
	doc := effectDoc{Fields: map[string]string{}, Keys: map[string]string{}}
	for _, f := range in.Fields {
		doc.Fields[f.Name] = string(f.Value)
	}
	for _, f := range in.Keys {
		doc.Keys[f.Name] = string(f.Value)
	}
	messages := func(runs []form.Run) []string {
		texts := []string{}
		for _, r := range runs {
			for _, m := range in.Messages[r.From:r.To] {
				texts = append(texts, string(m))
			}
		}
		return texts
	}
	if in.Conversation != nil {
		doc.Talk = messages(*in.Conversation)
	}
	for _, r := range in.Results {
		doc.Results = append(doc.Results, fmt.Sprintf("%q %q %q %q %q %v %q %q %q %q", r.ID, r.Agent, r.Input, r.Raw, r.RawBytes, r.CreatedAt,
			messages(r.Prompt), messages(r.History), messages(r.Output), messages(r.ToolCalls)))
	}
	return doc
}

func effectTexts[M state.Message](msgs []M) []string {
	texts := []string{}
	for _, m := range msgs {
		texts = append(texts, string(m.Raw()))
	}
	return texts
}

func effectResults(results []state.InferenceResult) []string {
	var texts []string
	for _, r := range results {
		var f form.Result
		f.SetRaw(r.Raw)
		texts = append(texts, fmt.Sprintf("%q %q %q %q %q %v %q %q %q %q", r.ID, r.Agent, r.Input, f.Raw, f.RawBytes, r.CreatedAt,
			effectTexts(r.Prompt), effectTexts(r.History), effectTexts(r.Output), effectTexts(r.ToolCalls)))
	}
	return texts
}

// do does an effect.
func (d *effectDoc) do(t require.TestingT, e state.Effect) {
	switch in := d.Keys; {
	case e.Part == state.EffectPartHistory:
		d.Results = effectOn(t, d.Results, e, effectResults(e.Results))
		if len(d.Results) == 0 {
			d.Results = nil
		}
	case e.Part == state.EffectPartField && e.Field == "messages":
		d.Talk = effectOn(t, d.Talk, e, effectTexts(e.Messages))
	default:
		if e.Part == state.EffectPartField {
			in = d.Fields
		}
		switch e.Kind {
		case state.EffectSet:
			in[e.Field] = string(e.Value)
		case state.EffectDelete:
			delete(in, e.Field)
		default:
			var list []json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(in[e.Field]), &list))
			var texts, with []string
			for _, element := range list {
				texts = append(texts, string(element))
			}
			if e.Value != "" {
				var elements []json.RawMessage
				require.NoError(t, json.Unmarshal([]byte(e.Value), &elements))
				for _, element := range elements {
					with = append(with, string(element))
				}
			}
			in[e.Field] = "[" + strings.Join(effectOn(t, texts, e, with), ",") + "]"
		}
	}
}

// effectOn returns what an effect makes of a list.
func effectOn(t require.TestingT, list []string, e state.Effect, with []string) []string {
	switch e.Kind {
	case state.EffectSet:
		return with
	case state.EffectDelete:
		return nil
	case state.EffectAppend:
		require.NotEmpty(t, with)
		return slices.Concat(list, with)
	case state.EffectInsert:
		require.NotEmpty(t, with)
		return slices.Insert(slices.Clone(list), e.N, with...)
	case state.EffectDropFirst:
		return slices.Clone(list[e.N:])
	case state.EffectTruncate:
		require.Less(t, e.N, len(list))
		return slices.Clone(list[:e.N])
	case state.EffectRemoveAt:
		return slices.Delete(slices.Clone(list), e.N, e.N+1)
	}
	require.Fail(t, "unknown effect", e.Kind)
	return nil
}

// effectsBetween requires that the effects between two states are what differs.
func effectsBetween(t require.TestingT, since, st *state.State) []state.Effect {
	effects, err := st.Effects(since)
	require.NoError(t, err)
	before, after := effectDocOf(t, since), effectDocOf(t, st)
	if len(effects) == 0 {
		require.Equal(t, before, after)
	}
	for _, e := range effects {
		before.do(t, e)
	}
	require.Equal(t, after, before, "%v", effects)
	return effects
}

func TestEffectsTurnAnyStateOfAProgramIntoAnyOther(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		kept := []*state.State{state.New(statemodel.Schema)}
		statemodel.Walk(t, func(st *state.State, step func()) {
			before := st.Snapshot()
			step()
			effectsBetween(t, before, st)
			kept = append(kept, st.Snapshot())
		})
		for range 4 {
			effectsBetween(t, rapid.SampledFrom(kept).Draw(t, "since"), rapid.SampledFrom(kept).Draw(t, "state"))
		}
	})
}

var (
	effectTalk    = &state.Field[[]state.Message]{Name: "messages", Handler: transcript.KeepLast(6).Handler()}
	effectNumbers = &state.Field[[]int]{Name: "numbers"}
	effectLast    = &state.Field[[]string]{Name: "last", Handler: state.KeepLast[[]string](300), Secret: true}
	effectAny     = &state.Field[[]any]{Name: "any"}
	effectSchema  = state.MustSchema(effectTalk, effectNumbers, effectLast, effectAny)
)

// effectLists change lists in ways and sizes that the model does not have.
var effectLists = []func(t *rapid.T, st *state.State) error{
	func(t *rapid.T, st *state.State) error {
		add := make([]int, rapid.SampledFrom([]int{0, 1, 2, 7, 255, 256, 300}).Draw(t, "added"))
		for i := range add {
			add[i] = rapid.IntRange(0, 2).Draw(t, "number") + i/100
		}
		return effectNumbers.Set(st, add)
	},
	func(t *rapid.T, st *state.State) error {
		return effectNumbers.Update(st, func(list []int) ([]int, error) {
			at := rapid.IntRange(0, len(list)).Draw(t, "at")
			to := min(len(list), at+rapid.IntRange(0, 3).Draw(t, "replaced"))
			return slices.Replace(list, at, to, rapid.SliceOfN(rapid.IntRange(0, 2), 0, 3).Draw(t, "with")...), nil
		})
	},
	func(t *rapid.T, st *state.State) error {
		n := rapid.SampledFrom([]int{0, 1, 2, 250, 256, 500}).Draw(t, "keep")
		return effectNumbers.SetWith(st, []int{1}, state.KeepLast[[]int](n))
	},
	func(t *rapid.T, st *state.State) error {
		add := make([]string, rapid.SampledFrom([]int{1, 2, 150, 299, 301}).Draw(t, "added"))
		for i := range add {
			add[i] = fmt.Sprint(i % 7)
		}
		return effectLast.Set(st, add)
	},
	func(t *rapid.T, st *state.State) error {
		return effectAny.Set(st, rapid.SliceOfN(rapid.SampledFrom([]any{nil, 1, "<a>", []any{}, map[string]any{"k": 1.5}}), 0, 3).Draw(t, "any"))
	},
	func(t *rapid.T, st *state.State) error {
		call := state.ToolCall{ID: "c", Name: "look"}
		said := []state.Message{state.SystemText("s"), state.UserText("u"), state.AssistantText("a"), state.ToolCalls(call), state.ToolResult(call, "1")}
		return effectTalk.Set(st, rapid.SliceOfN(rapid.SampledFrom(said), 0, 3).Draw(t, "said"))
	},
	func(t *rapid.T, st *state.State) error {
		r := ruleResult("", "a")
		r.Raw = rapid.SampledFrom([]string{"", "a", "\xff", "\xfe"}).Draw(t, "raw")
		return st.History().Append(r)
	},
	func(t *rapid.T, st *state.State) error {
		results := st.History().Results()
		from := rapid.IntRange(0, len(results)).Draw(t, "from")
		return st.History().Reset(results[from:])
	},
	func(t *rapid.T, st *state.State) error {
		branch := st.Fork()
		if err := effectNumbers.Set(st, []int{1}); err != nil {
			return err
		}
		if err := effectNumbers.Set(branch, []int{2}); err != nil {
			return err
		}
		return st.Join(branch)
	},
}

func TestEffectsOfLists(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		st := state.New(effectSchema)
		kept := []*state.State{st.Snapshot()}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			i := rapid.IntRange(0, len(effectLists)-1).Draw(t, "step")
			require.NoError(t, effectLists[i](t, st))
			effectsBetween(t, kept[len(kept)-1], st)
			kept = append(kept, st.Snapshot())
		}
		effectsBetween(t, rapid.SampledFrom(kept).Draw(t, "since"), rapid.SampledFrom(kept).Draw(t, "state"))
	})
}

func TestEffectsAreTheLeastThatChanged(t *testing.T) {
	set := func(list ...string) func(*state.State) error {
		return func(st *state.State) error { return st.KV().Replace("tags", list) }
	}
	key := func(v any) func(*state.State) error {
		return func(st *state.State) error { return st.KV().Set("key", v) }
	}
	raw := func(raw string) func(*state.State) error {
		return func(st *state.State) error { return st.History().Reset([]state.InferenceResult{{Raw: raw}}) }
	}
	recorded := ruleHistory(t, "1", "2", "3", "4").History().Results() // their calls have keys
	results := func(ids ...string) func(*state.State) error {
		return func(st *state.State) error {
			var list []state.InferenceResult
			for _, r := range recorded {
				if slices.Contains(ids, r.ID) {
					list = append(list, r)
				}
			}
			return st.History().Reset(list)
		}
	}
	tests := []struct {
		name     string
		from, to func(*state.State) error
		want     []string
	}{
		{"equal", set("a", "b"), set("a", "b"), nil},
		{"an equal scalar", key("a"), key("a"), nil},
		{"another scalar", key("a"), key("b"), []string{"set 0 \"b\""}},
		{"the first", set(), set("a"), []string{"append 0 [\"a\"]"}},
		{"one more", set("a"), set("a", "b"), []string{"append 0 [\"b\"]"}},
		{"one less", set("a", "b"), set("a"), []string{"truncate 1 "}},
		{"none left", set("a", "b"), set(), []string{"truncate 0 "}},
		{"another last", set("a", "b"), set("a", "c"), []string{"truncate 1 ", "append 0 [\"c\"]"}},
		{"a window that moved", set("a", "b", "c"), set("b", "c", "d"), []string{"drop_first 1 ", "append 0 [\"d\"]"}},
		{"a window of equals that moved", set("a", "b", "a", "b"), set("b", "a", "b", "a", "a"), []string{"drop_first 1 ", "append 0 [\"a\",\"a\"]"}},
		{"a window that only seems to have moved", set("x", "a", "a", "y"), set("a", "a", "b", "c"), []string{"set 0 [\"a\",\"a\",\"b\",\"c\"]"}},
		{"a window behind a first", set("s", "a", "b", "c"), set("s", "b", "c", "d"), []string{"remove_at 1 ", "append 0 [\"d\"]"}},
		{"one in the middle", set("a", "c"), set("a", "b", "c"), []string{"insert 1 [\"b\"]"}},
		{"one before all", set("b"), set("a", "b"), []string{"insert 0 [\"a\"]"}},
		{"one changed", set("a", "b", "c"), set("a", "x", "c"), []string{"remove_at 1 ", "insert 1 [\"x\"]"}},
		{"all changed", set("a", "b"), set("c", "d"), []string{"set 0 [\"c\",\"d\"]"}},
		{"most changed", set("a", "b", "c", "d", "e"), set("a", "e"), []string{"set 0 [\"a\",\"e\"]"}},
		{"unset", set("a"), func(st *state.State) error { return st.Patch(map[string]any{"tags": nil}) }, []string{"delete 0 "}},
		{"the first result", results(), results("1"), []string{"append 0 "}},
		{"results that moved on", results("1", "2", "3"), results("2", "3", "4"), []string{"drop_first 1 ", "append 0 "}},
		{"a result of other bytes", raw("\xff"), raw("\xfe"), []string{"set 0 "}},
		{"no results", results("1"), results(), []string{"truncate 0 "}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			st := state.New(ruleOpen)
			require.NoError(t, test.from(st))
			before := st.Snapshot()
			require.NoError(t, test.to(st))
			var got []string
			for _, e := range effectsBetween(t, before, st) {
				got = append(got, fmt.Sprint(e.Kind, " ", e.N, " ", e.Value))
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestEffectsSayWhatTheyAreOf(t *testing.T) {
	secret := &state.Field[string]{Name: "secret", Secret: true, Read: state.Public, Write: state.Public}
	draft := &state.Field[string]{Name: "draft", Ephemeral: true}
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}, state.AllowUndeclared, draft, secret))
	before := st.Snapshot()
	b := st.As("b").WithCause("call 1")
	require.NoError(t, secret.Set(st.As("a"), "x"))
	require.NoError(t, secret.Set(b, "hush"))
	require.NoError(t, draft.Set(st, "later"))
	require.NoError(t, st.KV().Set("z", 1))
	require.NoError(t, b.KV().Set("k", nil))
	require.NoError(t, b.History().Append(state.InferenceResult{Output: []state.Message{state.UserText("hi")}}))
	effects := effectsBetween(t, before, st)
	require.Len(t, effects[0].Messages, 1)
	require.Len(t, effects[4].Results, 1)
	effects[0].Messages, effects[4].Results = nil, nil
	require.Equal(t, []state.Effect{
		{Part: "field", Field: "messages", Kind: state.EffectSet, Agent: "b", Cause: "call 1"},
		{Part: "field", Field: "secret", Secret: true, Kind: state.EffectSet, Value: `"hush"`, Agent: "b", Cause: "call 1"},
		{Part: "key", Field: "k", Kind: state.EffectSet, Value: "null", Agent: "b", Cause: "call 1"},
		{Part: "key", Field: "z", Kind: state.EffectSet, Value: "1"},
		{Part: "history", Kind: state.EffectAppend, Agent: "b", Cause: "call 1"},
	}, effects)

	back := st.Snapshot()
	require.NoError(t, st.Patch(map[string]any{"secret": "x", "f": 1, "a": 1, "e": 1, "b": 1, "d": 1, "c": 1}))
	effects = effectsBetween(t, st, back)
	require.Equal(t, "b", effects[0].Agent, "also where the journal of since goes on")
	var fields []string
	for _, e := range effects {
		fields = append(fields, e.Field)
	}
	require.Equal(t, []string{"secret", "a", "b", "c", "d", "e", "f"}, fields)

	_, err := b.Effects(before)
	require.ErrorIs(t, err, state.ErrDenied)
	_, err = st.Effects(before.As("b"))
	require.ErrorIs(t, err, state.ErrDenied)
	_, err = st.Effects(state.New(nil))
	require.ErrorContains(t, err, "another schema")
}

func TestEffectsThatCannotBeEncodedNameTheField(t *testing.T) {
	type point struct{ X float64 }
	one := &state.Field[*point]{Name: "one", NoCopy: true}
	many := &state.Field[[]*point]{Name: "many", NoCopy: true}
	schema := state.MustSchema(one, many)
	st := state.New(schema)
	require.NoError(t, many.Set(st, nil))
	before, p := st.Snapshot(), &point{1}
	require.NoError(t, many.Set(st, []*point{p}))
	p.X = math.NaN()
	_, want := st.Export()
	for _, since := range []*state.State{before, state.New(schema)} {
		_, err := st.Effects(since)
		require.ErrorContains(t, err, `"many"`)
		require.ErrorIs(t, err, state.ErrWrongType)
	}
	_, err := st.Effects(state.New(schema))
	require.Equal(t, want, err)

	p = &point{1}
	require.NoError(t, one.Set(st, p))
	p.X = math.NaN()
	_, err = st.Effects(before)
	require.ErrorContains(t, err, `"one"`)
}

func TestResultsThatDifferInATimeOnlyAreAnEffect(t *testing.T) {
	first, _ := ruleHistory(t, "1").History().Last() // its call has a key
	for name, change := range map[string]func(r *state.InferenceResult){
		"started": func(r *state.InferenceResult) { r.StartedAt = time.Time{} },
		"created": func(r *state.InferenceResult) { r.CreatedAt = r.CreatedAt.Add(1) },
	} {
		st := state.New(nil)
		require.NoError(t, st.History().Reset([]state.InferenceResult{first}))
		before, second := st.Snapshot(), first
		change(&second)
		require.NoError(t, st.History().Reset([]state.InferenceResult{second}))
		effects, err := st.Effects(before)
		require.NoError(t, err)
		require.NotEmpty(t, effects, name)
		require.NoError(t, st.History().Reset([]state.InferenceResult{first}))
		effects, err = st.Effects(before)
		require.NoError(t, err)
		require.Empty(t, effects, name)
	}
}
