package state_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/agentstate/state"
)

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

func ExampleRedactHandler() {
	key := &state.Field[string]{Name: "api_key", Secret: true}
	st := state.New(state.MustSchema(key))
	text := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})

	logger := slog.New(state.RedactHandler(text)).With("client", "sk-live-4242")
	fmt.Println(key.Set(st, "sk-live-4242"))
	ctx := state.NewContext(context.Background(), st)
	logger.ErrorContext(ctx, "call failed", "err", errors.New("401 for sk-live-4242"))
	// Output:
	// <nil>
	// level=ERROR msg="call failed" client=[SECRET] err="401 for [SECRET]"
}

// withoutTime removes the time of log records.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
