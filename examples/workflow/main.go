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
	"slices"
	"time"

	"github.com/agentstate/state"
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
	// Model returns what a model says next in a conversation.
	Model interface {
		Next(ctx context.Context, agent string, msgs []state.Message) (state.InferenceResult, error)
	}
	// Shop does something outside of the process, once for each key.
	Shop func(ctx context.Context, name, key string, input any) (state.JSON, error)
)

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

// bill lets the agent billing answer the customer. commit stores each step
// before the next one: which calls were wanted, and what they returned. key
// names the conversation, so that a repeated refund is the same one.
func bill(ctx context.Context, st *state.State, m Model, shop Shop, key string, commit func(context.Context) error) error {
	me, tools := st.As("billing"), []*tool.Tool{refund(shop, key)}
	for {
		var said state.InferenceResult
		err := again(ctx, func() (err error) {
			now := state.UserText("<context>\n" + me.Describe() + "</context>") // behind what the provider caches
			msgs := append(slices.Clone(state.Messages.Or(me, nil)), now)
			said, err = m.Next(ctx, "billing", msgs)
			return err
		})
		if err != nil {
			return err
		}
		if err := state.Messages.Set(me, said.Output); err != nil {
			return err
		}
		calls, ok := said.Output[0].(state.ToolCallMessage)
		if !ok {
			return nil
		}
		if err := commit(ctx); err != nil {
			return err
		}
		results, err := tool.Run(ctx, me, tools, calls.Calls())
		if err != nil {
			return err
		}
		for _, r := range results {
			if err := state.Messages.Set(me, []state.Message{r.Message}); err != nil {
				return err
			}
		}
		if err := commit(ctx); err != nil {
			return err
		}
	}
}

// refund is the tool with which billing refunds the order. The model does not
// choose the order. The key is made of what the tool does, not of the id of the
// call: after a crash, the model makes the call again with another id.
func refund(shop Shop, key string) *tool.Tool {
	type in struct {
		Order  string  `json:"order"`
		Amount float64 `json:"amount"`
	}
	return tool.Must(tool.New("refund", "Refund the order.",
		func(ctx context.Context, in in) (float64, error) {
			err := again(ctx, func() error {
				_, err := shop(ctx, "refund", key+"/refund/"+in.Order, in)
				return err
			})
			return in.Amount, err
		},
		tool.From(Order, "order"), tool.To(Refunded, "")))
}

// again calls do until it succeeds, at most three times. If the answer to a
// request is lost, nobody knows whether it took effect: only asking again, with
// the same key, tells.
func again(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || n == 3 {
			return err
		}
		select {
		case <-time.After(time.Duration(n) * time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handle returns the function that handles the messages of a workspace.
func handle(m Model, shop Shop) func(context.Context, *workspace.Run) error {
	return func(ctx context.Context, run *workspace.Run) error {
		return bill(ctx, run.State(), m, shop, run.ID(), run.Commit)
	}
}

func main() {
	ctx := context.Background()
	w, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Schema: Desk, Run: handle(parrot{}, print)})
	check(err)
	check(w.Update(ctx, "ann", func(w *workspace.Workspace) error {
		st := w.State()
		return errors.Join(Order.Set(st, "#W1"), Card.Set(st, "4242-4242-4242"),
			research(st, []string{"delivery", "refunds"}, func(i int) string {
				return []string{"delivered on Monday", "refunds within 30 days"}[i]
			}))
	}))
	_, err = w.Handle(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("The keyboard is broken.")})
	check(err)
	v, err := w.View(ctx, "ann")
	check(err)
	fmt.Println(Notes.Or(v.State(), nil), Refunded.Or(v.State(), 0))
	check(w.Close())
}

// parrot stands for a model. It refunds, then says so.
type parrot struct{}

func (parrot) Next(_ context.Context, _ string, msgs []state.Message) (state.InferenceResult, error) {
	var said state.Message = state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: `{"amount":129.9}`})
	if _, ok := msgs[len(msgs)-1].(state.ToolResultMessage); ok {
		said = state.AssistantText("Refunded.")
	}
	return state.InferenceResult{Output: []state.Message{said}}, nil
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
