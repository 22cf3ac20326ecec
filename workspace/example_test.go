package workspace_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func Example() {
	ctx := context.Background()
	visits := &state.Field[int]{Name: "visits", Handler: state.Sum[int]()}
	db := store.NewMemory() // a database, outside of examples
	m, err := workspace.Open(ctx, db, &workspace.Options{
		Schema: state.MustSchema(visits),
		Run: func(ctx context.Context, run *workspace.Run) error { // one at a time for each user
			if err := visits.Set(run.State(), 1); err != nil {
				return err
			}
			run.SetReply(fmt.Sprintf("Hello %s! This is visit %d.", run.UserID(), visits.GetOr(run.State(), 0)))
			return nil // all of it is stored, and the message is done
		},
	})
	if err != nil {
		panic(err)
	}
	for _, id := range []string{"a", "b", "b"} {
		out, err := m.Handle(ctx, "ann", workspace.Message{ID: id, Content: state.UserText("Hello!")})
		fmt.Println(out.Status, out.Reply, err)
	}
	// Output:
	// done Hello ann! This is visit 1. <nil>
	// done Hello ann! This is visit 2. <nil>
	// duplicate Hello ann! This is visit 2. <nil>
}
