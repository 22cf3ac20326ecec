package state_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

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

// A Redactor masks the secrets that were set when it was made.
func ExampleState_Redactor() {
	key := &state.Field[string]{Name: "api_key", Secret: true}
	st := state.New(state.MustSchema(key))
	fmt.Println(key.Set(st, "sk-first-4242"))

	before := st.Redactor()
	fmt.Println(key.Set(st, "sk-second-4343"))
	fmt.Println(before.Redact("rotated sk-first-4242 to sk-second-4343"))
	fmt.Println(st.Redactor().Redact("rotated sk-first-4242 to sk-second-4343"))
	fmt.Println(before.Join(st.Redactor()).Redact("rotated sk-first-4242 to sk-second-4343"))
	// Output:
	// <nil>
	// <nil>
	// rotated [SECRET] to sk-second-4343
	// rotated sk-first-4242 to [SECRET]
	// rotated [SECRET] to [SECRET]
}

// The deltas of a model's answer are masked as they come.
func ExampleRedactor_Writer() {
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	fmt.Println(card.Set(st, "4242-4242-4242"))

	w := st.Redactor().Writer(os.Stdout)
	for _, delta := range []string{"Your card 4242-", "4242-42", "42 was charged.", "\n"} {
		if _, err := io.WriteString(w, delta); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(w.Close())
	// Output:
	// <nil>
	// Your card [SECRET] was charged.
	// <nil>
}
