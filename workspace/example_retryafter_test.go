package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run whose model is overloaded asks for another attempt. What it has
// committed is not done again.
func ExampleRetryAfter() {
	plan := &state.Field[string]{Name: "plan"}
	answer := func(ctx context.Context, run *workspace.Run) error {
		if !plan.Has(run.State()) {
			fmt.Println("planning")
			if err := plan.Set(run.State(), "ask the model"); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
		}
		fmt.Println("attempt", run.Attempt(), "to", plan.GetOr(run.State(), ""))
		if run.Attempt() == 0 {
			return workspace.RetryAfter(errors.New("429 Too Many Requests"), 10*time.Millisecond)
		}
		run.SetReply("Done.")
		return nil
	}
	m, err := workspace.Open(context.Background(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(plan),
		Run:    answer,
	})
	if err != nil {
		panic(err)
	}
	out, err := m.Handle(context.Background(), "ann", workspace.Message{Content: state.UserText("Hello!")})
	fmt.Println(out.Status, out.Reply, err)
	fmt.Println(m.Close())
	// Output:
	// planning
	// attempt 0 to ask the model
	// attempt 1 to ask the model
	// done Done. <nil>
	// <nil>
}
