package state_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
)

// The tests of this file prove that values are isolated: no caller can change
// the content of a State through a value that was given to it or got from it.

type isoInner struct {
	Tags []string          `json:"tags"`
	Meta map[string][]int  `json:"meta"`
	Ptr  *int              `json:"ptr"`
	Any  any               `json:"any"`
	Arr  [2][]byte         `json:"arr"`
	Kids []*isoInnerMost   `json:"kids"`
	Map  map[string]*int64 `json:"map"`
}

type isoInnerMost struct {
	Names []string `json:"names"`
}

// isoTree contains itself.
type isoTree struct {
	Names []string           `json:"names"`
	Kids  []isoTree          `json:"kids"`
	Next  *isoTree           `json:"next"`
	By    map[string]isoTree `json:"by"`
	Any   any                `json:"any"`
}

func isoTreeOf(s string) isoTree {
	leaf := isoTree{Names: []string{s}, Any: []any{s}}
	next := isoTree{Names: []string{s}, Kids: []isoTree{leaf}, Any: map[string]any{s: s}}
	return isoTree{Names: []string{s}, Kids: []isoTree{leaf, next}, Next: &next, By: map[string]isoTree{s: leaf}}
}

func isoInnerOf(s string) isoInner {
	n, m := 1, int64(2)
	return isoInner{
		Tags: []string{s}, Meta: map[string][]int{s: {1}}, Ptr: &n, Any: map[string]any{s: []any{s, int64(1)}}, Arr: [2][]byte{[]byte(s), []byte("b")},
		Kids: []*isoInnerMost{{Names: []string{s}}}, Map: map[string]*int64{s: &m},
	}
}

