package state_test

import (
	"fmt"

	"github.com/agentstate/state"
)

// A workflow that takes its state and its model as arguments is tested in the
// process: start anywhere, run a step, look at what has changed.
func Example_testing() {
	intent := &state.Field[string]{Name: "intent", Owner: "triage", Read: state.Public}
	answer := &state.Field[string]{Name: "answer", Owner: "clerk", Read: state.Public}
	schema := state.MustSchema(state.Team{"triage": {"clerk"}}, intent, answer)

	// The workflow.
	next := func(st *state.State) string {
		if !intent.Has(st) {
			return "triage"
		}
		return "clerk"
	}
	step := func(st *state.State, model func(prompt string) map[string]any) error {
		me := st.As(next(st))
		return me.Patch(model(me.Describe()))
	}

	// The test.
	st := state.New(schema)
	err := st.Patch(map[string]any{"intent": "refund"}) // as if triage had been
	before := st.Version()
	bad := step(st, func(string) map[string]any { return map[string]any{"intent": "other", "answer": "Yes."} })
	fmt.Println(err, next(st), bad, st.Version() == before)
	good := step(st, func(string) map[string]any { return map[string]any{"answer": "Yes."} })
	fmt.Println(good, answer.Or(st, ""))
	// Output:
	// <nil> clerk state: patch "intent": access denied to agent "clerk" true
	// <nil> Yes.
}
