package loop_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
)

// A user has three requests an hour. What is spent is a field, which a page can show.
func ExampleBudget() {
	spent := &state.Field[loop.Spent]{Name: "spent", Handler: loop.AddSpent(), Shared: true}
	desk := &loop.Loop{
		Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, turn *loop.Turn) error {
			return turn.Said(ctx, state.InferenceResult{
				Output: []state.Message{state.AssistantText("You are welcome.")},
				Usage:  state.Usage{Input: 40, Output: 5}, // of the provider; package wire reads it
			})
		}}},
		Budget: loop.Budget{
			Tokens: 50_000, Requests: 20, // of one run
			Period: time.Hour, PeriodRequests: 3, Spent: spent,
		},
	}
	st := state.New(state.MustSchema(spent))
	for range 4 {
		_ = st.UserSays("Thank you!")
		reply, err := desk.Run(context.Background(), st)
		var stopped *loop.StopError
		if errors.As(err, &stopped) {
			fmt.Println(stopped.Stop, "-", stopped.Word)
			break
		}
		now := spent.GetOr(st, loop.Spent{})
		fmt.Println(reply, now.Requests, now.Tokens)
	}
	// Output:
	// You are welcome. 1 45
	// You are welcome. 2 90
	// You are welcome. 3 135
	// budget - period requests
}
