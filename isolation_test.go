package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/callkeys"
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
					func() any { v := f.GetOr(view, make()); return &v },
					func() any { v := plain.GetOr(view, make()); return &v },
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
	got := f.GetOr(st, isoKeeps{})
	require.Equal(t, `"a"`, string(got.text))
	got.text[1] = 'c'
	require.Equal(t, `"a"`, string(f.GetOr(st, isoKeeps{}).text))
	data := []byte(ruleExport(t, st))
	back, err := state.Import(state.MustSchema(f), data)
	require.NoError(t, err)
	clear(data)
	require.Equal(t, `"a"`, string(f.GetOr(back, isoKeeps{}).text))
	got = isoKeeps{json.RawMessage(`"d"`)}
	require.NoError(t, st.KV().Set("x", json.RawMessage(got.text)))
	got.text[1] = 'e'
	require.Equal(t, `"d"`, string(f.GetOr(st, isoKeeps{}).text))
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
	require.Equal(t, callkeys.Masked(ruleExport(t, twin)), callkeys.Masked(ruleExport(t, st)), "what went in")
	ruleUnchanged(t, st, func() {
		h := st.History()
		first, _ := h.At(0)
		last, _ := h.Last()
		popped, _, err := st.Fork().History().Pop()
		require.NoError(t, err)
		values := []any{h.Results(), &first, &last, &popped, h.Format(nil), state.Messages.GetOr(st, nil)}
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
	require.Equal(t, ruleResult("r", "a").Output, callkeys.Without(last.Output...))
}

// The tests below are about fields that are Ephemeral and NoCopy, whose
// values no code looks into.

// refClient is what nobody can store, and none of its methods may be called.
type refClient struct {
	ch   chan int
	fn   func()
	self *refClient
	any  any
}

func (*refClient) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }
func (*refClient) UnmarshalJSON([]byte) error   { panic("UnmarshalJSON") }
func (*refClient) MarshalText() ([]byte, error) { panic("MarshalText") }
func (*refClient) UnmarshalText([]byte) error   { panic("UnmarshalText") }
func (*refClient) String() string               { panic("String") }
func (*refClient) GoString() string             { panic("GoString") }
func (*refClient) Format(fmt.State, rune)       { panic("Format") }
func (*refClient) Error() string                { panic("Error") }
func (*refClient) LogValue() slog.Value         { panic("LogValue") }
func (*refClient) Clone() *refClient            { panic("Clone") }
func (*refClient) Equal(*refClient) bool        { panic("Equal") }
func (*refClient) IsZero() bool                 { panic("IsZero") }
func (*refClient) Unwrap() error                { panic("Unwrap") }
func (*refClient) Is(error) bool                { panic("Is") }
func (*refClient) Read([]byte) (int, error)     { panic("Read") }
func (*refClient) Raw() state.JSON              { panic("Raw") }
func (*refClient) GobEncode() ([]byte, error)   { panic("GobEncode") }
func (*refClient) Compare(*refClient) int       { panic("Compare") }
func (*refClient) Close() error                 { panic("Close") }
func (refValue) MarshalJSON() ([]byte, error)   { panic("MarshalJSON") }
func (refValue) String() string                 { panic("String") }
func (refValue) Equal(refValue) bool            { panic("Equal") }
func (refValue) IsZero() bool                   { panic("IsZero") }
func (refNames) MarshalJSON() ([]byte, error)   { panic("MarshalJSON") }
func (refNames) String() string                 { panic("String") }

// refValue is no pointer.
type refValue struct {
	name string
	any  any
}

// refNames is a list with methods.
type refNames []string

// refShape is one type of reference.
type refShape struct {
	name string
	run  func(t *testing.T)
}

