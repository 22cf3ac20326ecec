package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

type hit struct {
	ID    string `json:"id"`
	Score int    `json:"score"`
}

func TestToFuncIsBetweenResultAndField(t *testing.T) {
	ids := &state.Field[[]string]{Name: "ids"}
	count := &state.Field[int]{Name: "count", Handler: state.Sum[int]()}
	best := &state.Field[*hit]{Name: "best"}
	schema := state.MustSchema(ids, count, best)
	errNone := errors.New("no hits at " + canary)
	called := 0
	opts := []tool.Option{
		tool.ToFunc(ids, "hits", func(hits []hit) ([]string, error) {
			called++
			var list []string // nil for no hits
			for _, h := range hits {
				list = append(list, h.ID)
			}
			return list, nil
		}),
		tool.ToFunc(count, "hits", func(hits []hit) (int, error) { return len(hits), nil }),
		tool.ToFunc(best, "hits", func(hits []hit) (*hit, error) {
			switch {
			case len(hits) == 0:
				return nil, nil
			case hits[0].ID == "fail":
				return nil, errNone
			case hits[0].ID == "panic":
				panic(canary)
			}
			return &hits[0], nil
		}),
	}
	type result struct {
		Hits []hit `json:"hits"`
	}
	var found []hit
	typed := tool.Must(tool.New("x", "", func(context.Context, struct{}) (result, error) { return result{found}, nil }, opts...))
	raw := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) {
		return state.JSONOf(result{found})
	}, opts...))
	for _, x := range []*tool.Tool{typed, raw} {
		st := state.New(schema)
		called, found = 0, []hit{{"a", 2}, {"b", 1}}
		out, err := x.Call(t.Context(), st, "")
		require.NoError(t, err)
		require.Equal(t, 1, called, "once for each call")
		require.Equal(t, state.JSON(`{"hits":[{"id":"a","score":2},{"id":"b","score":1}]}`), out, "the model reads the result")
		require.Equal(t, map[string]any{"ids": []string{"a", "b"}, "count": 2, "best": hit{"a", 2}}, unpointed(st.KV().All()))
		for _, none := range [][]hit{nil, {}} {
			found = none
			_, err = x.Call(t.Context(), st, "")
			require.NoError(t, err)
			require.Equal(t, map[string]any{"ids": []string{"a", "b"}, "count": 2, "best": hit{"a", 2}}, unpointed(st.KV().All()))
		}
		before := st.Version()
		found = []hit{{"fail", 0}}
		_, err = x.Call(t.Context(), st, "")
		require.ErrorIs(t, err, errNone)
		var refused *tool.OutputError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "best", refused.Field)
		require.NotContains(t, err.Error(), canary)
		found = []hit{{"panic", 0}}
		_, err = x.Call(t.Context(), st, "")
		var panicked *tool.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, before, st.Version(), "a call that fails writes nothing")
	}
	wrong := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return `{"hits":["a"]}`, nil }, opts[0]))
	_, err := wrong.Call(t.Context(), state.New(schema), "")
	require.EqualError(t, err, `tool "x": field "ids": want object, got string`)
}

// unpointed replaces pointers by what they point to.
func unpointed(values map[string]any) map[string]any {
	for name, v := range values {
		if p, ok := v.(*hit); ok {
			values[name] = *p
		}
	}
	return values
}

func TestToFuncRefuses(t *testing.T) {
	one := func(int) (string, error) { return "", nil }
	for _, c := range []struct {
		name string
		opt  tool.Option
		want string
	}{
		{"another type of the member", tool.ToFunc(coreText, "text", one), `ToFunc: field "text", key "text": want integer, got string`},
		{"an unknown key", tool.ToFunc(coreText, "none", one), `the result has no such key`},
		{"no function", tool.ToFunc[int](coreText, "count", nil), `ToFunc: key "count": no function`},
		{"no field", tool.ToFunc((*state.Field[string])(nil), "count", one), `ToFunc: key "count": no field`},
		{"a type that cannot be read", tool.ToFunc(coreText, "count", func(chan int) (string, error) { return "", nil }), `chan int`},
		{"the zero output", tool.Output{}, `an output of no field`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tool.New("x", "", coreFunc, c.opt)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, tool.ErrInvalidTool)
		})
	}
	_, err := tool.New("x", "", coreFunc, tool.ToFunc(coreText, "count", one), tool.To(coreCount, "count"))
	require.NoError(t, err)
}

