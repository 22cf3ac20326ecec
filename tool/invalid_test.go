package tool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
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
			"Begin":     tool.Begin(none, st, tools, calls),
			"Step.Call": tool.Begin(t.Context(), st, tools, calls),
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
	results := tool.Run(none, st, tools, calls)
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

func TestANilToolIsAnError(t *testing.T) {
	for _, x := range []*tool.Tool{nil, {}} {
		_, err := x.Call(t.Context(), state.New(nil), "")
		require.ErrorIs(t, err, tool.ErrInvalidTool)
		require.EqualError(t, err, "tool: the Tool is nil, or no constructor has made it")
	}
}

// The model chooses the name of a call, which may contain what it has seen
// elsewhere.
func TestTheNameOfAnUnknownToolIsMasked(t *testing.T) {
	const number = "4242-4242-4242-4242"
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	require.NoError(t, card.Set(st, number))
	calls := []state.ToolCall{{ID: "a", Name: "pay " + number}}
	step := tool.Begin(t.Context(), st, nil, calls)
	r, err := step.Call(t.Context(), 0)
	require.NoError(t, err)
	_, again := step.Call(t.Context(), 0)
	require.ErrorIs(t, again, tool.ErrNotPending)
	require.NotContains(t, again.Error(), number)
	for _, r := range append(tool.Run(t.Context(), st, nil, calls), r) {
		require.ErrorIs(t, r.Err, tool.ErrUnknownTool)
		require.EqualError(t, r.Err, `tool "pay [SECRET]" not found; there are none`)
		require.Equal(t, r.Err.Error(), r.Message.Text())
	}
}
