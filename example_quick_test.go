package state_test

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

var (
	OrderID = &state.Field[string]{Name: "order_id", Owner: "support", Read: state.Public}
	Notes   = &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public} // a list: appends
	Card    = &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	Desk    = state.MustSchema(state.Team{"support": {"billing", "search"}}, OrderID, Notes, Card)
)

func Example() {
	st := state.New(Desk)        // the host's handle: all rights
	search := st.As("search")    // an agent's handle: its rights
	a, b := st.Fork(), st.Fork() // two branches, for two goroutines
	err := errors.Join(
		OrderID.Set(st.As("support"), "#W2378156"),
		Card.Set(st, "4242-4242-4242"),
		Notes.Set(a.As("search"), []string{"delivered on Monday"}),
		Notes.Set(b.As("search"), []string{"refunds within 30 days"}),
		st.Join(a, b), // both notes, in this order, whoever was first
	)
	fmt.Println(Notes.Or(search, nil), err)
	_, err = Card.Get(search)
	fmt.Println(err)
	fmt.Println(st.Redact("charged 4242-4242-4242"))
	// Output:
	// [delivered on Monday refunds within 30 days] <nil>
	// state: read "card": access denied to agent "search"
	// charged [SECRET]
}
