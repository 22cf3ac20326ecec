package state_test

import (
	"encoding/json"
	"fmt"

	"github.com/agentstate/state"
)

// A secret is masked wherever a state is shown. Its readers get it as it is.
func Example_secrets() {
	card := &state.Field[string]{Name: "card", Secret: true}
	note := &state.Field[string]{Name: "note"}
	st := state.New(state.MustSchema(card, note))
	_ = card.Set(st, "4242-4242-4242-4242")
	_ = note.Set(st, "paid with 4242-4242-4242-4242")

	fmt.Print(st.Describe())
	view, err := json.Marshal(st)
	fmt.Println(string(view), err)
	fmt.Println(st.Redact("POST /charge?card=4242%2D4242%2D4242%2D4242"))
	fmt.Println(card.Get(st))
	// Output:
	// - card (string) = [SECRET]
	// - note (string) = "paid with 4242-4242-4242-4242"
	// {"version":2,"values":{"card":"[SECRET]","note":"paid with [SECRET]"},"results":0} <nil>
	// POST /charge?card=[SECRET]
	// 4242-4242-4242-4242 <nil>
}

// A Redactor that was made before a secret was rotated masks the old one.
func Example_rotatedSecrets() {
	token := &state.Field[string]{Name: "token", Secret: true}
	st := state.New(state.MustSchema(token))
	_ = token.Set(st, "first-token-of-april")
	old := st.Redactor()
	_ = token.Set(st, "second-token-of-may")

	const line = "first-token-of-april, second-token-of-may"
	fmt.Println(st.Redact(line))
	fmt.Println(old.Redact(st.Redact(line)))
	// Output:
	// first-token-of-april, [SECRET]
	// [SECRET], [SECRET]
}
