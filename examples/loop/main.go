// Loop is a loop of three agents. A router, which is JSON, says whose turn is next.
// The agent's model fills in the fields that the agent may write. The loop ends
// when no rule of the router matches. The model is scripted and makes one
// mistake.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
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

// agents returns the agents of the loop, each with the tool that fills in its
// fields.
func agents(ask func(context.Context, *loop.Turn) error) map[string]loop.Agent {
	agents := map[string]loop.Agent{}
	for _, name := range []string{"triage", "manager", "billing"} {
		agents[name] = loop.Agent{Ask: ask, Tools: []*tool.Tool{tool.Must(tool.Updater(schema, name))}}
	}
	return agents
}

func main() {
	st := state.New(schema)
	check(st.UserSays("I want my 120 euros back!"))
	router, err := route.Parse(schema, []byte(rules))
	check(err)
	loop := &loop.Loop{Route: router.Next, Agents: agents(script(
		`{"intent": "refund", "amount": "a hundred and twenty"}`,
		`{"intent": "refund", "amount": 120}`,
		`{"approval": "A good customer."}`,
		`{"refunded": true}`,
	))}
	_, err = loop.Run(context.Background(), st)
	check(err)
	for i, r := range st.History().All() {
		fmt.Printf("%d. %s: %s\n", i+1, r.Agent, r.ToolCalls[0].Text())
	}
	fmt.Print(router.Explain(st))
	for change, err := range st.Changes(1) {
		check(err)
		if change.Cause != "" {
			fmt.Println(change.Cause, change.Agent, change.Field)
		}
	}
}

// script returns a model that gives these answers, one for each request. A real
// one is told turn.State().Describe() and the conversation.
func script(answers ...state.JSON) func(context.Context, *loop.Turn) error {
	n := 0
	return func(ctx context.Context, turn *loop.Turn) error {
		n++
		call := state.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: turn.Tools()[0].Name(), Input: answers[n-1]}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}})
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
