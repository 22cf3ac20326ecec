package tool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/tool"
)

// A nil context used to panic. It is an error, as in package state, whichever
// function is given it.
func TestANilContextIsAnError(t *testing.T) {
	var none context.Context
	called := false
	x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) { called = true; return "", nil }))
	stateful := tool.Must(tool.NewStateful("y", "", func(context.Context, *state.State, struct{}) (string, error) { called = true; return "", nil }))
	tools, calls := []*tool.Tool{x, stateful}, []state.ToolCall{{ID: "a", Name: "x"}, {ID: "b", Name: "y"}}
	st := state.New(nil)
	errs := map[string]error{}
	for i, each := range tools {
		_, errs["Tool.Call of "+each.Name()] = each.Call(none, st, "")
		for name, step := range map[string]*tool.Step{
			"Begin":     must(tool.BeginStep(none, st, tools, calls)),
			"Step.Call": must(tool.BeginStep(t.Context(), st, tools, calls)),
		} {
			ctx := none
			if name == "Begin" {
				ctx = t.Context()
			}
			r, err := step.Call(ctx, i)
			require.NoError(t, err)
			errs[name+" of "+each.Name()] = r.Err
			require.Equal(t, []tool.Result{r}, step.End())
		}
	}
	results := must(tool.Run(none, st, tools, calls))
	require.Len(t, results, 2)
	for _, r := range results {
		errs["Run of "+r.Message.Call().Name] = r.Err
		require.Equal(t, r.Err.Error(), r.Message.Text())
	}
	for name, err := range errs {
		require.ErrorIs(t, err, state.ErrInvalid, name)
		require.Contains(t, []string{`tool "x": the context is nil`, `tool "y": the context is nil`}, err.Error(), name)
	}
	require.Len(t, errs, 8)
	require.False(t, called)
	_, ok := tool.CallOf(none)
	require.False(t, ok)
}

// A field that the schema does not have is a mistake of the program, and so is a
// handler that is not for its field. The model
// could do nothing about it, and a function that has been called has had its
// effects.
func TestAFieldThatTheSchemaDoesNotHaveIsAMistakeOfTheProgram(t *testing.T) {
	have := &state.Field[string]{Name: "order"}
	st := state.New(state.MustSchema(have, &state.Field[int]{Name: "count"}))
	none, other := &state.Field[string]{Name: "orders"}, &state.Field[string]{Name: "count"}
	var output *tool.OutputError
	var input *tool.InputError
	for _, tt := range []struct {
		option tool.Option
		as     any
		is     error
		text   string
	}{
		{tool.To(none, ""), &output, state.ErrUnknownField, `tool "x": field "orders": unknown field`},
		{tool.To(none, "").OrDelete(), &output, state.ErrUnknownField, `tool "x": field "orders": unknown field`},
		{tool.ToName("orders", ""), &output, state.ErrUnknownField, `tool "x": field "orders": unknown field`},
		{tool.To(other, ""), &output, state.ErrWrongType, `tool "x": field "count": want int, got string`},
		{tool.ToName("count", "").With(state.Append[[]string]()), &output, state.ErrWrongType, `tool "x": field "count": handler: want int, got []string`},
		{tool.ToName("count", "").With(state.NewHandler[int]("sum", nil)), &output, state.ErrInvalid, `tool "x": field "count": refused by its handler or validation`},
		{tool.To(state.Messages, "").With(state.KeepLast[[]state.Message](1)), &output, state.ErrWrongType,
			`tool "x": field "messages": handler: want one that keeps tool calls with their results, got keep_last(1)`},
		{tool.From(none, "p"), &input, state.ErrUnknownField, `tool "x": parameter "p": field "orders": unknown field`},
		{tool.FromName("orders", "p"), &input, state.ErrUnknownField, `tool "x": parameter "p": field "orders": unknown field`},
	} {
		called := false
		fn := func(context.Context, state.JSON) (state.JSON, error) { called = true; return `"a"`, nil }
		const schema = `{"type":"object","properties":{"p":{}}}`
		tools := []*tool.Tool{tool.Must(tool.Raw("x", "", schema, fn, tt.option)), tool.Must(tool.Raw("y", "", schema, fn, tool.To(have, "")))}
		calls := []state.ToolCall{{ID: "1", Name: "y"}}
		require.NoError(t, st.History().Reset([]state.InferenceResult{{Output: []state.Message{state.ToolCalls(calls...)}}}))
		errs := map[string]error{}
		_, errs["Begin"] = tool.BeginStep(t.Context(), st, tools, calls)
		_, errs["Run"] = tool.Run(t.Context(), st, tools, calls)
		_, errs["Answer"] = tool.Answer(t.Context(), st, tools, calls)
		_, errs["Call"] = tools[0].Call(t.Context(), st, "")
		for name, err := range errs {
			require.EqualError(t, err, tt.text, name)
			require.ErrorIs(t, err, tt.is, name)
			require.ErrorAs(t, err, tt.as, name)
		}
		require.False(t, called)
		require.False(t, have.Has(st))
		require.Equal(t, calls, callkeys.Calls(st.History().Pending()...), "the call stays open")
	}

	// Rights are not a mistake of the program: the call fails.
	team := state.New(state.MustSchema(state.Team{"a": nil, "b": nil}, &state.Field[string]{Name: "order", Owner: "a"}))
	x := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return `"a"`, nil }, tool.To(have, "")))
	results, err := tool.Run(t.Context(), team.As("b"), []*tool.Tool{x, nil}, []state.ToolCall{{Name: "x"}})
	require.NoError(t, err)
	require.ErrorIs(t, results[0].Err, state.ErrDenied)
}
