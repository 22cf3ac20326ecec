package workspace_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Submit returns when the message is stored. A message that arrives during a run
// waits in the queue, and one whose WhenBusy is BusyReject is rejected.
func ExampleManager_Submit() {
	ctx := context.Background()
	started, proceed := make(chan bool, 2), make(chan bool)
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(context.Context, *workspace.Run) error {
			started <- true
			<-proceed
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	for i, busy := range []workspace.WhenBusy{workspace.BusyDefault, workspace.BusyDefault, workspace.BusyReject} {
		out, err := m.Submit(ctx, "ann", workspace.Message{ID: fmt.Sprint(i), Content: state.UserText("Hello!"), WhenBusy: busy})
		fmt.Println(out.Status, err)
		if i == 0 {
			<-started
		}
	}
	view, err := m.View(ctx, "ann")
	fmt.Println(view.Run.Message.ID, len(view.Queue), err)
	close(proceed)
	fmt.Println(m.Wait(ctx), m.Close())
	// Output:
	// started <nil>
	// queued <nil>
	// rejected <nil>
	// 0 1 <nil>
	// <nil> <nil>
}
