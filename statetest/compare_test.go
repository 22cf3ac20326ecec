package statetest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest"
)

func TestCmpOfStatesPointsToCompare(t *testing.T) {
	defer func() { require.Contains(t, fmt.Sprint(recover()), "compareWithStatetest") }()
	cmp.Diff(state.New(nil), state.New(nil))
}

func TestStatesAreComparedByWhatTheHandleReads(t *testing.T) {
	d, other := newTill(t), newTill(t)
	same := func(a, b *state.State) bool { return cmp.Equal(a, b, statetest.Compare()) }
	require.True(t, same(d.st, other.st))
	require.NoError(t, d.st.History().Append(state.InferenceResult{Agent: "a", Output: []state.Message{state.AssistantText("Hello")}}))
	require.False(t, same(d.st, other.st))
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	require.NoError(t, other.st.History().Append(state.InferenceResult{Agent: "a", CreatedAt: at, StartedAt: at, Output: []state.Message{state.AssistantText("Hello")}}))
	require.True(t, same(d.st, other.st), cmp.Diff(d.st, other.st, statetest.Compare()))

	require.NoError(t, d.note.Replace(other.st, "another"))
	require.False(t, same(d.st, other.st))
	require.True(t, same(d.st.As("search"), other.st.As("search")), "search may not read the note")
	require.NoError(t, d.note.Replace(other.st, "suspected of fraud"))
	require.NoError(t, d.card.Replace(other.st, cardNumber+"1"))
	diff := cmp.Diff(d.st, other.st, statetest.Compare(d.st, other.st))
	require.NotEmpty(t, diff)
	require.NotContains(t, diff, cardNumber)
}

func TestMessagesAreComparedByTheirJSON(t *testing.T) {
	one, err := state.DecodeMessage([]byte(`{"type":"text","role":"user","content":"a","x":{"a":1,"b":2}}`))
	require.NoError(t, err)
	two, err := state.DecodeMessage([]byte(`{"x":{"b":2,"a":1},"content":"\u0061","role":"user","type":"text"}`))
	require.NoError(t, err)
	require.True(t, cmp.Equal(one, two))
	require.True(t, cmp.Equal(one, two, statetest.Compare()))
	diff := cmp.Diff(one, state.Message(state.UserText("b")), statetest.Compare())
	require.Contains(t, diff, `"content"`)
	require.Contains(t, diff, `string("a")`)
	a := state.ToolCall{Name: "refund", Input: `{"a":1,"b":[2]}`}
	b := state.ToolCall{Name: "refund", Input: `{"b":[2], "a":1}`}
	require.True(t, cmp.Equal(a, b, statetest.Compare()))
	require.False(t, cmp.Equal(state.JSON(`1`), state.JSON(`1.0`), statetest.Compare()))
}

func TestKeysOfCallsDoNotCount(t *testing.T) {
	said := []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "look"}, state.ToolCall{ID: "1", Name: "look"})}
	recorded := func() *state.State {
		st := state.New(nil)
		require.NoError(t, st.History().Append(state.InferenceResult{Output: said}))
		require.NoError(t, st.History().Answer(state.ToolResult(st.History().Pending()[1], `"gone"`)))
		return st
	}
	a, b := recorded(), recorded()
	require.True(t, cmp.Equal(a, b, statetest.Compare()), cmp.Diff(a, b, statetest.Compare()))
	require.True(t, cmp.Equal(said[0], state.Messages.GetOr(a, nil)[0], statetest.Compare()))
	require.True(t, cmp.Equal(a.History().Pending(), []state.ToolCall{{ID: "1", Name: "look"}}, statetest.Compare()))
	require.False(t, cmp.Equal(a.History().Pending(), []state.ToolCall{{ID: "2", Name: "look"}}, statetest.Compare()))

	for _, st := range []*state.State{a, b} {
		j, err := state.JSONOf(state.Messages.GetOr(st, nil))
		require.NoError(t, err)
		require.True(t, statetest.Golden(t, "keys.txt", string(j)+"\n"))
	}
}

func TestTranscriptRenamesIDs(t *testing.T) {
	talk := func(first, second string) []state.Message {
		a, b := state.ToolCall{ID: first, Name: "look", Input: `{"b":1,"a":"<x>"}`}, state.ToolCall{ID: second, Name: "look"}
		return []state.Message{state.ToolCalls(a, b), state.ToolResult(b, `"two\nlines"`), state.ToolError(a, "gone")}
	}
	want := "assistant calls look {\"a\":\"<x>\",\"b\":1} (call_1), look nothing (call_2)\n" +
		"result of look (call_2): \"two\\nlines\"\n" +
		"result of look (call_1), failed: \"gone\"\n"
	require.Equal(t, want, statetest.Transcript(talk("x", "y")))
	require.Equal(t, want, statetest.Transcript(talk("toolu_1", "toolu_0")))
}

func TestJournalNamesWritersAndErrors(t *testing.T) {
	d := newTill(t)
	require.NoError(t, d.st.As("billing").History().Append(state.InferenceResult{}))
	require.Equal(t, []string{"billing set refund call_1", "billing append history"}, statetest.Journal(d.st, 3))
	require.Equal(t, []string{"billing append history"}, statetest.Journal(d.st, 0, ""))
	lines := statetest.Journal(d.st, 0, "unknown")
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "error: ")
}

// Another handle than the host's has the same secrets to hide.
func TestSecretsDoNotDependOnTheHandle(t *testing.T) {
	d := newTill(t)
	require.NoError(t, d.refund.Set(d.st, 17))
	quiet := &silentT{TB: t}
	for _, st := range []*state.State{d.st, d.st.As("search"), d.st.Fork(), d.st.Snapshot()} {
		require.False(t, statetest.NoLeak(quiet, st, "search", "card "+cardNumber))
	}
	given, err := d.st.With(map[string]any{"card": "5555-5555-5555"})
	require.NoError(t, err)
	require.False(t, statetest.NoLeak(quiet, given, "", "card "+cardNumber))
	require.False(t, statetest.NoLeak(quiet, given, "", "card 5555-5555-5555"))
	require.True(t, statetest.NoLeak(quiet, given, "", "card 6666-5555-5555"))
}

type silentT struct{ testing.TB }

func (silentT) Errorf(string, ...any) {}