// isoSpoil changes, in place, everything that can be reached from v: elements of
// slices up to their capacity, entries of maps, what pointers point to.
func isoSpoil(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		isoSpoil(v.Elem())
		if v.CanSet() && v.NumMethod() == 0 {
			v.Set(reflect.ValueOf("spoilt"))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			isoSpoil(v.Elem())
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		v = v.Slice(0, v.Cap())
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			isoSpoil(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			isoSpoil(v.MapIndex(k))
		}
		if v.Type().Key().Kind() == reflect.String && !v.IsNil() {
			v.SetMapIndex(reflect.ValueOf("spoilt").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
			for _, k := range v.MapKeys() {
				if k.String() != "spoilt" {
					v.SetMapIndex(k, reflect.Value{})
					break
				}
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				isoSpoil(v.Field(i))
			}
		}
		if v.CanSet() && v.Type() == reflect.TypeFor[state.TextMessage]() {
			v.SetZero()
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("spoilt")
		}
	case reflect.Int, reflect.Int64:
		if v.CanSet() {
			v.SetInt(-99)
		}
	case reflect.Uint8:
		if v.CanSet() {
			v.SetUint(0xee)
		}
	}
	if v.Kind() == reflect.Interface && v.CanSet() && v.Type() == reflect.TypeFor[state.Message]() {
		v.Set(reflect.ValueOf(state.UserText("spoilt")))
	}
}

func isoSpoilAll(values ...any) {
	for _, v := range values {
		isoSpoil(reflect.ValueOf(v))
	}
}

func TestSpoilReachesEverything(t *testing.T) {
	v := isoInnerOf("x")
	isoSpoilAll(&v)
	require.Equal(t, []string{"spoilt"}, v.Tags)
	require.NotContains(t, v.Meta, "x")
	require.Equal(t, -99, *v.Ptr)
	require.Equal(t, "spoilt", v.Any)
	require.Equal(t, []byte{0xee}, v.Arr[0][:1])
	require.Equal(t, []string{"spoilt"}, v.Kids[0].Names)
	messages := []state.Message{state.UserText("a")}
	isoSpoilAll(messages)
	require.Equal(t, state.UserText("spoilt"), messages[0])
	all := map[string]any{"a": []any{"x"}}
	list := all["a"].([]any)
	isoSpoilAll(all)
	require.Equal(t, "spoilt", list[0])
}

// isoAccessors writes v through every accessor that takes a T and spoils it, then reads
// through every accessor and spoils what came out.
func isoAccessors[T any](t *testing.T, handler state.Handler[T], make func() T) {
	t.Run(fmt.Sprintf("%T %s", make(), handler.Name()), func(t *testing.T) {
		own := state.NewHandler("spoiler", func(current T, _ bool, update T) (T, error) {
			result := make()
			kept = append(kept, result, current, update)
			isoSpoilAll(&current, &update)
			return result, nil
		})
		f := &state.Field[T]{Name: "x", Handler: handler, Validate: func(v T) error { isoSpoilAll(&v); return nil }}
		plain := &state.Field[T]{Name: "y", Handler: handler}
		schema := state.MustSchema(f, plain, state.AllowUndeclared)
		writes := map[string]func(st *state.State, v T) error{
			"Set":               func(st *state.State, v T) error { return f.Set(st, v) },
			"Set, no code":      func(st *state.State, v T) error { return plain.Set(st, v) },
			"Replace":           func(st *state.State, v T) error { return f.Replace(st, v) },
			"Replace, no code":  func(st *state.State, v T) error { return plain.Replace(st, v) },
			"SetWith":           func(st *state.State, v T) error { return f.SetWith(st, v, own) },
			"Update":            func(st *state.State, v T) error { return f.Update(st, func(T) (T, error) { return v, nil }) },
			"KV.Set":            func(st *state.State, v T) error { return st.KV().Set("x", v) },
			"KV.Set, no code":   func(st *state.State, v T) error { return st.KV().Set("y", v) },
			"KV.Replace":        func(st *state.State, v T) error { return st.KV().Replace("y", v) },
			"KV.SetWith":        func(st *state.State, v T) error { return st.KV().SetWith("y", v, own) },
			"KV.Set undeclared": func(st *state.State, v T) error { return st.KV().Set("key", v) },
			"Patch":             func(st *state.State, v T) error { return st.Patch(map[string]any{"x": v, "y": v, "key": v}) },
			"transaction": func(st *state.State, v T) error {
				return st.Update(func(tx *state.State) error { return plain.Set(tx, v) })
			},
			"join": func(st *state.State, v T) error {
				a, b := st.Fork(), st.Fork()
				if err := f.Set(a, v); err != nil {
					return err
				}
				_ = st.KV().Set("other", 1)
				if err := b.KV().Set("key", v); err != nil {
					return err
				}
				return st.Join(a, b)
			},
		}
		for name, write := range writes {
			kept = nil
			st := state.New(schema)
			require.NoError(t, f.Set(st, make()))
			require.NoError(t, plain.Set(st, make()))
			// The twin gets equal values, which are not spoilt.
			twin, err := state.Import(schema, []byte(ruleExport(t, st)))
			require.NoError(t, err)
			require.NoError(t, write(twin, make()), name)
			want := ruleExport(t, twin)

			v := make()
			require.NoError(t, write(st, v), name)
			for i := range kept {
				isoSpoilAll(kept[i])
			}
			isoSpoilAll(&v)
			require.JSONEq(t, want, ruleExport(t, st), "%s: what went in", name)

			past, err := st.At(st.Version())
			require.NoError(t, err)
			for _, view := range []*state.State{st, st.Snapshot(), past, st.Fork(), st.As("a")} {
				for _, read := range []func() any{
					func() any { v := f.Or(view, make()); return &v },
					func() any { v := plain.Or(view, make()); return &v },
					func() any { v, _ := view.KV().Get("x"); return &v },
					func() any { v, _ := view.KV().Get("y"); return &v },
					func() any { v, _ := view.KV().Get("key"); return &v },
					func() any { v, _ := state.GetAs[T](view, "x"); return &v },
					func() any { v, _ := state.GetAs[any](view, "y"); return &v },
					func() any { v, _ := state.GetAs[T](view, "key"); return &v },
					func() any { v := view.KV().All(); return &v },
					func() any {
						var changes []state.Change
						for c := range view.Changes(0) {
							changes = append(changes, c)
						}
						return &changes
					},
				} {
					isoSpoilAll(read())
				}
			}
			_ = f.Update(st, func(v T) (T, error) { isoSpoilAll(&v); return v, errRuleEven })
			require.JSONEq(t, want, ruleExport(t, st), "%s: what came out", name)
			for c := range st.Changes(0) {
				require.NotContains(t, fmt.Sprint(c.Value), "spoilt", "%s: the journal", name)
			}
		}
	})
}

var kept []any // what the own handler of isoAccessors has seen and returned

func TestWhatGoesInIsCopiedAndWhatComesOutIsACopy(t *testing.T) {
	three := func() *int { n := 3; return &n }
	isoAccessors(t, state.Handler[[]string]{}, func() []string { return append(make([]string, 0, 10), "a", "b") })
	isoAccessors(t, state.Union[[]string](), func() []string { return []string{"a", "b"} })
	isoAccessors(t, state.KeepLast[[]string](1), func() []string { return []string{"a", "b"} })
	isoAccessors(t, state.LastWins[[]string](), func() []string { return []string{"a", "b"} })
	isoAccessors(t, state.FirstWins[[]string](), func() []string { return []string{"a", "b"} })
	isoAccessors(t, state.MergeByID[[]isoInner](func(v isoInner) string { return v.Tags[0] }), func() []isoInner { return []isoInner{isoInnerOf("a")} })
	isoAccessors(t, state.MergeByID[[]*isoInnerMost](func(v *isoInnerMost) string { return v.Names[0] }), func() []*isoInnerMost { return []*isoInnerMost{{[]string{"a"}}} })
	isoAccessors(t, state.Handler[[]isoInner]{}, func() []isoInner { return append(make([]isoInner, 0, 4), isoInnerOf("a")) })
	isoAccessors(t, state.Union[[]isoInner](), func() []isoInner { return []isoInner{isoInnerOf("a")} })
	isoAccessors(t, state.KeepLast[[]isoInner](1), func() []isoInner { return []isoInner{isoInnerOf("a")} })
	isoAccessors(t, state.Handler[isoInner]{}, func() isoInner { return isoInnerOf("a") })
	isoAccessors(t, state.Handler[*isoInner]{}, func() *isoInner { v := isoInnerOf("a"); return &v })
	isoAccessors(t, state.MergeMap[map[string]isoInner](), func() map[string]isoInner { return map[string]isoInner{"a": isoInnerOf("a")} })
	isoAccessors(t, state.Handler[map[string]any]{}, func() map[string]any { return map[string]any{"a": []any{map[string]any{"b": "c"}}} })
	isoAccessors(t, state.Handler[any]{}, func() any { return []any{map[string]any{"b": []any{"c"}}} })
	isoAccessors(t, state.Handler[any]{}, func() any { return isoInnerOf("a") })
	isoAccessors(t, state.Handler[[]any]{}, func() []any { return []any{[]any{"a"}, map[string]any{"b": "c"}} })
	isoAccessors(t, state.Handler[[][]string]{}, func() [][]string { return [][]string{{"a"}, {"b"}} })
	isoAccessors(t, state.Handler[[]byte]{}, func() []byte { return []byte("bytes") })
	isoAccessors(t, state.Handler[[2][]string]{}, func() [2][]string { return [2][]string{{"a"}, {"b"}} })
	isoAccessors(t, state.Handler[isoTree]{}, func() isoTree { return isoTreeOf("a") })
	isoAccessors(t, state.Handler[[]*isoTree]{}, func() []*isoTree { tree := isoTreeOf("a"); return []*isoTree{&tree} })
	isoAccessors(t, state.MergeMap[map[string]isoTree](), func() map[string]isoTree { return map[string]isoTree{"a": isoTreeOf("a")} })
	isoAccessors(t, state.Handler[*int]{}, three)
	isoAccessors(t, state.Handler[[]*int]{}, func() []*int { return []*int{three(), three()} })
}

// isoKeeps breaks the rules of json.Unmarshaler: it keeps the bytes it is given,
// and writes them as they are.
type isoKeeps struct{ text []byte }

func (k isoKeeps) MarshalJSON() ([]byte, error)     { return k.text, nil }
func (k *isoKeeps) UnmarshalJSON(text []byte) error { k.text = text; return nil }

func TestATypeThatKeepsItsTextIsCopiedToo(t *testing.T) {
	f := &state.Field[isoKeeps]{Name: "x"}
	st := state.New(state.MustSchema(f))
	v := isoKeeps{[]byte(`"a"`)}
	require.NoError(t, f.Set(st, v))
	v.text[1] = 'b'
	got := f.Or(st, isoKeeps{})
	require.Equal(t, `"a"`, string(got.text))
	got.text[1] = 'c'
	require.Equal(t, `"a"`, string(f.Or(st, isoKeeps{}).text))
	data := []byte(ruleExport(t, st))
	back, err := state.Import(state.MustSchema(f), data)
	require.NoError(t, err)
	clear(data)
	require.Equal(t, `"a"`, string(f.Or(back, isoKeeps{}).text))
	got = isoKeeps{json.RawMessage(`"d"`)}
	require.NoError(t, st.KV().Set("x", json.RawMessage(got.text)))
	got.text[1] = 'e'
	require.Equal(t, `"d"`, string(f.Or(st, isoKeeps{}).text))
}

func TestItemsAreCopies(t *testing.T) {
	f := &state.Field[[]isoInner]{Name: "x"}
	st := state.New(state.MustSchema(f))
	require.NoError(t, f.Set(st, []isoInner{isoInnerOf("a"), isoInnerOf("b")}))
	ruleUnchanged(t, st, func() {
		for _, e := range state.ListItems(st, f, 0) {
			isoSpoilAll(&e)
		}
	})
}

func TestResultsAndMessagesAreCopies(t *testing.T) {
	st := state.New(nil)
	for i := range 3 {
		r := ruleResult(fmt.Sprint(i), "a")
		r.Prompt = append(make([]state.Message, 0, 8), r.Prompt...)
		require.NoError(t, st.History().Append(r))
		said := append(make([]state.Message, 0, 8), state.UserText("hi"))
		require.NoError(t, state.Messages.Set(st, said))
		isoSpoilAll(&r, said, said[:8])
	}
	twin := state.New(nil)
	for i := range 3 {
		require.NoError(t, twin.History().Append(ruleResult(fmt.Sprint(i), "a")))
		require.NoError(t, state.Messages.Set(twin, []state.Message{state.UserText("hi")}))
	}
	require.Equal(t, ruleExport(t, twin), ruleExport(t, st), "what went in")
	ruleUnchanged(t, st, func() {
		h := st.History()
		first, _ := h.At(0)
		last, _ := h.Last()
		popped, _, err := st.Fork().History().Pop()
		require.NoError(t, err)
		values := []any{h.Results(), &first, &last, &popped, h.Format(nil), state.Messages.Or(st, nil)}
		for _, r := range h.All() {
			values = append(values, &r)
		}
		for c := range st.Changes(0) {
			values = append(values, &c)
		}
		h.Format(func(r state.InferenceResult) []state.Message { values = append(values, &r); return r.Output })
		isoSpoilAll(values...)
	})
	reset := []state.InferenceResult{ruleResult("r", "a")}
	require.NoError(t, st.History().Reset(reset))
	isoSpoilAll(reset)
	last, _ := st.History().Last()
	require.Equal(t, "r", last.ID)
	require.Equal(t, ruleResult("r", "a").Output, last.Output)
}

// Appending to what was read must not write behind what others read.
func TestAppendingToAResultWritesIntoNobodysSlice(t *testing.T) {
	st := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}})
	one, two := ruleTags.Or(st, nil), ruleTags.Or(st, nil)
	one = append(one, "one")
	two = append(two, "two")
	require.NoError(t, ruleTags.Set(st, []string{"b"}))
	three := append(ruleTags.Or(st, nil), "three")
	require.Equal(t, [][]string{{"a", "one"}, {"a", "two"}, {"a", "b", "three"}, {"a", "b"}}, [][]string{one, two, three, ruleTags.Or(st, nil)})
}

