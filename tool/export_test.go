package tool

import "github.com/agentstate/state"

// Plan returns the batches in which Run makes calls.
func Plan(tools []*Tool, calls []state.ToolCall) [][]int {
	box := newToolbox(tools)
	return box.plan(box.indexes(calls))
}
