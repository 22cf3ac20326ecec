package tool_test

import (
	"context"
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
			step := must(tool.Begin(c.ctx, st, []*tool.Tool{c.tool}, []state.ToolCall{{Name: "x", Input: c.args}}))
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
