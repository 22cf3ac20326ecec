package workspace_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// A call waits for a person for a limited time. Then the model hears that nobody
// has decided.
func ExampleSuspended() {
	refund := tool.Must(tool.New("refund", "Refund an order.",
		func(context.Context, struct{}) (string, error) { return "refunded", nil },
		tool.NeedsApproval(func(context.Context, struct{}) (reason string, needed bool) { return "money", true }),
		tool.Expires(10*time.Millisecond))) // rather a day
	ask := func(ctx context.Context, turn *loop.Turn) error {
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		said := state.Message(state.AssistantText("Sorry: " + prompt[len(prompt)-1].Text()))
		if len(prompt) == 1 {
			said = state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: "{}"})
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
	}

	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{TTL: 50 * time.Millisecond, Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{"": {Ask: ask, Tools: []*tool.Tool{refund}}},
	})})
	if err != nil {
		panic(err)
	}
	if _, err := m.Handle(ctx, "ann", workspace.Message{Content: state.UserText("I want my money back.")}); err != nil {
		panic(err)
	}
	view, err := m.View(ctx, "ann")
	if err != nil {
		panic(err)
	}
	call := view.Suspended()[0]
	fmt.Println(call.Name, call.Until.Sub(call.Since))
	for len(view.Suspended()) > 0 {
		time.Sleep(10 * time.Millisecond)
		if view, err = m.View(ctx, "ann"); err != nil {
			panic(err)
		}
	}
	if err := m.Close(); err != nil {
		panic(err)
	}
	// Output: refund 10ms
}
