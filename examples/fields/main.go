// Fields shows the two doors to a field, the typed handle and the name, and that
// both keep the same rules.
package main

import (
	"errors"
	"fmt"
	"log"

	"github.com/agentstate/state"
)

type Address struct {
	Street string `json:"street"`
	Zip    string `json:"zip"`
}

var (
	Name = &state.Field[string]{Name: "name"}
	Ship = &state.Field[Address]{Name: "ship_to"}
	Due  = &state.Field[state.Time]{Name: "due"}
	Tags = &state.Field[[]string]{Name: "tags"}
	Qty  = &state.Field[int]{Name: "quantity", Validate: func(n int) error {
		if n < 1 {
			return errors.New("must be at least 1")
		}
		return nil
	}}
	schema = state.MustSchema(Name, Ship, Due, Tags, Qty)
)

func main() {
	st := state.New(schema)

	// The typed door: the compiler knows the types.
	check(Name.Set(st, "Ada"))
	check(Tags.Set(st, []string{"gift"}))
	check(Tags.Set(st, []string{"fragile"})) // a list appends
	check(Qty.Set(st, 2))
	check(Qty.Update(st, func(n int) (int, error) { return n + 1, nil }))
	tags, err := Tags.Get(st)
	check(err)
	fmt.Println("typed:  ", Name.Or(st, "nobody"), tags, Qty.Or(st, 0))

	// The door by name: what a model or a request has written is converted, if
	// nothing is lost, and the whole patch is one version or nothing.
	check(st.Patch(map[string]any{
		"ship_to":  map[string]any{"street": "12 Mill Lane", "zip": "02139"},
		"due":      "2027-01-31",
		"quantity": 4.0,
	}))
	quantity, _ := st.KV().Get("quantity")
	fmt.Printf("by name: %v (%T), %v\n", quantity, quantity, st.KV().Keys())
	fmt.Println("both:   ", Ship.Or(st, Address{}).Street, Due.Or(st, state.Time{}))

	// What does not fit is an error, and nothing has changed.
	fmt.Println("\nrefused:")
	fmt.Println(" ", Qty.Set(st, 0))
	fmt.Println(" ", st.KV().Set("quantity", "many"))
	fmt.Println(" ", st.KV().Set("ship_to", map[string]any{"street": 12}))
	fmt.Println(" ", st.KV().Set("colour", "red"))
	_, err = (&state.Field[bool]{Name: "quantity"}).Get(st)
	fmt.Println(" ", err)
	fmt.Println("still:  ", Qty.Or(st, 0), "at version", st.Version())

	// What came out is a copy: changing it changes nothing in the state.
	tags[0] = "changed"
	fmt.Println("copies: ", Tags.Or(st, nil))
	for i, tag := range state.Items(st, Tags, -1) {
		fmt.Printf("the last of %d tags is number %d, %q\n", state.Len(st, Tags), i, tag)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