// refShapeOf returns the shape of a type with two values that are not identical.
func refShapeOf[T any](name string, a, b T, handlers ...state.Handler[T]) refShape {
	same := func(t *testing.T, want T, got any) {
		t.Helper()
		typed, ok := got.(T)
		require.True(t, ok, "%T", got)
		require.True(t, refIdentical(reflect.ValueOf(&want).Elem(), reflect.ValueOf(&typed).Elem()))
	}
	handlers = append(handlers, state.Handler[T]{}, state.Replace[T](), state.FirstWins[T](), state.LastWins[T](),
		state.NewHandler("own", func(_ T, _ bool, update T) (T, error) { return update, nil }))
	comparable := reflect.TypeFor[T]().Kind() != reflect.Func && reflect.TypeFor[T]().Kind() != reflect.Array
	return refShape{name, func(t *testing.T) {
		for _, h := range handlers {
			f := &state.Field[T]{Name: "x", Ephemeral: true, NoCopy: true, Handler: h}
			mark := &state.Field[int]{Name: "mark"}
			schema := state.MustSchema(f, mark, state.AllowUndeclared)
			st := state.New(schema)
			empty := st.Snapshot()
			require.NoError(t, f.Set(st, a))
			version := st.Version()
			readers := func(st *state.State, want T) {
				t.Helper()
				past, err := st.At(st.Version())
				require.NoError(t, err)
				for _, view := range []*state.State{st, st.Snapshot(), st.Fork(), past, st.As("a")} {
					got, err := f.Get(view)
					require.NoError(t, err)
					same(t, want, got)
					require.True(t, f.Has(view))
					byName, ok := view.KV().Get("x")
					require.True(t, ok)
					same(t, want, byName)
					got, err = state.GetAs[T](view, "x")
					require.NoError(t, err)
					same(t, want, got)
					_, err = state.GetAs[any](view, "x")
					require.NoError(t, err)
					same(t, want, view.KV().All()["x"])
				}
			}
			readers(st, a)
			for c := range st.Changes(version - 1) {
				same(t, a, c.Value)
			}

			// It is rendered as its type.
			for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", st, st, st, st), st.Describe(), st.Redact("x")} {
				require.NotContains(t, text, "(PANIC")
			}
			data, err := json.Marshal(st)
			require.NoError(t, err)
			var view struct{ Values map[string]any }
			require.NoError(t, json.Unmarshal(data, &view))
			require.Equal(t, reflect.TypeOf(any(a)).String(), view.Values["x"])
			require.Contains(t, st.Describe(), reflect.TypeOf(any(a)).String())
			var log bytes.Buffer
			slog.New(slog.NewJSONHandler(&log, nil)).Info("state", "state", st)
			require.NotContains(t, log.String(), "panic")
			info := st.Fields()[1]
			require.True(t, info.Reference)
			require.Equal(t, reflect.TypeFor[T]().String(), info.Type)

			// It is never stored.
			exported, err := st.Export()
			require.NoError(t, err)
			require.NotContains(t, string(exported), `"x"`)
			effects, err := st.Effects(empty)
			require.NoError(t, err)
			require.Empty(t, effects)
			for _, value := range []string{`null`, `{}`, `"a"`, `[1]`} {
				_, err := state.Import(schema, []byte(`{"format":1,"version":1,"fields":[{"name":"x","value":`+value+`}]}`))
				require.Error(t, err)
			}

			// Writes of all kinds.
			require.NoError(t, f.Replace(st, b))
			readers(st, b)
			require.NoError(t, f.Update(st, func(T) (T, error) { return a, nil }))
			readers(st, a)
			require.NoError(t, st.KV().Replace("x", b))
			require.NoError(t, st.Patch(map[string]any{"x": a, "mark": 1}))
			readers(st, a)
			require.NoError(t, st.Update(func(tx *state.State) error { return f.Replace(tx, b) }))
			readers(st, b)
			past := st.Snapshot()
			require.NoError(t, f.Replace(st, a))
			require.NoError(t, st.Revert(past))
			readers(st, b)
			require.NoError(t, f.SetWith(st, a, state.Replace[T]()))
			require.NoError(t, st.KV().SetWith("x", a, state.LastWins[T]()))
			readers(st, a)

			// Branches: an identical value is no other one.
			left, right := st.Fork(), st.Fork()
			require.NoError(t, f.Replace(left, b))
			require.NoError(t, f.Replace(right, b))
			err = st.Join(left, right)
			if comparable {
				require.NoError(t, err)
				readers(st, b)
			} else if h.Name() == "" || h.Name() == "replace" {
				require.ErrorIs(t, err, state.ErrConflict) // Go compares no functions
			}
			left, right = st.Fork(), st.Fork()
			require.NoError(t, f.Replace(left, a))
			require.NoError(t, f.Replace(right, b))
			_ = st.Join(left, right) // a conflict or not, but no panic

			// Nothing is converted.
			for _, wrong := range []any{state.Masked{}, 1.5, struct{ X int }{1}, "text", []any{1}} {
				if reflect.TypeOf(wrong).AssignableTo(reflect.TypeFor[T]()) && wrong != any(state.Masked{}) {
					continue
				}
				require.ErrorIs(t, st.KV().Set("x", wrong), state.ErrWrongType)
			}
			if reflect.TypeFor[T]() != reflect.TypeFor[float64]() {
				_, err = state.GetAs[float64](st, "x")
				require.ErrorIs(t, err, state.ErrWrongType)
			}

			require.NoError(t, st.EndRun())
			require.False(t, f.Has(st))
		}
	}}
}

