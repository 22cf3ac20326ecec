package tool

import (
	"context"

	"github.com/agentstate/state"
)

// Answer makes the calls of one step as [Run] does, and adds the results to the
// history of st in one version, as [state.History.Answer] does. It returns the
// results, in the order of the calls. Suspended calls have none, and stay open.
//
//	err := st.History().Append(state.InferenceResult{Output: output}) // what the model has said
//	results, err := tool.Answer(ctx, st, tools, st.History().Pending())
//
// With [state.History.Pending], a process that goes on where another one has
// stopped makes the calls that have been left, in the same way.
//
// The error is that of Run, without results, or that of History.Answer, such as
// [state.ErrUnknownCall] if the calls are not in the history. With the latter the
// calls have been made, and their results are returned.
func Answer(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall) ([]Result, error) {
	results, err := Run(ctx, st, tools, calls)
	if err != nil {
		return nil, err
	}
	return addResults(st, results)
}

// Answer is [Step.End], and adds the results to the history of the state of the
// step, as the function [Answer] does.
func (s *Step) Answer() ([]Result, error) { return addResults(s.st, s.End()) }

func addResults(st *state.State, results []Result) ([]Result, error) {
	messages := make([]state.ToolResultMessage, len(results))
	for i, r := range results {
		messages[i] = r.Message
	}
	return results, st.History().Answer(messages...)
}
