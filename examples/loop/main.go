// Loop is an agent loop. A router, which is JSON, selects the next agent. The
// agent's model fills in the fields that the agent may write. The loop ends
// when no rule of the router matches. The model is scripted and makes one
// mistake.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

var (
	Intent   = &state.Field[string]{Name: "intent", Owner: "triage", Read: state.Public, UpdateRules: "refund or question."}
	Amount   = &state.Field[float64]{Name: "amount", Owner: "triage", Read: state.Public, Description: "In euros."}
	Refunded = &state.Field[bool]{Name: "refunded", Owner: "billing", Read: state.Public}
	Approval = &state.Field[string]{Name: "approval", Owner: "manager", Read: state.Only("billing")}
	schema   = state.MustSchema(state.Team{"triage": {"billing", "manager"}}, Intent, Amount, Refunded, Approval)
)

const rules = `{"rules": [
	{"when": {"not": {"field": "intent", "op": "has"}}, "agent": "triage"},
	{"when": {"and": [
		{"field": "amount", "op": "gte", "value": 100},
		{"not": {"field": "approval", "op": "has"}}
	]}, "agent": "manager"},
	{"when": {"and": [
		{"field": "intent", "op": "eq", "value": "refund"},
		{"not": {"field": "refunded", "op": "has"}}
	]}, "agent": "billing"}
]}`

// Model answers a prompt with calls of the tools that it is offered.
type Model func(agent, prompt string, tools ...*tool.Tool) state.ToolCallMessage

// Run lets agents take turns until the router selects none.
func Run(ctx context.Context, st *state.State, router *route.Router, model Model) error {
	for step := 1; step <= 10; step++ {
		agent, ok := router.Next(st)
		if !ok {
			return nil
		}
		me := st.As(agent)
		update, err := tool.Updater(schema, agent)
		if err != nil {
			return err
		}
		answer := model(agent, me.Describe(), update)
		turn := state.InferenceResult{Output: []state.Message{answer}}
		results, err := tool.Run(ctx, me, []*tool.Tool{update}, answer.Calls())
		if err != nil {
			return err
		}
		for _, r := range results {
			fmt.Printf("%d. %s: %s\n", step, agent, r.Message.Content().Text())
			turn.ToolCalls = append(turn.ToolCalls, r.Message)
		}
		if err := me.History().Append(turn); err != nil {
			return err
		}
	}
	return errors.New("no end after 10 steps")
}

func main() {
	st := state.New(schema)
	check(state.Messages.Set(st, []state.Message{state.UserText("I want my 120 euros back!")}))
	router, err := route.Parse(schema, []byte(rules))
	check(err)
	check(Run(context.Background(), st, router, script(
		`{"intent": "refund", "amount": "a hundred and twenty"}`,
		`{"intent": "refund", "amount": 120}`,
		`{"approval": "A good customer."}`,
		`{"refunded": true}`,
	)))
	fmt.Print(router.Explain(st))
	for change, err := range st.Changes(1) {
		check(err)
		if change.Cause != "" {
			fmt.Println(change.Cause, change.Agent, change.Field)
		}
	}
}

// script returns a model that gives these answers, one for each call.
func script(answers ...string) Model {
	turn := 0
	return func(_, _ string, tools ...*tool.Tool) state.ToolCallMessage {
		turn++
		id := fmt.Sprintf("call_%d", turn)
		return state.ToolCalls(state.ToolCall{ID: id, Name: tools[0].Name(), Input: state.JSON(answers[turn-1])})
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
