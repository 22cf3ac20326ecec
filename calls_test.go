package state_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/test/effort/property"
)

// The tests of this file prove how calls are told apart: by keys, of which each
// conversation has every one once, and in requests by ids that do not repeat.

var insider = state.Inside(internal.Key{})

// callTo returns a result with a call for each id, all alike otherwise.
func callTo(ids ...string) state.InferenceResult {
	calls := make([]state.ToolCall, len(ids))
	for i, id := range ids {
		calls[i] = state.ToolCall{ID: id, Name: "look", Input: "{}"}
	}
	return state.InferenceResult{Output: []state.Message{state.AssistantText("I look"), state.ToolCalls(calls...)}}
}

// callsSaid returns the calls of a conversation.
func callsSaid(st *state.State) []state.ToolCall {
	return insider.CallsOf(state.Messages.GetOr(st, nil)...)
}

// talk is a conversation in a fork, with the ids that it must and those that it
// may know: what was cut off a conversation may still count.
type talk struct {
	st    *state.State
	known map[string]bool // by id; false if its call was cut off
}

// An id repeats if the conversation has it: that of the fork in which the call is
// recorded, as it was edited, and not that of another one. The forks are more than
// those whose calls are remembered.
func TestIDsRepeatInTheConversationThatHasThem(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		talks := []talk{{state.New(nil), map[string]bool{}}}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			on := &talks[rapid.IntRange(0, len(talks)-1).Draw(t, "fork")]
			msgs := state.Messages.GetOr(on.st, nil)
			switch step := rapid.SampledFrom([]string{"call", "call", "call", "fork", "edit", "cut", "drop"}).Draw(t, "step"); {
			case step == "call":
				id := rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "id")
				require.NoError(t, on.st.History().Append(callTo(id)))
				key := callsSaid(on.st)[len(callsSaid(on.st))-1].Key
				if has, known := on.known[id]; has || !known {
					require.Equal(t, has, callkey.Repeats(key), "step %d: the call %s behind %s", i, id, partShow(msgs))
				}
				on.known[id] = true
			case step == "fork" && len(talks) < 7:
				talks = append(talks, talk{on.st.Fork(), maps.Clone(on.known)})
			case len(msgs) == 0:
			case step == "edit": // a text; a call keeps its id and its key
				at := rapid.IntRange(0, len(msgs)/2-1).Draw(t, "at")
				msgs[2*at] = state.AssistantText(fmt.Sprint("edited in step ", i))
				require.NoError(t, state.Messages.Replace(on.st, msgs))
			case step == "drop": // what was said in the middle
				at := rapid.IntRange(0, len(msgs)/2-1).Draw(t, "at")
				require.NoError(t, state.Messages.Replace(on.st, slices.Delete(msgs, 2*at, 2*at+2)))
				for id := range on.known {
					on.known[id] = slices.ContainsFunc(callsSaid(on.st), func(c state.ToolCall) bool { return c.ID == id })
				}
			case step == "cut": // what was said last
				at := rapid.IntRange(0, len(msgs)/2-1).Draw(t, "at")
				require.NoError(t, state.Messages.Replace(on.st, msgs[:2*at]))
				for id := range on.known {
					on.known[id] = slices.ContainsFunc(callsSaid(on.st), func(c state.ToolCall) bool { return c.ID == id })
				}
			}
		}
		for _, talk := range talks {
			sent := map[string]bool{}
			for _, c := range callsSaid(talk.st) {
				id := callkey.IDOf(c.ID, c.Key)
				require.False(t, sent[id], "a request has the id %s twice: %v", id, callsSaid(talk.st))
				sent[id] = true
			}
		}
	})
}

// An edit in front of the last message counts, although the end is the same.
func TestIDsRepeatBehindAnEdit(t *testing.T) {
	st := state.New(nil)
	for _, id := range []string{"1", "2", "3"} {
		require.NoError(t, st.History().Append(callTo(id)))
	}
	msgs := state.Messages.GetOr(st, nil)
	msgs[1] = callTo("9").Output[1]
	require.NoError(t, state.Messages.Replace(st, msgs))
	require.NoError(t, st.History().Append(callTo("9")))
	require.NoError(t, st.History().Append(callTo("1")))
	calls := callsSaid(st)
	require.True(t, callkey.Repeats(calls[len(calls)-2].Key))
	require.False(t, callkey.Repeats(calls[len(calls)-1].Key))
}

