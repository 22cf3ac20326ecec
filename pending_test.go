package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/transcript"
)

func idsOf(calls []state.ToolCall) []string {
	ids := []string{}
	for _, c := range calls {
		ids = append(ids, c.ID+c.Name)
	}
	return ids
}

// TestPendingOfAgent: an agent finds the calls of its own results, whether or
// not they are in Messages, and the host those of no agent.
func TestPendingOfAgent(t *testing.T) {
	schema := state.MustSchema(
		&state.Field[[]state.Message]{Name: "messages", Read: state.Only("billing"), Write: state.Only("billing")},
		state.Team{"billing": {"search"}})
	for _, schema := range []*state.Schema{state.MustSchema(state.Team{"billing": {"search"}}), schema} {
		st := state.New(schema)
		for _, agent := range []string{"billing", "search", ""} {
			said := []state.Message{state.AssistantText("looking"), state.ToolCalls(state.ToolCall{ID: agent + "1"}, state.ToolCall{ID: agent + "2"})}
			require.NoError(t, st.History().Append(state.InferenceResult{Agent: agent, Output: said}))
			said = []state.Message{state.ToolCalls(state.ToolCall{ID: agent + "3"})}
			require.NoError(t, st.History().Push(state.InferenceResult{Agent: agent, Output: said}))
		}
		require.NoError(t, st.As("search").History().Answer(state.ToolResult(state.ToolCall{ID: "search2"}, "1")))
		for _, as := range []func(*state.State) *state.State{(*state.State).Snapshot, func(st *state.State) *state.State { return st }} {
			require.Equal(t, []string{"billing1", "billing2", "billing3"}, idsOf(as(st.As("billing")).History().Pending()))
			require.Equal(t, []string{"search1", "search3"}, idsOf(as(st.As("search")).History().Pending()))
			require.Equal(t, []string{"1", "2", "3"}, idsOf(as(st).History().Pending()))
		}
	}
	require.Empty(t, state.New(nil).History().Pending(state.ToolCall{ID: "1"}))
}

// TestPendingElsewhere: an answer that is in Messages only counts, and a call
// that was trimmed stays pending.
func TestPendingElsewhere(t *testing.T) {
	st := state.New(nil)
	calls := []state.ToolCall{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}}
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
	msgs, err := transcript.Answer(state.Messages.Or(st, nil), state.ToolError(calls[0], "cut off"))
	require.NoError(t, err)
	require.NoError(t, state.Messages.Replace(st, msgs))
	require.Equal(t, []string{"2b"}, idsOf(st.History().Pending()))

	require.NoError(t, state.Messages.Replace(st, nil))
	require.Equal(t, []string{"1a", "2b"}, idsOf(st.History().Pending()))
}

// TestPendingSuspended: a suspended call stands for one call, by its id, or by
// its name if the provider gives no ids.
func TestPendingSuspended(t *testing.T) {
	st := state.New(nil)
	for _, calls := range [][]state.ToolCall{{{ID: "1", Name: "a"}, {ID: "1", Name: "b"}, {Name: "c"}, {Name: "c"}}, {{ID: "1", Name: "b"}}} {
		require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
	}
	for _, row := range []struct{ suspended, want string }{
		{"", "1a 1b c c 1b"},
		{"1a", "1b c c 1b"},
		{"1b", "1a c c 1b"},
		{"1b 1b 1b", "c c"},
		{"1 c", "1b c 1b"},
		{"2a b", "1a 1b c c 1b"},
	} {
		var suspended []state.ToolCall
		for _, c := range strings.Fields(row.suspended) {
			call := state.ToolCall{Name: c}
			if c[0] <= '9' {
				call = state.ToolCall{ID: c[:1], Name: c[1:]}
			}
			suspended = append(suspended, call)
		}
		require.Equal(t, strings.Fields(row.want), idsOf(st.History().Pending(suspended...)), row.suspended)
	}
}

// TestPendingRandom: if every message is in the conversation and each call has
// an id of its own, the history and the conversation have the same open calls.
func TestPendingRandom(t *testing.T) {
	for seed := range uint64(effort.Runs(200)) {
		random := rand.New(rand.NewPCG(seed, 1))
		st, open, n := state.New(nil), []state.ToolCall{}, 0
		for range 30 {
			if len(open) == 0 || random.IntN(2) == 0 {
				var calls []state.ToolCall
				for range 1 + random.IntN(20) {
					n++
					calls = append(calls, state.ToolCall{ID: fmt.Sprint(n), Name: "f"})
				}
				require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
				open = append(open, calls...)
			} else {
				i := random.IntN(len(open))
				require.NoError(t, st.History().Answer(state.ToolResult(open[i], "1")))
				open = slices.Delete(open, i, i+1)
			}
			require.Equal(t, idsOf(open), idsOf(st.History().Pending()), "seed %d", seed)
			msgs := state.Messages.Or(st, nil)
			require.Equal(t, idsOf(transcript.Pending(msgs)), idsOf(st.History().Pending()), "seed %d", seed)
		}
	}
}
