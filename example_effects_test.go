package state_test

import (
	"fmt"

	"github.com/agentstate/state"
)

// What a run did is written down as effects, which are plain data.
func ExampleState_Effects() {
	title := &state.Field[string]{Name: "title"}
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(title, notes))
	fmt.Println(title.Set(st, "Order"), notes.Set(st, []string{"late", "paid"}))

	before := st.Snapshot()
	fmt.Println(title.Set(st, "Refund"), notes.Set(st, []string{"sent back"}))
	effects, err := st.Effects(before)
	for _, e := range effects {
		fmt.Println(e.Field, e.Kind, e.Value)
	}
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// title set "Refund"
	// notes append ["sent back"]
	// <nil>
}
