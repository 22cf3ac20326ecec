package transcript

import "github.com/agentstate/state"

// Pending returns the calls that have no result, in their order: those to
// answer before the model is asked again.
func Pending(msgs []state.Message) []state.ToolCall {
	var pending []state.ToolCall
	for _, c := range pair(msgs).calls {
		if c.result == none {
			pending = append(pending, *c.ToolCall)
		}
	}
	return pending
}
