// Workflow shows how a network of agents is tested in the process: the network
// takes a *state.State and a model, and a test gives it both. The tests are in
// workflow_test.go.
package main

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/agentstate/state"
)

var (
	Ticket   = &state.Field[string]{Name: "ticket", Owner: "triage", Read: state.Public}
	Urgent   = &state.Field[bool]{Name: "urgent", Owner: "triage", Read: state.Public}
	Answer   = &state.Field[string]{Name: "answer", Owner: "clerk", Read: state.Public}
	Customer = &state.Field[string]{Name: "customer_mail", Read: state.Only("clerk"), Secret: true}
	Page     = &state.Field[int]{Name: "pages_sent", Read: state.Public, Handler: state.Sum[int]()}
	schema   = state.MustSchema(state.Team{"triage": {"clerk"}}, Ticket, Urgent, Answer, Customer, Page)
)

// Model answers a prompt with the fields that it fills in, as JSON.
type Model func(agent, prompt string) string

// Next is the router.
func Next(st *state.State) string {
	switch {
	case !Urgent.Has(st):
		return "triage"
	case Urgent.Or(st, false) && !Page.Has(st):
		return "human"
	case !Answer.Has(st):
		return "clerk"
	}
	return ""
}

// Step lets the next agent work.
func Step(st *state.State, model Model) error {
	agent := Next(st)
	if agent == "human" {
		return Page.Set(st, 1)
	}
	me := st.As(agent)
	var values map[string]any
	if err := json.Unmarshal([]byte(model(agent, me.Describe())), &values); err != nil {
		return fmt.Errorf("%s: %w", agent, err)
	}
	return me.Patch(values)
}

func main() {
	st := state.New(schema)
	check(st.Patch(map[string]any{"ticket": "The shop is down!", "customer_mail": "ada@example.com"}))
	model := func(agent, _ string) string {
		return map[string]string{"triage": `{"urgent":true}`, "clerk": `{"answer":"We are on it."}`}[agent]
	}
	for Next(st) != "" {
		fmt.Println("next:", Next(st))
		check(Step(st, model))
	}
	fmt.Print(st.Describe())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
