package workspace_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// A refund waits for the approval of a person, while the conversation goes on.
// The run of the message that approves it makes the call.
func ExampleLoop() {
	type refund struct {
		Amount int `json:"amount"`
	}
	refundTool := tool.Must(tool.New("refund", "Refund an amount.",
		func(ctx context.Context, in refund) (string, error) {
			call, _ := tool.CallOf(ctx)
			return fmt.Sprintf("refunded %d, as %s says", in.Amount, call.ApprovedBy), nil
		},
		tool.NeedsApproval(func(_ context.Context, in refund) (reason string, needed bool) {
			return "more than 100", in.Amount > 100
		})))
	ask := func(ctx context.Context, turn *loop.Turn) error {
		// What the model is sent says that the call waits.
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{model(prompt)}})
	}

	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{"": {Ask: ask, Tools: []*tool.Tool{refundTool}}},
	})})
	if err != nil {
		panic(err)
	}
	say := func(msg workspace.Message) {
		out, err := m.Handle(ctx, "ann", msg)
		fmt.Printf("%q %v\n", out.Reply, err)
	}
	say(workspace.Message{Content: state.UserText("I want my 500 back.")})
	say(workspace.Message{Content: state.UserText("Hello?")})

	view, err := m.View(ctx, "ann") // what the person sees
	if err != nil {
		panic(err)
	}
	call := view.Suspended()[0]
	fmt.Println(call.Name, call.Input, call.Reason)
	say(workspace.Message{Decisions: []tool.Decision{tool.Approve(call.Key)}, Agent: "eve"})
	_, err = m.Handle(ctx, "ann", workspace.Message{Decisions: []tool.Decision{tool.Refuse(call.Key, "")}})
	fmt.Println(errors.Is(err, workspace.ErrNotSuspended))

	view, _ = m.View(ctx, "ann")
	for _, msg := range state.Messages.GetOr(view.State(), nil) {
		fmt.Println(msg)
	}
	// Output:
	// "" <nil>
	// "A colleague looks at it." <nil>
	// refund {"amount":500} more than 100
	// "It is refunded 500, as eve says." <nil>
	// true
	// text "user": "I want my 500 back."
	// tool_call "assistant": "refund" id "c1"
	// tool_result "refund" id "c1": "refunded 500, as eve says"
	// text "user": "Hello?"
	// text "assistant": "A colleague looks at it."
	// text "assistant": "It is refunded 500, as eve says."
}

// model stands for a model: it makes a call, and then tells the user its result.
func model(prompt []state.Message) state.Message {
	for _, m := range prompt {
		if r, ok := m.(state.ToolResultMessage); ok {
			if r.Text() == "Waiting for approval." {
				return state.AssistantText("A colleague looks at it.")
			}
			return state.AssistantText("It is " + r.Text() + ".")
		}
	}
	return state.ToolCalls(state.ToolCall{ID: "c1", Name: "refund", Input: `{"amount":500}`})
}
