package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A model that reads null asks again, or reports that nothing was found. A nil
// pointer is a value that is not there, and stays null.
func TestAToolThatReturnsNothingSaysThatItWasDone(t *testing.T) {
	type none struct{}
	whole := &state.Field[any]{Name: "whole"}
	st := state.New(state.MustSchema(whole))
	require.NoError(t, whole.Set(st, "old"))
	to := tool.To(whole, "")
	const done = `"note successfully executed"`
	for name, tt := range map[string]struct {
		tool *tool.Tool
		want state.JSON
	}{
		"a raw tool":               {tool.Must(tool.Raw("note", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return "", nil }, to)), done},
		"a nil interface":          {tool.Must(tool.New("note", "", func(context.Context, none) (any, error) { return nil, nil }, to)), done},
		"a stateful tool":          {tool.Must(tool.NewStateful("note", "", func(context.Context, *state.State, none) (any, error) { return nil, nil }, to)), done},
		"a struct without members": {tool.Must(tool.New("note", "", func(context.Context, none) (none, error) { return none{}, nil })), done},
		"null":                     {tool.Must(tool.Raw("note", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return "null", nil }, to)), `null`},
		"a nil pointer":            {tool.Must(tool.New("note", "", func(context.Context, none) (*string, error) { return nil, nil })), `null`},
		"an empty text":            {tool.Must(tool.New("note", "", func(context.Context, none) (string, error) { return "", nil })), `""`},
		"an empty list":            {tool.Must(tool.New("note", "", func(context.Context, none) ([]string, error) { return nil, nil })), `[]`},
	} {
		out, err := tt.tool.Call(t.Context(), st, "")
		require.NoError(t, err, name)
		require.Equal(t, tt.want, out, name)
		results, err := tool.Run(t.Context(), st, []*tool.Tool{tt.tool}, []state.ToolCall{{Name: "note"}})
		require.NoError(t, err, name)
		require.Equal(t, tt.want, results[0].Message.Content(), name)
		require.Equal(t, "old", whole.Or(st, nil), "%s: the text is for the model and is not written", name)
	}
}

// listOut is a result whose member docs is a list.
type listOut struct {
	Docs []string `json:"docs"`
}

// doors are all ways by which a Go value becomes the result of a tool, under
// the key docs or, if it ends in "whole", as the whole result.
func doors(t *testing.T, docs []string, opts func(key string) []tool.Option) map[string]*tool.Tool {
	type none struct{}
	viaJSON := func(v any) state.JSON {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return state.JSON(data)
	}
	var boxed any
	if docs != nil {
		boxed = docs
	}
	pointer := &docs
	if docs == nil {
		pointer = nil
	}
	empty := viaJSON(docs)
	if docs == nil {
		empty = ""
	}
	keyed, whole := opts("docs"), opts("")
	return map[string]*tool.Tool{
		"New":   tool.Must(tool.New("x", "", func(context.Context, none) (listOut, error) { return listOut{docs}, nil }, keyed...)),
		"New *": tool.Must(tool.New("x", "", func(context.Context, none) (*listOut, error) { return &listOut{docs}, nil }, keyed...)),
		"New map": tool.Must(tool.New("x", "", func(context.Context, none) (map[string][]string, error) {
			return map[string][]string{"docs": docs}, nil
		}, keyed...)),
		"New map of any": tool.Must(tool.New("x", "", func(context.Context, none) (map[string]any, error) { return map[string]any{"docs": docs}, nil }, keyed...)),
		"New map of nil": tool.Must(tool.New("x", "", func(context.Context, none) (map[string]any, error) { return map[string]any{"docs": boxed}, nil }, keyed...)),
		"New any":        tool.Must(tool.New("x", "", func(context.Context, none) (any, error) { return listOut{docs}, nil }, keyed...)),
		"New *any":       tool.Must(tool.New("x", "", func(context.Context, none) (any, error) { return &listOut{docs}, nil }, keyed...)),
		"New any in a struct": tool.Must(tool.New("x", "", func(context.Context, none) (struct {
			Docs any `json:"docs"`
		}, error) {
			return struct {
				Docs any `json:"docs"`
			}{docs}, nil
		}, keyed...)),
		"New pointer in a struct": tool.Must(tool.New("x", "", func(context.Context, none) (struct {
			Docs *[]string `json:"docs"`
		}, error) {
			return struct {
				Docs *[]string `json:"docs"`
			}{pointer}, nil
		}, keyed...)),
		"NewStateful": tool.Must(tool.NewStateful("x", "", func(context.Context, *state.State, none) (listOut, error) { return listOut{docs}, nil }, keyed...)),
		"Raw":         tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return viaJSON(listOut{docs}), nil }, keyed...)),
		"RawStateful": tool.Must(tool.RawStateful("x", "", `{}`, func(context.Context, *state.State, state.JSON) (state.JSON, error) {
			return viaJSON(listOut{docs}), nil
		}, keyed...)),
		"New whole":       tool.Must(tool.New("x", "", func(context.Context, none) ([]string, error) { return docs, nil }, whole...)),
		"New * whole":     tool.Must(tool.New("x", "", func(context.Context, none) (*[]string, error) { return pointer, nil }, whole...)),
		"New any whole":   tool.Must(tool.New("x", "", func(context.Context, none) (any, error) { return docs, nil }, whole...)),
		"New nil whole":   tool.Must(tool.New("x", "", func(context.Context, none) (any, error) { return boxed, nil }, whole...)),
		"Raw whole":       tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return viaJSON(docs), nil }, whole...)),
		"Raw empty whole": tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return empty, nil }, whole...)),
	}
}

