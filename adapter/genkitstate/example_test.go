package genkitstate_test

import (
	"context"
	"fmt"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

var (
	Card     = &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	Order    = &state.Field[string]{Name: "order", Owner: "billing", Read: state.Public}
	Refunded = &state.Field[[]int]{Name: "refunded", Owner: "billing", Read: state.Public}
	schema   = state.MustSchema(Card, Order, Refunded, state.Team{"billing": {"search"}})
)

// refund never lets the model choose the card.
var refund = tool.Must(tool.New("refund", "Refund an amount in euros.",
	func(_ context.Context, in struct {
		Amount int    `json:"amount"`
		Card   string `json:"card"`
	}) (map[string]any, error) {
		return map[string]any{"amount": in.Amount, "to": in.Card}, nil
	},
	tool.From(Card, "card"),
	tool.ToFunc(Refunded, "amount", func(n int) ([]int, error) { return []int{n}, nil })))

func Example() {
	ctx := context.Background()
	g := genkit.Init(ctx)
	genkit.DefineModel(g, "test/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true, SystemRole: true}}, scripted)
	st := state.New(schema)
	must(Card.Set(st, "4242-4242-4242"))
	must(Order.Set(st, "#W2378156"))
	must(state.Messages.Set(st, []state.Message{state.UserText("I want my money back!")}))

	billing := st.As("billing")
	ctx = genkitstate.Session(state.NewContext(ctx, billing), billing)
	system, err := genkit.DefinePrompt(g, "billing", ai.WithSystem("The order is {{@state.order}}.")).Render(ctx, nil)
	must(err)
	conversation, err := genkitstate.From(state.Messages.GetOr(billing, nil)...)
	must(err)
	tools := []*tool.Tool{refund}
	resp, err := genkit.Generate(ctx, g,
		ai.WithModelName("test/scripted"),
		ai.WithMessages(append(system.Messages, conversation...)...),
		ai.WithTools(genkitstate.Tools(tools...)...),
		ai.WithMiddleware(genkitstate.Middleware(tools, &genkitstate.Options{
			Window: &transcript.Window{Target: 8000},
		})))
	must(err)

	fmt.Println(resp.Text())
	fmt.Println(Refunded.GetOr(st, nil))
	for _, m := range state.Messages.GetOr(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// The order is #W2378156.
	// I have refunded 30 and 12 euros.
	// [30 12]
	// text "user": "I want my money back!"
	// tool_call "assistant": "refund" id "c1" "refund" id "c2"
	// tool_result "refund" id "c1": "{\"amount\":30,\"to\":\"[SECRET]\"}"
	// tool_result "refund" id "c2": "{\"amount\":12,\"to\":\"[SECRET]\"}"
	// text "assistant": "I have refunded 30 and 12 euros."
}

// scripted stands for a model: it makes two calls, and then says that it has.
func scripted(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	answer := ai.NewModelTextMessage("I have refunded 30 and 12 euros.")
	if req.Messages[len(req.Messages)-1].Role != ai.RoleTool {
		fmt.Println(req.Messages[0].Text())
		answer = ai.NewModelMessage(
			ai.NewToolRequestPart(&ai.ToolRequest{Name: "refund", Ref: "c1", Input: map[string]any{"amount": 30}}),
			ai.NewToolRequestPart(&ai.ToolRequest{Name: "refund", Ref: "c2", Input: map[string]any{"amount": 12}}))
	}
	return &ai.ModelResponse{Message: answer, FinishReason: ai.FinishReasonStop}, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
