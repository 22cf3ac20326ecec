package statetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest"
)

// exampleT is the *testing.T that a test function gets. It prints the first
// line of each failure.
type exampleT struct{ testing.TB }

func (exampleT) Helper()      {}
func (exampleT) Name() string { return "TestDesk" }
func (exampleT) Errorf(format string, args ...any) {
	line, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	fmt.Println(line)
}

// A field that an agent may not read needs no function of the kit.
func Example_denied() {
	card := &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	st := state.New(state.MustSchema(state.Team{"billing": nil, "search": nil}, card))
	_, err := card.Get(st.As("search"))
	fmt.Println(errors.Is(err, state.ErrDenied))
	// Output: true
}

func ExampleCompare() {
	card := &state.Field[string]{Name: "card", Secret: true}
	schema := state.MustSchema(card)
	a, b := state.New(schema), state.New(schema)
	for st, number := range map[*state.State]string{a: "4242-4242-4242", b: "5555-5555-5555"} {
		if err := card.Set(st, number); err != nil {
			fmt.Println(err)
		}
	}
	diff := cmp.Diff(a, b, statetest.Compare(a, b))
	fmt.Println(strings.Contains(diff, "[SECRET 1]"), strings.Contains(diff, "[SECRET 2]"), strings.Contains(diff, "4242"))
	fmt.Println(cmp.Equal(a, a.Snapshot(), statetest.Compare()))
	// Output:
	// true true false
	// true
}

func ExampleEqual() {
	var t exampleT // a *testing.T
	want := []state.Message{state.UserText("Hello"), state.AssistantText("Good morning")}
	fmt.Println(statetest.Equal(t, want, []state.Message{state.UserText("Hello"), state.AssistantText("Good morning")}))
	// Output: true
}

func ExampleJournal() {
	refund := &state.Field[float64]{Name: "refund", Owner: "billing", Read: state.Public}
	st := state.New(state.MustSchema(state.Team{"billing": nil}, refund))
	_ = refund.Set(st.As("billing").WithCause("call_1"), 129.9)
	_ = state.Messages.Set(st, []state.Message{state.UserText("Thanks!")})
	for _, line := range statetest.Journal(st, 0) {
		fmt.Println(line)
	}
	// Output:
	// billing set refund call_1
	// host set messages
}

func ExampleTranscript() {
	call := state.ToolCall{ID: "toolu_01A9", Name: "refund", Input: `{"order":"#W1","amount":129.90}`}
	fmt.Print(statetest.Transcript([]state.Message{
		state.UserText("The keyboard is broken."),
		state.ToolCalls(call),
		state.ToolResult(call, `{"ok":true}`),
		state.AssistantText("Refunded."),
	}))
	// Output:
	// user: "The keyboard is broken."
	// assistant calls refund {"amount":129.90,"order":"#W1"} (call_1)
	// result of refund (call_1): {"ok":true}
	// assistant: "Refunded."
}

func ExampleNoLeak() {
	var t exampleT // a *testing.T
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	_ = card.Set(st, "4242-4242-4242")
	statetest.NoLeak(t, st, "", `{"auth":"NDI0Mi00MjQyLTQyNDI=","amount":1}`)
	// Output:
	// statetest: text 1 tells card, a secret, as base64, by byte 28
}

func ExampleGolden() {
	var t exampleT // a *testing.T
	text := statetest.Transcript([]state.Message{state.UserText("The keyboard is broken.")})
	fmt.Println(statetest.Golden(t, "transcript.txt", text))
	// Output: true
}
