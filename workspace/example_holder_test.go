package workspace_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A process that died is succeeded at once by one with the same name.
func ExampleOptions_holder() {
	ctx, db := context.Background(), store.NewMemory()
	process := db.Open() // its connection to the database
	begun := make(chan bool)
	dead, err := workspace.Open(ctx, process, &workspace.Options{Name: "desk-0", Run: func(ctx context.Context, _ *workspace.Run) error {
		close(begun)
		<-ctx.Done() // it is at work when the process dies
		return ctx.Err()
	}})
	if err != nil {
		panic(err)
	}
	message := workspace.Message{ID: "1", Content: state.UserText("Hello!")}
	if _, err := dead.Submit(ctx, "ann", message); err != nil {
		panic(err)
	}
	<-begun
	if err := process.Close(); err != nil { // as the end of the process does
		panic(err)
	}

	fmt.Println(succeed(ctx, db, "desk-0", func(_ context.Context, run *workspace.Run) error {
		fmt.Println("message", run.Message().ID, "attempt", run.Attempt())
		return nil
	}))
	// Output:
	// message 1 attempt 1
	// <nil>
}

// succeed is what a process does that begins.
func succeed(
	ctx context.Context, db store.Store, name string, handle func(context.Context, *workspace.Run) error,
) error {
	m, err := workspace.Open(ctx, db, &workspace.Options{Name: name, Run: handle})
	if err != nil {
		return err
	}
	if err := settle(ctx, m); err != nil {
		return err
	}
	return m.Shutdown(ctx)
}
