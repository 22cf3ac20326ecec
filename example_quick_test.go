package state_test

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

func Example() {
	city := &state.Field[string]{Name: "city", Description: "Where the user lives."}
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(city, notes))

	err := errors.Join(
		city.Set(st, "Vienna"),
		notes.Set(st, []string{"asked about trains"}),
		notes.Set(st, []string{"likes the mountains"}), // a list: Set appends
	)
	fmt.Println(city.GetOr(st, "unknown"), notes.GetOr(st, nil), err)
	fmt.Print(st.Describe()) // for a prompt
	// Output:
	// Vienna [asked about trains likes the mountains] <nil>
	// - city (string) = "Vienna"
	//     Where the user lives.
	// - notes (list of string) = ["asked about trains","likes the mountains"]
}
