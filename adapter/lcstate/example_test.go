package lcstate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// An agent of langchaingo answers the messages of a workspace. It refunds an order
// that its model cannot choose, when a person has agreed.
func ExampleAgent() {
	type arguments struct {
		Amount float64 `json:"amount"`
		Order  string  `json:"order"`
	}
	orderID := &state.Field[string]{Name: "order"}
	refunded := &state.Field[float64]{Name: "refunded"}
	refund := tool.Must(tool.New("refund", "Refund an amount.",
		func(_ context.Context, in arguments) (float64, error) { return in.Amount, nil },
		tool.From(orderID, "order"), tool.To(refunded, "")))
	ask := tool.Must(tool.New("ask", "Ask a person for approval.",
		func(context.Context, arguments) (string, error) { return "", tool.Suspend(nil) },
		tool.From(orderID, "order")))

	billing := &lcstate.Agent{
		Name:  "billing",
		LLM:   script, // of openai.New, or any other llms.Model
		Tools: []*tool.Tool{ask, refund},
		Trim:  transcript.KeepLast(20),
	}
	answer := func(ctx context.Context, run *workspace.Run) error {
		reply, err := chains.Run(ctx, billing, "") // the message is in the conversation
		if errors.Is(err, tool.ErrSuspended) {
			reply, err = "I have asked a colleague.", nil
		}
		run.SetReply(reply)
		return err
	}

	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(orderID, refunded), Run: answer,
	})
	must(err)
	must(m.Update(ctx, "ann", func(w *workspace.Workspace) error { return orderID.Set(w.State(), "#W1") }))
	out, err := m.Handle(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("The keyboard is broken.")})
	must(err)
	fmt.Println(out.Reply)

	v, err := m.View(ctx, "ann")
	must(err)
	approval := state.ToolResult(v.Suspended()[0], `{"approved":true}`)
	out, err = m.Handle(ctx, "ann", workspace.Message{ID: "2", Answers: []state.ToolResultMessage{approval}})
	must(err)
	fmt.Println(out.Reply)

	v, err = m.View(ctx, "ann")
	must(err)
	fmt.Println(refunded.Get(v.State()))
	fmt.Print(statetest.Transcript(state.Messages.Or(v.State(), nil)))
	must(m.Close())

	// Output:
	// I have asked a colleague.
	// Your money is on its way.
	// 30 <nil>
	// user: "The keyboard is broken."
	// assistant calls ask {"amount":30} (call_1)
	// result of ask (call_1): {"approved":true}
	// assistant calls refund {"amount":30} (call_2)
	// result of refund (call_2): 30
	// assistant: "Your money is on its way."
}

// script is a model that asks for approval, refunds, and says so.
var script = answers(func(msgs []llms.MessageContent, _ llms.CallOptions) llms.ContentChoice {
	switch last := msgs[len(msgs)-1].Parts[0].(type) {
	case llms.ToolCallResponse:
		if last.Name == "ask" {
			return llms.ContentChoice{ToolCalls: []llms.ToolCall{call("c2", "refund", `{"amount":30}`)}}
		}
		return llms.ContentChoice{Content: "Your money is on its way."}
	}
	return llms.ContentChoice{ToolCalls: []llms.ToolCall{call("c1", "ask", `{"amount":30}`)}}
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}