// TestTheSameValueDoesTheSameThroughEachDoor has each door return nothing, an
// empty list and a list to fields with each kind of handler. Nothing adds
// nothing to a field that merges and leaves one that is replaced.
func TestTheSameValueDoesTheSameThroughEachDoor(t *testing.T) {
	handlers := map[string]state.Handler[[]string]{
		"default":    {},
		"append":     state.Append[[]string](),
		"keep last":  state.KeepLast[[]string](3),
		"union":      state.Union[[]string](),
		"replace":    state.Replace[[]string](),
		"first wins": state.FirstWins[[]string](),
		"last wins":  state.LastWins[[]string](),
		"own": state.NewHandler("own", func(current []string, _ bool, update []string) ([]string, error) {
			return append(update, current...), nil
		}),
	}
	for name, h := range handlers {
		outputs := map[string]func(f *state.Field[[]string], key string) tool.Output{
			"To":     func(f *state.Field[[]string], key string) tool.Output { return tool.To(f, key) },
			"With":   func(f *state.Field[[]string], key string) tool.Output { return tool.To(f, key).With(h) },
			"ToName": func(f *state.Field[[]string], key string) tool.Output { return tool.ToName(f.Name, key) },
			"ToFunc": func(f *state.Field[[]string], key string) tool.Output {
				return tool.ToFunc(f, key, func(in []string) ([]string, error) { return in, nil })
			},
		}
		for value, docs := range map[string][]string{"nil": nil, "empty": {}, "one": {"new"}} {
			for option, output := range outputs {
				f := &state.Field[[]string]{Name: "docs", Handler: h}
				schema := state.MustSchema(f)
				// What the library does with the value without a tool.
				want := state.New(schema)
				require.NoError(t, f.Replace(want, []string{"old"}))
				if docs != nil {
					require.NoError(t, f.Set(want, docs))
				}
				for door, x := range doors(t, docs, func(key string) []tool.Option { return []tool.Option{output(f, key)} }) {
					st := state.New(schema)
					require.NoError(t, f.Replace(st, []string{"old"}))
					_, err := x.Call(t.Context(), st, "")
					require.NoError(t, err)
					require.Equal(t, f.Or(want, nil), f.Or(st, nil), "%s, %s, %s, %s", name, value, option, door)
					if docs == nil {
						require.EqualValues(t, 1, st.Version(), "%s, %s, %s wrote", name, option, door)
					}
				}
				for door, x := range doors(t, docs, func(key string) []tool.Option { return []tool.Option{output(f, key).OrDelete()} }) {
					st := state.New(schema)
					require.NoError(t, f.Replace(st, []string{"old"}))
					_, err := x.Call(t.Context(), st, "")
					require.NoError(t, err)
					_, err = f.Get(st)
					if docs == nil {
						require.ErrorIs(t, err, state.ErrNotFound, "%s, %s, %s, %s", name, value, option, door)
					} else {
						require.Equal(t, f.Or(want, nil), f.Or(st, nil), "%s, %s, %s, %s", name, value, option, door)
					}
				}
			}
		}
	}
}