// What was recorded of an answer are its calls with their keys, whoever has
// recorded one since: another agent the same calls, or the agent others.
func TestRecordedCallsAreThoseOfTheAgent(t *testing.T) {
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}))
	a, b := st.As("a"), st.As("b")
	keys := func(calls []state.ToolCall) (keys []string) {
		for _, c := range calls {
			keys = append(keys, c.Key)
		}
		return keys
	}
	last := func(st *state.State) []string {
		r, _ := st.History().Last()
		return keys(insider.CallsOf(r.Output...))
	}
	said := callTo("1", "2")
	require.Equal(t, []string{"", ""}, keys(insider.RecordedCalls(a, said.Output)), "none is recorded")
	require.NoError(t, a.History().Append(said))
	own := last(a)
	require.NoError(t, b.History().Append(said))
	others := last(b)
	require.NotEqual(t, own, others)
	require.NoError(t, st.History().Append(callTo("9")))

	require.Equal(t, own, keys(insider.RecordedCalls(a, said.Output)))
	require.Equal(t, others, keys(insider.RecordedCalls(b, said.Output)))
	require.Equal(t, []string{"", ""}, keys(insider.RecordedCalls(st, said.Output)), "the host has recorded others")
	require.Equal(t, last(st), keys(insider.RecordedCalls(st, callTo("9").Output)))

	require.NoError(t, a.History().Append(callTo("1")))
	require.Equal(t, own, keys(insider.RecordedCalls(a, said.Output)), "not the last answer, which has other calls")
	require.NoError(t, a.History().Append(said))
	require.Equal(t, last(a), keys(insider.RecordedCalls(a, said.Output)), "of equal answers the last")
	require.NotEqual(t, own, last(a))
	require.Nil(t, insider.RecordedCalls(a, []state.Message{state.AssistantText("done")}))
	other := callTo("1", "2")
	other.Output[1] = state.ToolCalls(state.ToolCall{ID: "1", Name: "look", Input: "[]"}, state.ToolCall{ID: "2", Name: "look", Input: "{}"})
	require.Equal(t, []string{"", ""}, keys(insider.RecordedCalls(a, other.Output)), "with another input")
}

// Two agents of which one may not read the conversation may have calls of one id.
// It is the call of the agent who asks, and else the latest.
func TestAnIDNamesTheCallOfTheAgent(t *testing.T) {
	st := state.New(state.MustSchema(state.Team{"a": {"b", "c"}}, &state.Field[[]state.Message]{Name: "messages", Read: state.Only("a", "c"), Write: state.Only("a", "c")}))
	for _, agent := range []string{"a", "b", "a"} {
		require.NoError(t, st.As(agent).History().Append(callTo("1")))
	}
	results := st.History().Results()
	keyIn := func(i int) string { return insider.CallsOf(results[i].Output...)[0].Key }
	again := callkey.IDOf("1", keyIn(2))
	require.NotEqual(t, "1", again, "a reads that it repeats")
	for agent, want := range map[string]string{"a": keyIn(0), "b": keyIn(1), "c": keyIn(1)} {
		handle := st.As(agent)
		require.Equal(t, want, insider.KeyOfID(handle, "1"), agent)
		given := []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "look"}), state.ToolResult(state.ToolCall{ID: "1", Name: "look"}, "1")}
		keyed := insider.WithKeys(handle, given)
		require.Equal(t, want, insider.CallsOf(keyed...)[0].Key, agent)
		require.Equal(t, want, keyed[1].(state.ToolResultMessage).Call().Key, agent)
	}
	require.Equal(t, keyIn(2), insider.KeyOfID(st.As("a"), again))
	require.Empty(t, insider.KeyOfID(st.As("b"), again), "b does not see it")
	require.Empty(t, insider.KeyOfID(st, "2"))
}
