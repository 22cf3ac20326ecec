package loop_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
)

// An answer that is cut off ends the run, and what was said stays.
func ExampleStopError() {
	answer := []state.Message{state.AssistantText("There are three reasons. The first")}
	desk := &loop.Loop{Agents: map[string]loop.Agent{"support": {
		Ask: func(ctx context.Context, turn *loop.Turn) error {
			return turn.Said(ctx, state.InferenceResult{Output: answer, Stop: state.StopLength, StopWord: "max_tokens"})
		},
	}}}
	st := state.New(state.MustSchema(state.Team{"support": nil}))
	_ = state.Messages.Set(st, []state.Message{state.UserText("Why?")})
	reply, err := desk.Run(context.Background(), st)
	var stopped *loop.StopError
	if errors.As(err, &stopped) && errors.Is(err, loop.ErrStopped) {
		fmt.Printf("%q is not all: %s (%s)\n", reply, stopped.Stop, stopped.Word)
	}
	// Output:
	// "There are three reasons. The first" is not all: length (max_tokens)
}
