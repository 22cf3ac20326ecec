package tool_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// An agent refunds when a person has approved. The second turn may be days later,
// in another process: it makes the call that was left before it asks the model.
func ExampleTurn() {
	approved := &state.Field[bool]{Name: "approved", Read: state.Public}
	refunded := &state.Field[int]{Name: "refunded", Owner: "billing", Handler: state.Sum[int]()}
	st := state.New(state.MustSchema(approved, refunded, state.Team{"billing": nil}))
	refund := tool.Must(tool.New("refund", "Refund an amount.", func(_ context.Context, in struct {
		Amount   int  `json:"amount"`
		Approved bool `json:"approved,omitempty"`
	}) (int, error) {
		if !in.Approved {
			return 0, tool.Suspend(nil)
		}
		return in.Amount, nil
	}, tool.From(approved, "approved"), tool.To(refunded, "")))

	ask := func(prompt []state.Message, _ []*tool.Tool) []state.Message { // a model
		switch last := prompt[len(prompt)-1].(type) {
		case state.TextMessage:
			return []state.Message{state.ToolCalls(state.ToolCall{ID: "c1", Name: "refund", Input: `{"amount":30}`})}
		case state.ToolResultMessage:
			return []state.Message{state.AssistantText("refund: " + last.Text())}
		}
		return nil
	}
	ctx := state.NewContext(context.Background(), st)
	answer := func(said ...state.Message) error {
		turn, err := tool.NewTurn(ctx, "billing", refund)
		if err == nil {
			err = turn.Hear(said...)
		}
		for err == nil {
			var prompt []state.Message
			if prompt, err = turn.Prompt(ctx, state.Messages.Or(turn.State(), nil)); err != nil {
				break
			}
			if err = turn.Said(ctx, state.InferenceResult{Output: ask(prompt, turn.Tools())}); err != nil {
				break
			}
			calls := turn.Pending()
			if len(calls) == 0 {
				break
			}
			_, err = turn.Run(ctx, calls...)
		}
		return err
	}

	fmt.Println(answer(state.UserText("Refund it.")))
	_ = approved.Set(st, true)
	fmt.Println(answer())
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	fmt.Println(refunded.Or(st, 0))
	// Output:
	// <nil>
	// <nil>
	// text "user": "Refund it."
	// tool_call "assistant": "refund" id "c1"
	// tool_result "refund" id "c1": "30"
	// text "assistant": "refund: Waiting for approval."
	// text "assistant": "refund: 30"
	// 30
}
