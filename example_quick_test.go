package state_test

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

func Example() {
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	card := &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	st := state.New(state.MustSchema(state.Team{"support": {"billing", "search"}}, notes, card))

	search := st.As("search")    // a handle with the rights of the agent "search"
	a, b := st.Fork(), st.Fork() // branches, for example one for each goroutine
	err := errors.Join(
		card.Set(st, "4242-4242-4242"),
		notes.Set(a.As("search"), []string{"delivered on Monday"}), // a list: Set appends
		notes.Set(b.As("search"), []string{"refunds within 30 days"}),
		st.Join(a, b), // merges in this order, whichever branch was written first
	)
	fmt.Println(notes.Or(search, nil), err)
	_, err = card.Get(search)
	fmt.Println(err)
	fmt.Println(st.Redact("charged 4242-4242-4242"))
	// Output:
	// [delivered on Monday refunds within 30 days] <nil>
	// state: read "card": access denied to agent "search"
	// charged [SECRET]
}
