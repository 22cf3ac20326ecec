package workspace_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Cancel ends the run with the id that View shows. Its sender hears the reason.
func ExampleManager_Cancel() {
	ctx := context.Background()
	started := make(chan bool)
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(ctx context.Context, _ *workspace.Run) error {
			close(started)
			<-ctx.Done()
			fmt.Println("cancelled:", errors.Is(context.Cause(ctx), workspace.ErrRunCancelled))
			return ctx.Err()
		},
	})
	if err != nil {
		panic(err)
	}
	if _, err := m.Submit(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("Hello!")}); err != nil {
		panic(err)
	}
	<-started
	view, err := m.View(ctx, "ann")
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Cancel(ctx, "ann", view.Run.ID, "it takes too long"), m.Wait(ctx))
	out, err := m.Await(ctx, "ann", "1")
	fmt.Println(out.Status, out.Reason, err)
	fmt.Println(m.Close())
	// Output:
	// cancelled: true
	// <nil> <nil>
	// failed it takes too long <nil>
	// <nil>
}
