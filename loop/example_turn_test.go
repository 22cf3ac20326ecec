package loop_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

// A framework asks the model and makes the calls itself, here in another order
// than the model has named them. The turn records them in order, and in the
// prompt each call has a result.
func ExampleTurn() {
	found := &state.Field[[]string]{Name: "found", Owner: "search", Handler: state.Append[[]string]()}
	st := state.New(state.MustSchema(found, state.Team{"search": nil}))
	look := tool.Must(tool.New("look", "Look at a page.", func(_ context.Context, in struct {
		Page string `json:"page"`
	}) ([]string, error) {
		return []string{in.Page}, nil
	}, tool.To(found, "")))

	ctx := state.NewContext(context.Background(), st)
	turn, err := loop.NewTurn(ctx, "search", look)
	fmt.Println(err)
	fmt.Println(turn.Hear(state.UserText("Find it.")))
	calls := []state.ToolCall{
		{ID: "c1", Name: "look", Input: `{"page":"first"}`},
		{ID: "c2", Name: "look", Input: `{"page":"second"}`},
	}
	fmt.Println(turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
	for _, c := range []state.ToolCall{calls[1], calls[0]} {
		_, err = turn.Call(ctx, c)
		fmt.Println(err)
	}
	prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
	fmt.Println(err)
	for _, m := range prompt {
		fmt.Println(m)
	}
	fmt.Println(found.GetOr(st, nil))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// text "user": "Find it."
	// tool_call "assistant": "look" id "c1" "look" id "c2"
	// tool_result "look" id "c1": "[\"first\"]"
	// tool_result "look" id "c2": "[\"second\"]"
	// [first second]
}