// TestEveryErrorHasAKind makes an error of each kind.
func TestEveryErrorHasAKind(t *testing.T) {
	st := state.New(state.MustSchema(coreText, coreCount))
	require.NoError(t, coreCount.Set(st, 7))
	make := func(fn func() (state.JSON, error), opts ...tool.Option) *tool.Tool {
		return tool.Must(tool.Raw("x", "", `{"properties":{"p":{"type":"string"}},"required":["p"]}`, func(context.Context, state.JSON) (state.JSON, error) { return fn() }, opts...))
	}
	fine := func() (state.JSON, error) { return `{"a":"x"}`, nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var (
		arguments *tool.ArgumentError
		input     *tool.InputError
		output    *tool.OutputError
		panicked  *tool.PanicError
	)
	for _, c := range []struct {
		name string
		tool *tool.Tool
		args state.JSON
		ctx  context.Context
		is   error
		as   any
		text string
	}{
		{name: "bad arguments", tool: make(fine), args: `{"p":1}`, as: &arguments, text: "tool \"x\": bad arguments:\n- \"p\": want string, got number"},
		{name: "an unset field", tool: make(fine, tool.From(coreText, "p")), is: state.ErrNotFound, as: &input, text: `tool "x": parameter "p": field "text": no value, and the parameter is required`},
		{name: "a field of another type", tool: make(fine, tool.FromName("count", "p")), as: &input, text: `tool "x": parameter "p": field "count": want string, got number`},
		{name: "a result that is not JSON", tool: make(func() (state.JSON, error) { return `{`, nil }), args: `{"p":""}`, as: &output, text: `tool "x": the result is not valid JSON`},
		{name: "a result without keys", tool: make(func() (state.JSON, error) { return `[]`, nil }, tool.To(coreText, "a")), args: `{"p":""}`, as: &output, text: `tool "x": the result is not an object but array: its keys cannot be written to fields`},
		{name: "an output of another type", tool: make(fine, tool.ToName("count", "a")), args: `{"p":""}`, is: state.ErrWrongType, as: &output, text: `tool "x": field "count": want integer, got string`},
		{name: "a panic", tool: make(func() (state.JSON, error) { panic(1) }), args: `{"p":""}`, as: &panicked, text: `tool "x": the function panicked`},
		{name: "an unknown tool", args: `{"p":""}`, is: tool.ErrUnknownTool, text: `tool "x" not found; there are none`},
		{name: "an ended context", tool: make(fine), args: `{"p":""}`, ctx: ended, is: context.Canceled, text: `tool "x": not called: context canceled`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			step := must(tool.BeginStep(c.ctx, st, []*tool.Tool{c.tool}, []state.ToolCall{{Name: "x", Input: c.args}}))
			_, called := told(step.Call(t.Context(), 0))
			run := must(tool.Run(c.ctx, st, []*tool.Tool{c.tool}, []state.ToolCall{{Name: "x", Input: c.args}}))[0].Err
			for _, err := range []error{called, run} {
				require.EqualError(t, err, c.text)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				}
				if c.as != nil {
					require.ErrorAs(t, err, c.as)
				}
			}
		})
	}
	for _, name := range []string{"", "my tool!", strings.Repeat("x", 129)} {
		_, err := tool.New(name, "", coreFunc)
		require.ErrorIs(t, err, tool.ErrInvalidTool)
	}
	_, err := tool.Updater(nil, "x")
	require.ErrorIs(t, err, tool.ErrInvalidTool)
	_, err = tool.Raw("x", "", `{`, coreRaw)
	require.ErrorIs(t, err, tool.ErrInvalidTool)
}

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
		require.Equal(t, "old", whole.GetOr(st, nil), "%s: the text is for the model and is not written", name)
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
					require.Equal(t, f.GetOr(want, nil), f.GetOr(st, nil), "%s, %s, %s, %s", name, value, option, door)
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
						require.Equal(t, f.GetOr(want, nil), f.GetOr(st, nil), "%s, %s, %s, %s", name, value, option, door)
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
		require.Equal(t, docs.GetOr(a, nil), docs.GetOr(b, nil))
		require.GreaterOrEqual(t, len(docs.GetOr(a, nil)), 1, "a result has deleted elements")
		if _, err := last.Get(a); err != nil {
			t.Fatal("a result has deleted a field")
		}
	})
}
