package transcript_test

import (
	"fmt"

	"github.com/agentstate/state/transcript"
)

// A server offers Chat Completions, and is stricter than OpenAI: as with
// Mistral, an id has nine letters and digits, the user has the last word, and the
// assistant speaks after results.
func ExampleNewProfile() {
	rules := transcript.OpenAI.Rules()
	rules.Name = "Mistral"
	rules.IDs = transcript.Labels{Chars: "a-zA-Z0-9", MinBytes: 9, MaxBytes: 9}
	rules.UserLast, rules.AssistantAfterResults = true, true
	mistral, err := transcript.NewProfile(rules)
	if err != nil {
		fmt.Println(err)
		return
	}
	msgs, changes := transcript.Repair(interrupted(), mistral, transcript.Policy{})
	for _, change := range changes {
		fmt.Println(change)
	}
	for _, m := range msgs[2:] {
		fmt.Println(m)
	}
	// Output:
	// message 2: id: now with the id "call10000": call "call_1" of "search"
	// message 3: id: now with the id "call10000": call "call_1" of "search"
	// message 4: unanswered-call: dropped call "call_2" of "book"
	// message 5: after-results: put a text of the assistant before it
	// tool_call "assistant": "search" id "call10000"
	// tool_result "search" id "call10000": "[\"DY1872\"]"
	// text "assistant": "Noted."
	// text "user": "Hello?"
}
