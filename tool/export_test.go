package tool

import (
	"context"

	"github.com/agentstate/state"
)

// Plan returns the batches in which Run makes calls.
func Plan(tools []*Tool, calls []state.ToolCall) [][]int {
	s, err := BeginStep(context.Background(), state.New(nil), nil, calls)
	if err != nil {
		panic(err)
	}
	box := newToolbox(tools)
	for i, c := range calls {
		s.calls[i].tool, _ = box.named(c.Name)
	}
	return plan(s.calls)
}