// TestNullLeavesFieldsOfEachType has a null come to fields of types that could
// hold one, and to other handlers.
func TestNullLeavesFieldsOfEachType(t *testing.T) {
	text := "old"
	pointer := &state.Field[*string]{Name: "pointer"}
	free := &state.Field[any]{Name: "free"}
	total := &state.Field[int]{Name: "total", Handler: state.Sum[int]()}
	dict := &state.Field[map[string]int]{Name: "dict", Handler: state.MergeMap[map[string]int]()}
	counts := &state.Field[map[string]int]{Name: "counts", Handler: state.MergeMap[map[string]int](state.Sum[int]())}
	raw := &state.Field[json.RawMessage]{Name: "raw"}
	schema := state.MustSchema(pointer, free, total, dict, counts, raw, state.AllowUndeclared)
	names := []string{"pointer", "free", "total", "dict", "counts", "raw", "undeclared"}
	values := map[string]any{"pointer": &text, "free": 1, "total": 2, "dict": map[string]int{"a": 1}, "counts": map[string]int{"a": 1}, "raw": json.RawMessage(`1`), "undeclared": 3}
	byType := func(key string) []tool.Option {
		return []tool.Option{tool.To(pointer, key), tool.To(free, key), tool.To(total, key), tool.To(dict, key), tool.To(counts, key), tool.To(raw, key), tool.ToName("undeclared", key)}
	}
	byName := func(key string) []tool.Option {
		var opts []tool.Option
		for _, name := range names {
			opts = append(opts, tool.ToName(name, key))
		}
		return opts
	}
	deleted := func(key string) []tool.Option {
		opts := byType(key)
		for i, o := range opts {
			opts[i] = o.(tool.Output).OrDelete()
		}
		return opts
	}
	for name, opts := range map[string]func(string) []tool.Option{"by type": byType, "by name": byName, "deleted": deleted} {
		for key, result := range map[string]state.JSON{"a": `{"a":null}`, "": `null`} {
			st := state.New(schema)
			require.NoError(t, st.Patch(values))
			before := st.KV().All()
			x := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return result, nil }, opts(key)...))
			_, err := x.Call(t.Context(), st, "")
			require.NoError(t, err)
			if name == "deleted" {
				require.Empty(t, st.KV().Keys())
				continue
			}
			require.Equal(t, before, st.KV().All(), name)
		}
	}
}

// FuzzNull compares what a result of any JSON does through a raw tool and
// through a function that returns it as a Go value.
func FuzzNull(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `{"docs":null}`, `{"docs":[]}`, `{"docs":["a"]}`, `{"docs":"a"}`, `{"docs":[null]}`, `{"docs":{}}`, `{"Docs":["a"]}`, `[]`, `"x"`, `{"docs":1}`} {
		f.Add(seed)
	}
	docs := &state.Field[[]string]{Name: "docs"}
	last := &state.Field[any]{Name: "last"}
	schema := state.MustSchema(docs, last)
	f.Fuzz(func(t *testing.T, text string) {
		if text != "" && !state.JSON(text).Valid() {
			t.Skip()
		}
		opts := []tool.Option{tool.To(docs, "docs"), tool.To(last, "docs")}
		var v any
		if text != "" {
			if json.Unmarshal([]byte(text), &v) != nil {
				t.Skip("a number that is out of range")
			}
		}
		raw := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return state.JSON(text), nil }, opts...))
		typed := tool.Must(tool.New("x", "", func(context.Context, struct{}) (any, error) { return v, nil }, opts...))
		a, b := state.New(schema), state.New(schema)
		for _, st := range []*state.State{a, b} {
			require.NoError(t, docs.Set(st, []string{"old"}))
			require.NoError(t, last.Set(st, "old"))
		}
		_, errA := raw.Call(t.Context(), a, "")
		_, errB := typed.Call(t.Context(), b, "")
		require.Equal(t, errA == nil, errB == nil, "%v, %v", errA, errB)
		require.Equal(t, docs.Or(a, nil), docs.Or(b, nil))
		require.GreaterOrEqual(t, len(docs.Or(a, nil)), 1, "a result has deleted elements")
		if _, err := last.Get(a); err != nil {
			t.Fatal("a result has deleted a field")
		}
	})
}