// Branches share the list they began with; what one appends is in no other, at
// any length and whatever the capacity below is.
func TestSiblingsNeverSeeEachOthersElements(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		type branch struct {
			st       *state.State
			tags     []string
			key      []any
			messages []state.Message
			results  int
		}
		all := []*branch{{st: state.New(ruleOpen)}}
		for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			b := rapid.SampledFrom(all).Draw(rt, "branch")
			text := fmt.Sprint(i)
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				st := b.st.Fork()
				if rapid.Bool().Draw(rt, "snapshot") {
					st = b.st.Snapshot().Fork()
				}
				all = append(all, &branch{st, append([]string{}, b.tags...), append([]any{}, b.key...), append([]state.Message{}, b.messages...), b.results})
			case 1, 2:
				more := make([]string, rapid.IntRange(1, 40).Draw(rt, "n"))
				for j := range more {
					more[j] = text
				}
				require.NoError(rt, ruleTags.Set(b.st, more))
				b.tags = append(b.tags, more...)
			case 3:
				b.key = append(b.key, text)
				require.NoError(rt, b.st.KV().Set("key", b.key))
			case 4:
				require.NoError(rt, state.Messages.Set(b.st, []state.Message{state.UserText(text)}))
				b.messages = append(b.messages, state.UserText(text))
			case 5:
				require.NoError(rt, b.st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText(text)}, CreatedAt: time.Unix(1, 0)}))
				b.messages = append(b.messages, state.AssistantText(text))
				b.results++
			}
			for _, b := range all {
				require.Equal(rt, len(b.tags), state.ListLen(b.st, ruleTags))
				require.Equal(rt, append([]string{}, b.tags...), append([]string{}, ruleTags.Or(b.st, nil)...))
				if v, ok := b.st.KV().Get("key"); ok {
					require.Equal(rt, b.key, v)
				}
				require.Equal(rt, append([]state.Message{}, b.messages...), state.Messages.Or(b.st, []state.Message{}))
				require.Equal(rt, b.results, b.st.History().Len())
			}
		}
	})
}
