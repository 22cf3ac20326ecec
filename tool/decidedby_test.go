package tool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A tool that says who decides about its calls, and not about which, makes none of them
// before somebody has decided.
func TestDecidedByAloneLetsEachCallWait(t *testing.T) {
	type input struct {
		Amount int `json:"amount"`
	}
	never := tool.NeedsApproval(func(context.Context, input) (string, bool) { return "", false })
	for name, c := range map[string]struct {
		options []tool.Option
		made    bool
	}{
		"alone":                  {[]tool.Option{tool.DecidedBy("boss")}, false},
		"nobody but the host":    {[]tool.Option{tool.DecidedBy()}, false},
		"in front of a check":    {[]tool.Option{tool.DecidedBy("boss"), never}, true},
		"behind a check":         {[]tool.Option{never, tool.DecidedBy("boss")}, true},
		"a time, and no decider": {[]tool.Option{tool.Expires(1)}, true},
	} {
		made := false
		pay := tool.Must(tool.New("pay", "Pays.", func(context.Context, input) (string, error) { made = true; return "paid", nil }, c.options...))
		raw := tool.Must(tool.Raw("raw", "Pays.", `{"type":"object"}`, func(context.Context, state.JSON) (state.JSON, error) { return `"paid"`, nil }, tool.DecidedBy("boss")))
		st := state.New(state.MustSchema(state.Team{"desk": {"boss"}}))
		results, err := tool.Run(t.Context(), st, []*tool.Tool{pay, raw}, []state.ToolCall{{ID: "1", Name: "pay", Input: `{"amount":1}`}, {ID: "2", Name: "raw", Input: `{}`}})
		require.NoError(t, err)
		require.Equal(t, c.made, made, name)
		var answered []int // a call that waits has no result
		for _, r := range results {
			answered = append(answered, r.Index)
		}
		require.Equal(t, map[bool][]int{true: {0}}[c.made], answered, name)
	}
}
