package histories_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/stretchr/testify/require"
)

func TestHistoriesAreReproducible(t *testing.T) {
	for i := range uint64(effort.Runs(30)) {
		for _, format := range append(slices.Clone(histories.Formats), histories.Everyone) {
			history := func() string {
				rng := rand.New(rand.NewPCG(1, i))
				msgs := histories.Valid(rng, format)
				valid := histories.Render(msgs)
				broken := histories.Mutate(rng, msgs)
				require.Equal(t, valid, histories.Render(msgs), "the history that was broken changed")
				return valid + histories.Render(broken)
			}
			require.Equal(t, history(), history())
		}
	}
}

func TestHistoriesHaveEveryShape(t *testing.T) {
	seen := map[string]bool{}
	long := false
	for i := range uint64(2000) {
		msgs := histories.Valid(rand.New(rand.NewPCG(2, i)), histories.Formats[i%4])
		long = long || len(msgs) > 100
		for _, m := range msgs {
			seen[m.Type()] = true
			if calls, ok := m.(state.ToolCallMessage); ok && len(calls.Calls()) == 5 {
				seen["5 calls"] = true
			}
			if result, ok := m.(state.ToolResultMessage); ok {
				seen["error"] = seen["error"] || result.IsError()
				seen["empty"] = seen["empty"] || result.Content() == `""`
				seen["no id"] = seen["no id"] || result.Call().ID == ""
			}
		}
		seen["none"] = seen["none"] || len(msgs) == 0
	}
	require.True(t, long)
	for _, shape := range []string{"none", "text", "tool_call", "tool_result", "note", "openai_responses.reasoning", "openai_responses.mcp_call",
		"5 calls", "error", "empty", "no id"} {
		require.True(t, seen[shape], shape)
	}
}
