package main

import (
	"context"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
)

// ask stands for a request to a model. It wants the refund, and then says what has come
// of it. With the SDK of a provider, it is one call: see ../service.
func ask(ctx context.Context, turn *loop.Turn) error {
	msgs, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
	if err != nil {
		return err
	}
	said := []state.Message{
		state.AssistantText("I have asked a colleague."),
		state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: `{"order":"W1","amount":120}`}),
	}
	if result, ok := msgs[len(msgs)-1].(state.ToolResultMessage); ok {
		said = []state.Message{state.AssistantText("Your order is " + result.Text() + ".")}
	}
	return turn.Said(ctx, state.InferenceResult{Output: said})
}