// refIdentical says again what identical means.
func refIdentical(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		return a.Len() == b.Len() && (a.Len() == 0 || a.Pointer() == b.Pointer() || refIdentical(a.Index(0), b.Index(0)))
	case reflect.Map, reflect.Func:
		return a.Pointer() == b.Pointer()
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.Elem().Type() == b.Elem().Type() && refIdentical(a.Elem(), b.Elem())
	case reflect.Array:
		for i := range a.Len() {
			if !refIdentical(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !refIdentical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

func TestReferencesAreTheSameValueForAll(t *testing.T) {
	client := func() *refClient {
		c := &refClient{ch: make(chan int), fn: func() {}, any: []any{func() {}}}
		c.self = c
		return c
	}
	one, two := client(), client()
	type loop []loop
	cyclic := make(loop, 1)
	cyclic[0] = cyclic
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, shape := range []refShape{
		refShapeOf("a pointer", one, two),
		refShapeOf("a struct", refClient{any: 1}, refClient{any: []any{1}}),
		refShapeOf("a value", refValue{"a", []any{1}}, refValue{"b", map[string]any{}}),
		refShapeOf[io.Reader]("an interface", one, strings.NewReader("text")),
		refShapeOf[context.Context]("a context", context.Background(), ctx),
		refShapeOf[any]("any", one, []func(){}),
		refShapeOf[any]("any map", map[string]any{"a": one}, map[string]any{}),
		refShapeOf("a channel", make(chan int), make(chan int, 1)),
		refShapeOf("a function", func() {}, func() { _ = 1 }),
		refShapeOf("a map of functions", map[string]func(){"a": func() {}}, map[string]func(){}),
		refShapeOf("bytes", []byte("abc"), []byte("xyz")),
		refShapeOf("an array", [2]func(){}, [2]func(){func() {}}),
		refShapeOf("a string", "a\xff", "b"),
		refShapeOf("a recursive list", cyclic, loop{}, state.KeepLast[loop](9)),
		refShapeOf("a list with methods", refNames{"a"}, refNames{"b"}),
	} {
		t.Run(shape.name, shape.run)
	}
}

func TestListsOfReferencesAreMergedByElement(t *testing.T) {
	a, b, c := &refClient{}, &refClient{}, &refClient{}
	all := &state.Field[[]*refClient]{Name: "all", Ephemeral: true, NoCopy: true}
	last := &state.Field[[]*refClient]{Name: "last", Ephemeral: true, NoCopy: true, Handler: state.KeepLast[[]*refClient](2)}
	readers := &state.Field[[]io.Reader]{Name: "readers", Ephemeral: true, NoCopy: true}
	st := state.New(state.MustSchema(all, last, readers))
	for _, v := range []*refClient{a, b, c} {
		require.NoError(t, all.Set(st, []*refClient{v}))
		require.NoError(t, st.KV().Set("last", []*refClient{v}))
		require.NoError(t, readers.Set(st, []io.Reader{v, nil}))
	}
	left, right := st.Fork(), st.Fork()
	require.NoError(t, all.Set(left, []*refClient{a}))
	require.NoError(t, all.Set(right, []*refClient{b}))
	require.NoError(t, st.Join(left, right))
	want := []*refClient{a, b, c, a, b}
	got := all.GetOr(st, nil)
	require.Len(t, got, len(want))
	i := 0
	for _, v := range state.ListItems(st, all, 0) {
		require.True(t, v == want[i] && got[i] == want[i])
		i++
	}
	require.Equal(t, 5, i)
	kept := last.GetOr(st, nil)
	require.True(t, len(kept) == 2 && kept[0] == b && kept[1] == c)
	require.Equal(t, 6, state.ListLen(st, readers))
	require.Contains(t, st.Describe(), `all ([]*state_test.refClient) = "[]*state_test.refClient"`)
}

// References take part in no limit: the library cannot know their size.
func TestReferencesHaveNoSize(t *testing.T) {
	f := &state.Field[[]byte]{Name: "x", Ephemeral: true, NoCopy: true}
	list := &state.Field[[]any]{Name: "list", Ephemeral: true, NoCopy: true}
	st := state.New(state.MustSchema(f, list, state.Limits{ValueBytes: 10, Depth: 1}))
	require.NoError(t, f.Set(st, make([]byte, 1000)))
	require.NoError(t, list.Set(st, []any{hostileDeep(100_000), make([]byte, 1000)}))
}

func TestReferencesRefuseWhatLooksIntoThem(t *testing.T) {
	for want, part := range map[string]state.Part{
		"Secret":                &state.Field[*refClient]{Name: "x", Ephemeral: true, NoCopy: true, Secret: true},
		"Validate":              &state.Field[*refClient]{Name: "x", Ephemeral: true, NoCopy: true, Validate: func(*refClient) error { return nil }},
		"OneOf":                 &state.Field[any]{Name: "x", Ephemeral: true, NoCopy: true, OneOf: []reflect.Type{reflect.TypeFor[int]()}},
		"MaxBytes":              &state.Field[*refClient]{Name: "x", Ephemeral: true, NoCopy: true, MaxBytes: 1},
		"the handler merge_map": &state.Field[map[string]func()]{Name: "x", Ephemeral: true, NoCopy: true, Handler: state.MergeMap[map[string]func()]()},
		"the handler union":     &state.Field[[]chan int]{Name: "x", Ephemeral: true, NoCopy: true, Handler: state.Union[[]chan int]()},
		"the handler sum":       &state.Field[int]{Name: "x", Ephemeral: true, NoCopy: true, Handler: state.Sum[int]()},
		"the handler max":       &state.Field[int]{Name: "x", Ephemeral: true, NoCopy: true, Handler: state.Max[int]()},
	} {
		_, err := state.NewSchema(part)
		require.ErrorContains(t, err, "cannot have "+want)
	}
	_, err := state.NewSchema(&state.Field[state.Masked]{Name: "x", Ephemeral: true, NoCopy: true})
	require.ErrorIs(t, err, state.ErrWrongType)
	for _, part := range []state.Part{
		&state.Field[chan int]{Name: "x", Ephemeral: true}, &state.Field[chan int]{Name: "x", NoCopy: true}, &state.Field[chan int]{Name: "x"},
	} {
		_, err := state.NewSchema(part)
		require.ErrorIs(t, err, state.ErrWrongType, "only both settings together make a reference")
	}
	f := &state.Field[[]chan int]{Name: "x", Ephemeral: true, NoCopy: true}
	st := state.New(state.MustSchema(f))
	require.ErrorIs(t, f.SetWith(st, nil, state.Union[[]chan int]()), state.ErrWrongType)
	require.ErrorIs(t, st.KV().SetWith("x", []chan int{}, state.Union[[]chan int]()), state.ErrWrongType)
}

// A schema with references is JSON like any other.
func TestSchemasWithReferencesAreParsedAgain(t *testing.T) {
	schema := state.MustSchema(
		&state.Field[io.Reader]{Name: "reader", Ephemeral: true, NoCopy: true},
		&state.Field[[]*refClient]{Name: "clients", Ephemeral: true, NoCopy: true, Handler: state.KeepLast[[]*refClient](3)},
		&state.Field[chan int]{Name: "chan", Ephemeral: true, NoCopy: true},
	)
	text, err := json.Marshal(schema)
	require.NoError(t, err)
	parsed, err := state.ParseSchema(text)
	require.NoError(t, err)
	again, err := json.Marshal(parsed)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	st := state.New(parsed)
	require.NoError(t, st.KV().Set("chan", make(chan int)))
}
