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

// A message whose run has failed is a dead letter, until Retry handles it again
// or Discard drops it. Delete and Expire remove a user.
func ExampleManager_Retry() {
	ctx := context.Background()
	down := true
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(context.Context, *workspace.Run) error {
			if down {
				return errors.New("the model is down")
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	_, err = m.Handle(ctx, "ann", workspace.Message{ID: "17", Content: state.UserText("Hello!")})
	fmt.Println(err)
	view, err := m.View(ctx, "ann")
	fmt.Println(view.DeadLetters[0].Message.ID, view.DeadLetters[0].Reason, err)

	down = false
	fmt.Println(m.Retry(ctx, "ann", "17"), m.Wait(ctx))
	view, err = m.View(ctx, "ann")
	fmt.Println(len(view.DeadLetters), view.Ended[0].ID, view.Ended[0].As, err)

	fmt.Println(m.Delete(ctx, "ann"))
	fmt.Println(m.Expire(ctx, 24*time.Hour)) // later, from time to time
	fmt.Println(m.Close())
	// Output:
	// workspace: handle for "ann": the model is down
	// 17 the model is down <nil>
	// <nil> <nil>
	// 0 17 finished <nil>
	// <nil>
	// 0 <nil>
	// <nil>
}

// Export and ImportWorkspace carry a workspace to another store.
func ExampleManager_Export() {
	ctx := context.Background()
	visits := &state.Field[int]{Name: "visits"}
	opts := &workspace.Options{Schema: state.MustSchema(visits)}
	old, err := workspace.Open(ctx, store.NewMemory(), opts)
	if err != nil {
		panic(err)
	}
	if err := old.Update(ctx, "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 3) }); err != nil {
		panic(err)
	}
	data, err := old.Export(ctx, "ann") // with all secrets
	if err != nil {
		panic(err)
	}

	m, err := workspace.Open(ctx, store.NewMemory(), opts)
	if err != nil {
		panic(err)
	}
	fmt.Println(m.ImportWorkspace(ctx, "ann", data))
	fmt.Println(errors.Is(m.ImportWorkspace(ctx, "ann", data), workspace.ErrExists))
	view, err := m.View(ctx, "ann")
	fmt.Println(visits.GetOr(view.State(), 0), err)
	fmt.Println(old.Close(), m.Close())
	// Output:
	// <nil>
	// true
	// 3 <nil>
	// <nil> <nil>
}
