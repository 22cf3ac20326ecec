package document

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
)

// What stands alone at the front of a conversation is what KeepLast drops of the
// whole of it.
func TestKeepLastDropsWhatStandsAlone(t *testing.T) {
	histories.Law[string]{
		Cases: append(slices.Clone(histories.Formats), histories.Everyone), Parts: true,
		History: func(rng *rand.Rand, format string) []state.Message {
			msgs := histories.Valid(rng, format)
			if rng.IntN(2) == 0 {
				msgs = histories.Mutate(rng, msgs)
			}
			if rng.IntN(4) > 0 {
				msgs = withKeys(rng, msgs)
			}
			return msgs
		},
		Obeys: func(_ string, msgs []state.Message) error {
			shapes := transcript.ShapesOf(msgs)
			for n := range len(msgs) {
				most := len(msgs) - n
				if kept := shapes.KeepLast(most); standsAlone(msgs[:n+1]) && !slices.Equal(kept, lastOf(len(msgs), most)) {
					return fmt.Errorf("of %d messages, the last %d are %d", len(msgs), most, kept)
				}
			}
			return nil
		},
	}.Hold(t)
}

func TestWhatStandsAlone(t *testing.T) {
	user, model := state.UserText("hello"), state.AssistantText("hi")
	call := state.ToolCalls(state.ToolCall{ID: "1", Name: "f"})
	keyed := state.ToolCall{ID: "1", Name: "f", Key: "k"}
	calls, result := state.ToolCalls(keyed), state.ToolResult(keyed, "done")
	for _, c := range []struct {
		name  string
		front []state.Message
		alone bool
	}{
		{"nothing", nil, false},
		{"a request", []state.Message{user}, true},
		{"an answer, whose request is dropped", []state.Message{user, model}, false},
		{"requests and answers", []state.Message{user, model, model, user, user}, true},
		{"a prompt of the system", []state.Message{state.SystemText("be kind"), user}, false},
		{"calls without keys", []state.Message{user, call, state.ToolResult(state.ToolCall{ID: "1", Name: "f"}, "done"), user}, false},
		{"calls with their results", []state.Message{user, calls, result, model, user}, true},
		{"a call that waits", []state.Message{user, calls, user}, false},
		{"a result of another call", []state.Message{user, calls, state.ToolResult(state.ToolCall{ID: "1", Key: "x"}, "done"), user}, false},
		{"two calls with one key", []state.Message{user, calls, calls, result, user}, false},
		{"two results of a call", []state.Message{user, calls, result, result, user}, false},
	} {
		require.Equal(t, c.alone, standsAlone(c.front), c.name)
	}
}

// withKeys gives most calls keys, and their results the same, as a State does.
func withKeys(rng *rand.Rand, msgs []state.Message) []state.Message {
	msgs = slices.Clone(msgs)
	for i, m := range msgs {
		if m, ok := m.(state.ToolCallMessage); ok && m.Raw() != "" {
			calls := m.Calls()
			for k := range calls {
				if rng.IntN(16) > 0 {
					calls[k].Key = "key of " + calls[k].ID
				}
			}
			msgs[i] = state.ToolCalls(calls...)
		}
		if m, ok := m.(state.ToolResultMessage); ok && m.Raw() != "" && rng.IntN(16) > 0 {
			call := m.Call()
			call.Key = "key of " + call.ID
			msgs[i] = state.ToolResult(call, "done")
		}
	}
	return msgs
}
