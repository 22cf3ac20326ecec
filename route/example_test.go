package route_test

import (
	"encoding/json"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
)

func Example() {
	var (
		OrderID = &state.Field[string]{Name: "order_id"}
		Intent  = &state.Field[string]{Name: "intent"}
		Amount  = &state.Field[float64]{Name: "amount"}
	)
	st := state.New(state.MustSchema(OrderID, Intent, Amount))
	_ = st.Patch(map[string]any{"order_id": "#W2378156", "intent": "refund", "amount": 20})

	router := route.Must(route.New(
		route.When(route.And(route.Eq(Intent, "refund"), route.Gte(Amount, 100)), "manager"),
		route.When(route.Has(OrderID), "billing"),
		route.Otherwise("general"),
	))
	agent, ok := router.Next(st)
	fmt.Println(agent, ok)
	fmt.Print(router.Explain(st)) // why, without values
	// Output:
	// billing true
	// 1. "manager" when: does not match
	//     and: no
	//       eq "intent": yes
	//       gte "amount": no
	// 2. "billing" when: matches
	//     has "order_id": yes
	// 3. "general" otherwise: matches too late
	// next: "billing"
}

func ExampleParse() {
	schema := state.MustSchema(
		&state.Field[string]{Name: "intent"},
		&state.Field[float64]{Name: "amount"},
	)
	_, err := route.Parse(schema, []byte(`{"rules": [
		{"when": {"field": "intnet", "op": "eq", "value": "refund"}, "agent": "manager"},
		{"when": {"field": "amount", "op": "gte", "value": "100"}, "agent": "manager"},
		{"otherwise": "general"}
	]}`))
	fmt.Println(err)

	router, err := route.Parse(schema, []byte(`{"rules": [
		{"when": {"field": "intent", "op": "in", "value": ["refund", "exchange"]}, "agent": "manager"},
		{"otherwise": "general"}
	]}`))
	fmt.Println(err)
	agent, _ := router.Next(state.New(schema))
	fmt.Println(agent)
	text, _ := json.Marshal(router)
	fmt.Println(string(text))
	// Output:
	// route: $.rules[0].when.field: "intnet": unknown field; did you mean "intent"?
	// route: $.rules[1].when.value: field "amount": want number, got string
	// <nil>
	// general
	// {"rules":[{"when":{"field":"intent","op":"in","value":["refund","exchange"]},"agent":"manager"},{"otherwise":"general"}]}
}

func ExampleRouter_Explain() {
	card := &state.Field[string]{Name: "card"} // the host's
	intent := &state.Field[string]{Name: "intent", Read: state.Public}
	st := state.New(state.MustSchema(state.Team{"support": nil}, card, intent))
	_ = st.Patch(map[string]any{"card": "4242", "intent": "refund"})
	router := route.Must(route.New(
		route.When(route.Not(route.Has(card)), "checkout"),
		route.When(route.Match(intent, "^re(fund|turn)"), "returns"),
		route.Otherwise("general"),
	))
	fmt.Print(router.Explain(st.As("support")))
	// Output:
	// 1. "checkout" when: cannot match
	//     not: no answer
	//       has "card": hidden
	// 2. "returns" when: matches
	//     match "intent": yes
	// 3. "general" otherwise: matches too late
	// next: "returns"
}

func ExampleRouter_Check() {
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	schema := state.MustSchema(state.Team{"support": {"billing"}}, card)
	router := route.Must(route.New(route.When(route.Has(card), "billing"), route.Otherwise("support")))
	fmt.Println(router.Check(schema, "billing"))
	fmt.Println(router.Check(schema, "support"))
	// Output:
	// <nil>
	// route: $.rules[0].when: the rule for "billing" never matches: read "card": access denied to agent "support"
}

func ExampleFunc() {
	todo := &state.Field[[]string]{Name: "todo"}
	st := state.New(state.MustSchema(todo))
	busy := route.Func("busy", func(st *state.State) bool { return state.ListLen(st, todo) > 2 })
	router, err := route.Parse(state.MustSchema(todo), []byte(`{"rules": [
		{"when": {"func": "busy"}, "agent": "helper"},
		{"otherwise": "worker"}
	]}`), busy)
	fmt.Println(err)
	agent, _ := router.Next(st)
	fmt.Println(agent)
	_ = todo.Set(st, []string{"a", "b", "c"})
	agent, _ = router.Next(st)
	fmt.Println(agent)
	// Output:
	// <nil>
	// worker
	// helper
}
