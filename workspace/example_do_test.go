package workspace_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A scheduled job changes the workspaces of all users. It does not collide with
// the messages that they send meanwhile, and their conversations do not show it.
func ExampleManager_Do() {
	ctx := context.Background()
	credit := &state.Field[int]{Name: "credit", Handler: state.Sum[int]()}
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(credit),
		Run:    func(_ context.Context, run *workspace.Run) error { return credit.Set(run.State(), -1) },
	})
	if err != nil {
		panic(err)
	}
	for _, user := range []string{"ann", "bob"} {
		if _, err := m.Handle(ctx, user, workspace.Message{Content: state.UserText("Hello!")}); err != nil {
			panic(err)
		}
	}
	topUp := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // also for the users whose turn it is
		defer cancel()
		for user, err := range m.List(ctx) {
			if err == nil {
				err = m.Do(ctx, workspace.Thread(user, ""), func(_ context.Context, run *workspace.Run) error {
					return credit.Set(run.State(), 10)
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Println(topUp(ctx)) // every night
	view, err := m.View(ctx, "ann")
	fmt.Println(credit.GetOr(view.State(), 0), len(state.Messages.GetOr(view.State(), nil)), err)
	fmt.Println(m.Close())
	// Output:
	// <nil>
	// 9 1 <nil>
	// <nil>
}
