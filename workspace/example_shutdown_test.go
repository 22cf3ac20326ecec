package workspace_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A process that is replaced finishes its run and leaves the queue to the new
// process, which continues at once.
func ExampleManager_Shutdown() {
	ctx := context.Background()
	db := store.NewMemory() // a database, outside of examples
	started, proceed := make(chan bool, 1), make(chan bool)
	open := func(process string) *workspace.Manager {
		m, err := workspace.Open(ctx, db, &workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			if process == "old" {
				started <- true
				<-proceed
			}
			fmt.Println(process, "process handles message", run.Message().ID)
			return nil
		}})
		if err != nil {
			panic(err)
		}
		return m
	}
	m := open("old")
	for _, id := range []string{"1", "2"} {
		if _, err := m.Submit(ctx, "ann", workspace.Message{ID: id, Content: state.UserText("Hello!")}); err != nil {
			panic(err)
		}
	}
	<-started
	deadline, cancel := context.WithTimeout(ctx, time.Minute) // then the run is given up
	defer cancel()
	ended := make(chan error)
	go func() { ended <- m.Shutdown(deadline) }()
	for { // until the old process refuses messages
		_, err := m.Submit(ctx, "ann", workspace.Message{ID: "2", Content: state.UserText("Hello!")})
		if err != nil {
			fmt.Println(err)
			break
		}
	}
	close(proceed)
	fmt.Println(<-ended)

	m = open("new")
	fmt.Println(settle(ctx, m), m.Wait(ctx), m.Close())
	// Output:
	// workspace: submit for "ann": workspace: closed
	// old process handles message 1
	// <nil>
	// new process handles message 2
	// <nil> <nil> <nil>
}
