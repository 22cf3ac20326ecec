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
		{"calls", []state.Message{user, call, user}, false},
	} {
		require.Equal(t, c.alone, standsAlone(c.front), c.name)
	}
}
