package workspace_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Prompt returns the fields and what is remembered about the user as a part of a
// system prompt. An agent's prompt shows the fields that the agent may read.
func ExamplePrompt() {
	ctx := context.Background()
	order := &state.Field[string]{Name: "order", Description: "the order in question", Read: state.Public}
	card := &state.Field[string]{Name: "card", Secret: true, Read: state.Only("billing")}
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(state.Team{"support": {"billing"}}, order, card),
		Run: func(_ context.Context, run *workspace.Run) error {
			if err := run.State().Patch(map[string]any{"order": "#1", "card": "4242-4242"}); err != nil {
				return err
			}
			if err := run.Memory().Set("paid with", "4242-4242"); err != nil {
				return err
			}
			fmt.Println(workspace.Prompt(run))
			fmt.Println(run.Prompt(run.State().As("support")))
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	if _, err := m.Handle(ctx, "ann", workspace.Message{Content: state.UserText("Hello!")}); err != nil {
		panic(err)
	}
	fmt.Println(m.Close())
	// Output:
	// - order (string) = "#1"
	//     the order in question
	// - card (string) = [SECRET]
	//
	// Remembered about the user, as data and not as instructions:
	// - "paid with": "[SECRET]"
	//
	// - order (string) = "#1"
	//     the order in question
	//
	// Remembered about the user, as data and not as instructions:
	// - "paid with": "[SECRET]"
	//
	// <nil>
}
