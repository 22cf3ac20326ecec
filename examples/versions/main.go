// Versions shows the past: snapshots, the journal, a view of an old version, and
// the way back to it.
package main

import (
	"errors"
	"fmt"
	"log"

	"github.com/agentstate/state"
)

var (
	City   = &state.Field[string]{Name: "city", Read: state.Public, Write: state.Public}
	Hotels = &state.Field[[]string]{Name: "hotels", Read: state.Public, Write: state.Public}
	schema = state.MustSchema(state.Team{"planner": {"booker"}}, City, Hotels)
)

func main() {
	st := state.New(schema)
	planner, booker := st.As("planner"), st.As("booker")
	check(City.Set(planner, "Lisbon"))
	check(Hotels.Set(booker.WithCause("call_17"), []string{"Avenida"}))

	// A snapshot is a frozen state. It costs the same however much there is.
	snap := st.Snapshot()
	check(City.Set(planner, "Porto"))
	check(Hotels.Set(booker.WithCause("call_18"), []string{"Ribeira", "Torel"}))
	_, err := Hotels.Delete(booker)
	check(err)
	fmt.Println("now:     ", City.Or(st, "-"), Hotels.Or(st, nil))
	fmt.Println("snapshot:", City.Or(snap, "-"), Hotels.Or(snap, nil))
	fmt.Println("         ", City.Set(snap, "Faro"))

	// The journal keeps who wrote what, and why.
	fmt.Println("\nversion agent    cause    op      field   value")
	for c, err := range st.Changes(0) {
		check(err)
		fmt.Printf("%-7d %-8s %-8s %-7s %-7s %v\n", c.Version, c.Agent, c.Cause, c.Op, c.Field, c.Value)
	}

	// Any version in the journal can be looked at.
	fmt.Println()
	for v := range st.Version() + 1 {
		past, err := st.At(v)
		check(err)
		fmt.Printf("at %d: %s %v\n", v, City.Or(past, "-"), Hotels.Or(past, nil))
	}

	// Reverting adds a version; nothing is rewritten.
	check(st.Revert(snap))
	fmt.Println("\nreverted:", City.Or(st, "-"), Hotels.Or(st, nil), "is version", st.Version())
	_, err = st.At(99)
	fmt.Println("the future:", err, errors.Is(err, state.ErrNotFound))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
