// Workflow is a small workflow with the tests that it deserves: two topics are
// searched at once, then an agent refunds an order. Its tests, which are in
// workflow_test.go, show package statetest from the first assertion to crashes
// at every point.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var (
	Order    = &state.Field[string]{Name: "order", Read: state.Public}
	Card     = &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	Notes    = &state.Field[[]string]{Name: "notes", Owner: "search", Read: state.Public}
	Refunded = &state.Field[float64]{Name: "refunded", Owner: "billing", Read: state.Public}
	Desk     = state.MustSchema(state.Team{"search": {"billing"}}, Order, Card, Notes, Refunded)
)

// Desk's surroundings: what a test replaces.
type (
	// Ask sends one request to a model, as that of loop.Agent.
	Ask func(ctx context.Context, turn *loop.Turn) error
	// Shop does something outside of the process, once for each key.
	Shop func(ctx context.Context, name, key string, input any) (state.JSON, error)
)

// desk is the loop of the agent billing, which answers the customer.
func desk(ask Ask, shop Shop) *loop.Loop {
	return &loop.Loop{Agents: map[string]loop.Agent{
		"billing": {Ask: ask, Tools: []*tool.Tool{refund(shop)}},
	}}
}

// research looks up topics at once and notes what it finds, in their order.
func research(st *state.State, topics []string, look func(i int) string) error {
	branches, done := make([]*state.State, len(topics)), make(chan error, len(topics))
	for i := range topics {
		branches[i] = st.Fork()
		go func() { done <- Notes.Set(branches[i].As("search"), []string{look(i)}) }()
	}
	var err error
	for range topics {
		err = errors.Join(err, <-done)
	}
	return errors.Join(err, st.Join(branches...))
}

// refund is the tool with which billing refunds the order. The model does not
// choose the order. If the answer of the shop is lost, nobody knows whether it has
// refunded: only asking again, with the same key, tells.
func refund(shop Shop) *tool.Tool {
	type in struct {
		Order  string  `json:"order"`
		Amount float64 `json:"amount"`
	}
	return tool.Must(tool.New("refund", "Refund the order.",
		func(ctx context.Context, in in) (float64, error) {
			_, err := shop(ctx, "refund", key(ctx), in)
			return in.Amount, err
		},
		tool.From(Order, "order"), tool.To(Refunded, ""), tool.Attempts(3)))
}

// key names the call of a tool. It is the same if another process takes the run
// over and makes the call again.
func key(ctx context.Context) string {
	call, _ := tool.CallOf(ctx)
	return call.Key
}

func main() {
	ctx := context.Background()
	w, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Schema: Desk, Run: workspace.Loop(desk(parrot, print))})
	check(err)
	check(w.Update(ctx, "ann", func(w *workspace.Workspace) error {
		st := w.State()
		return errors.Join(Order.Set(st, "#W1"), Card.Set(st, "4242-4242-4242"),
			research(st, []string{"delivery", "refunds"}, func(i int) string {
				return []string{"delivered on Monday", "refunds within 30 days"}[i]
			}))
	}))
	out, err := w.Handle(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("The keyboard is broken.")})
	check(err)
	fmt.Println(out.Reply)
	v, err := w.View(ctx, "ann")
	check(err)
	fmt.Println(Notes.GetOr(v.State(), nil), Refunded.GetOr(v.State(), 0))
	check(w.Close())
}

// parrot stands for a model. It refunds, then says so.
func parrot(ctx context.Context, turn *loop.Turn) error {
	msgs, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
	if err != nil {
		return err
	}
	var said state.Message = state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: `{"amount":129.9}`})
	if _, ok := msgs[len(msgs)-1].(state.ToolResultMessage); ok {
		said = state.AssistantText("Refunded.")
	}
	return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
}

// print stands for a shop.
func print(_ context.Context, name, _ string, input any) (state.JSON, error) {
	fmt.Printf("%s %v\n", name, input)
	return `{"ok":true}`, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
