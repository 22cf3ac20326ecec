package loop_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

// A loop asks a model until it has nothing left to do. A refund of more than 100
// waits for a person.
func ExampleLoop() {
	refunded := &state.Field[int]{Name: "refunded", Owner: "billing", Handler: state.Sum[int]()}
	st := state.New(state.MustSchema(refunded, state.Team{"billing": nil}))

	type refund struct {
		Amount int `json:"amount"`
	}
	refundTool := tool.Must(tool.New("refund", "Refund an amount.",
		func(_ context.Context, in refund) (int, error) { return in.Amount, nil },
		tool.To(refunded, ""),
		tool.NeedsApproval(func(_ context.Context, in refund) (reason string, needed bool) {
			return fmt.Sprintf("%d euros are much", in.Amount), in.Amount > 100
		})))

	ask := func(ctx context.Context, turn *loop.Turn) error {
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		answer, err := model(prompt, turn.Tools()) // of a provider
		if err != nil {
			return err
		}
		return turn.Said(ctx, state.InferenceResult{Output: answer})
	}
	desk := &loop.Loop{Agents: map[string]loop.Agent{"billing": {Ask: ask, Tools: []*tool.Tool{refundTool}}}}

	ctx := context.Background()
	_ = state.Messages.Set(st, []state.Message{state.UserText("Refund my 120 euros.")})
	_, err := desk.Run(ctx, st)
	fmt.Println(errors.Is(err, tool.ErrSuspended))

	call := st.As("billing").History().Pending()[0] // is shown to a person
	fmt.Println(call.Name, call.Input)
	turn, err := loop.NewTurn(state.NewContext(ctx, st), "billing", refundTool)
	fmt.Println(err)
	_, err = turn.Decide(ctx, tool.Approve(call.Key))
	fmt.Println(err)
	fmt.Println(desk.Run(ctx, st))
	fmt.Println(refunded.GetOr(st, 0))
	// Output:
	// true
	// refund {"amount":120}
	// <nil>
	// <nil>
	// Done: 120 <nil>
	// 120
}

// model stands for that of a provider.
func model(prompt []state.Message, _ []*tool.Tool) ([]state.Message, error) {
	if result, ok := prompt[len(prompt)-1].(state.ToolResultMessage); ok {
		return []state.Message{state.AssistantText("Done: " + result.Text())}, nil
	}
	return []state.Message{state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: `{"amount":120}`})}, nil
}
