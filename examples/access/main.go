// Access shows who may read and write what, and that a handle can only narrow.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"

	"github.com/agentstate/state"
)

var (
	Order  = &state.Field[string]{Name: "order", Owner: "support", Read: state.Public}
	Notes  = &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	Card   = &state.Field[string]{Name: "card", Read: state.Only("billing")}
	Draft  = &state.Field[string]{Name: "draft", Owner: "support"}
	schema = state.MustSchema(
		state.Team{"support": {"billing", "general"}},
		Order, Notes, Card, Draft,
	)
)

func main() {
	st := state.New(schema) // the host's handle has all rights
	check(st.Patch(map[string]any{"order": "#1", "notes": []string{"urgent"}, "card": "4242", "draft": "Dear Ada"}))

	fmt.Println("          order  notes  card   draft")
	for _, agent := range []string{"support", "billing", "general", "stranger"} {
		rights := map[string]string{"order": "-", "notes": "-", "card": "-", "draft": "-"}
		for _, f := range st.As(agent).Fields() {
			rights[f.Name] = "r"
			if f.Writable {
				rights[f.Name] = "rw"
			}
		}
		fmt.Printf("%-9s %-6s %-6s %-6s %s\n", agent, rights["order"], rights["notes"], rights["card"], rights["draft"])
	}

	// A refusal says who wanted what, and is fs.ErrPermission too.
	general := st.As("general")
	_, err := Card.Get(general)
	fmt.Println("\nread: ", err, errors.Is(err, state.ErrDenied), errors.Is(err, fs.ErrPermission))
	err = Order.Set(general, "#2")
	fmt.Println("write:", err)
	var denied *state.AccessError
	if errors.As(err, &denied) {
		fmt.Printf("       agent %q, op %q, field %q\n", denied.Agent, denied.Op, denied.Field)
	}
	_, err = Order.Get(st.As("stranger"))
	fmt.Println("read: ", err)

	// What it may not read looks as if it were not there.
	fmt.Println("\nkeys of the host:    ", st.KV().Keys())
	fmt.Println("keys of general:     ", general.KV().Keys())

	// Handles narrow and never widen: what billing passes on to general has the
	// rights that both have, and billing goes on signing.
	both := st.As("billing").As("general")
	fmt.Println("billing for general: ", both.KV().Keys(), "signed by", both.Agent())
	fmt.Println("and as billing again:", both.As("billing").KV().Keys())

	// An agent's versions count only what it may read.
	check(Draft.Set(st, "Dear Ms Lovelace"))
	fmt.Println("\nversions:", st.Version(), "for the host,", general.Version(), "for general")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
