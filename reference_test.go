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
)

// The tests of this file are about fields that are Ephemeral and NoCopy, whose
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
	got := all.Or(st, nil)
	require.Len(t, got, len(want))
	i := 0
	for _, v := range state.ListItems(st, all, 0) {
		require.True(t, v == want[i] && got[i] == want[i])
		i++
	}
	require.Equal(t, 5, i)
	kept := last.Or(st, nil)
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
