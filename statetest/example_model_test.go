package statetest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

// exampleM is an exampleT whose test ends by itself.
type exampleM struct {
	exampleT
	end *[]func()
}

func (t exampleM) Cleanup(f func()) { *t.end = append(*t.end, f) }
func (exampleM) Skipped() bool      { return false }

// answerWith is an agent: it asks the model again while that is overloaded.
func answerWith(ctx context.Context, st *state.State, m *statetest.Model) error {
	for {
		r, err := m.Next(ctx, "billing", state.Messages.GetOr(st, nil))
		var status *statetest.StatusError
		if errors.As(err, &status) && status.Code == 529 {
			continue
		}
		if err != nil {
			return err
		}
		if err := st.History().Append(r); err != nil {
			return err
		}
		calls, ok := r.Output[len(r.Output)-1].(state.ToolCallMessage)
		if !ok {
			return nil
		}
		for _, call := range calls.Calls() {
			if err := st.History().Answer(state.ToolResult(call, `{"ok":true}`)); err != nil {
				return err
			}
		}
	}
}

func ExampleNewModel() {
	var ends []func()
	t := exampleM{end: &ends} // a *testing.T
	st := state.New(nil)
	if err := state.Messages.Set(st, []state.Message{state.UserText("Order #W1 is broken.")}); err != nil {
		fmt.Println(err)
	}
	m := statetest.NewModel(t, provider.OpenAI,
		statetest.Call("refund", `{"amount":129.9}`).To("billing").Reads("#W1"),
		statetest.Status(529, `{"type":"error","error":{"type":"overloaded_error"}}`),
		statetest.Say("Refunded."),
	)
	if err := answerWith(context.Background(), st, m); err != nil {
		fmt.Println(err)
	}
	fmt.Println(statetest.Transcript(state.Messages.GetOr(st, nil)))
	fmt.Println(len(m.Requests()), "requests")
	// Output:
	// user: "Order #W1 is broken."
	// assistant calls refund {"amount":129.9} (call_1)
	// result of refund (call_1): {"ok":true}
	// assistant: "Refunded."
	//
	// 3 requests
}
