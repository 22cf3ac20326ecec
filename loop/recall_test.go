package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// recall returns what the model reads, and whether it is an error.
func recall(t *testing.T, st *state.State, words string, searches ...loop.Search) (passages []string, problem string) {
	t.Helper()
	input, err := json.Marshal(map[string]string{"words": words})
	require.NoError(t, err)
	results, err := tool.Run(t.Context(), st, []*tool.Tool{loop.Recall(searches...)}, []state.ToolCall{{ID: "r", Name: "recall", Input: state.JSON(input)}})
	require.NoError(t, err)
	m := results[0].Message
	if m.IsError() {
		return nil, m.Text()
	}
	require.NoError(t, m.Content().Decode(&passages))
	return passages, ""
}

func hear(t *testing.T, st *state.State, msgs ...state.Message) {
	t.Helper()
	require.NoError(t, state.Messages.Set(st, msgs))
}

func TestRecallFindsWhatIsNotShown(t *testing.T) {
	st := state.New(nil)
	call := state.ToolCall{ID: "c", Name: "lookup", Input: `{"key":"kiwi"}`}
	hear(t, st, state.SystemText("The prompt has a kiwi."), state.UserText("pear one"), state.ToolCalls(call),
		state.ToolResult(call, `{"stock":"pear two"}`), state.AssistantText("three"))
	for i := range 10 {
		hear(t, st, state.UserText(fmt.Sprint("question ", i)), state.AssistantText(fmt.Sprint("answer ", i)))
	}
	hear(t, st, state.UserText("pear now"))
	found := []string{"user: pear one\nresult of lookup: {\"stock\":\"pear two\"}\nassistant: three"}
	passages, _ := recall(t, st, "two pear")
	require.Equal(t, found, passages, "the last request is shown")
	passages, _ = recall(t, st, "kiwi")
	require.Empty(t, passages, "the prompt is shown, and what was called is not said")
	passages, _ = recall(t, st, "answer question")
	require.Equal(t, []string{
		"user: question 9\nassistant: answer 9", "user: question 8\nassistant: answer 8\nuser: question 9",
		"user: question 7\nassistant: answer 7\nuser: question 8", "user: question 6\nassistant: answer 6\nuser: question 7",
		"user: question 5\nassistant: answer 5\nuser: question 6",
	}, passages, "a hit beside a better one is in its passage")

	// The window shows the last ones, and a request that waits.
	w := &transcript.Window{Target: 20, Keep: 8, Tokens: func(state.Message) int { return 1 }}
	_, err := w.Messages(t.Context(), st, 0)
	require.NoError(t, err)
	passages, _ = recall(t, st, "9")
	require.Empty(t, passages, "it is shown")
	passages, _ = recall(t, st, "2")
	require.Equal(t, []string{"user: question 2\nassistant: answer 2\nuser: question 3"}, passages)
	passages, _ = recall(t, st, "two pear")
	require.Equal(t, found, passages)
}

func TestRecallDoesNotFindWhatItFound(t *testing.T) {
	st := state.New(nil)
	call := state.ToolCall{ID: "c", Name: "recall", Input: `{"words":"pear"}`}
	hear(t, st, state.UserText("q"), state.ToolCalls(call), state.ToolResult(call, `["user: pear"]`), state.UserText("next"))
	passages, _ := recall(t, st, "pear")
	require.Empty(t, passages)
	require.NotNil(t, passages, "a list with nothing, not null")
}

func TestRecallIsLimited(t *testing.T) {
	st := state.New(nil)
	for i := range 40 {
		hear(t, st, state.UserText(strings.Repeat("pear ", 2000)), state.AssistantText(fmt.Sprint(i)), state.UserText("x"), state.AssistantText("y"))
	}
	hear(t, st, state.UserText("now"))
	many := func(context.Context, *state.State, string) ([]string, error) {
		return strings.Split(strings.Repeat(strings.Repeat("é", 5000)+" ", 9), " "), nil
	}
	passages, _ := recall(t, st, "pear", loop.SearchMessages, many)
	require.Len(t, passages, 10)
	for _, p := range passages {
		require.LessOrEqual(t, len(p), 2<<10+len("…"))
	}
	require.Contains(t, passages[0], "\nassistant: 39", "the latest first")
}

func TestRecallOfAProgram(t *testing.T) {
	own := func(_ context.Context, st *state.State, words string) ([]string, error) {
		if words == "fail" {
			return nil, errors.New("the index is down")
		}
		return []string{st.Agent() + " wants " + words}, state.Messages.Set(st, nil)
	}
	_, problem := recall(t, state.New(nil).As("ann"), "pears", own)
	require.Contains(t, problem, "read-only", "a search is given a snapshot")
	_, problem = recall(t, state.New(nil), "fail", loop.SearchMessages, own)
	require.Contains(t, problem, "the index is down")
	_, problem = recall(t, state.New(nil), " ")
	require.Contains(t, problem, "there are no words to search for")
	passages, _ := recall(t, state.New(nil).As("ann"), "pears", func(_ context.Context, st *state.State, words string) ([]string, error) {
		return []string{st.Agent() + " wants " + words}, nil
	})
	require.Equal(t, []string{"ann wants pears"}, passages)
}

// An agent that may not read the messages gets nothing.
func TestRecallNeedsTheRightToRead(t *testing.T) {
	messages := &state.Field[[]state.Message]{Name: state.Messages.Name, Read: state.Only("ann"), Write: state.Only("ann")}
	st := state.New(state.MustSchema(state.Team{"ann": nil, "bob": nil}, messages))
	hear(t, st, state.UserText("a pear"), state.AssistantText("yes"), state.UserText("now"))
	passages, _ := recall(t, st.As("ann"), "pear")
	require.Len(t, passages, 1)
	_, problem := recall(t, st.As("bob"), "pear")
	require.Contains(t, problem, "denied")
	require.NotContains(t, problem, "pear")
}

// Secrets are masked before anything is cut off or searched: neither a half of
// one is returned, nor does a search tell what is in it.
func TestRecallShowsNoSecret(t *testing.T) {
	key := &state.Field[string]{Name: "key", Secret: true, Read: state.Only("ann")}
	const secret = "hunter-ninety-nine"
	st := state.New(state.MustSchema(state.Team{"ann": nil, "bob": nil}, key))
	require.NoError(t, key.Set(st, secret))
	for pad := 360; pad < 420; pad++ {
		hear(t, st, state.UserText("pear"), state.AssistantText(strings.Repeat("x", pad)+" "+secret))
	}
	hear(t, st, state.UserText("now"))
	own := func(context.Context, *state.State, string) ([]string, error) {
		return []string{strings.Repeat("x", 2040) + " " + secret}, nil
	}
	for _, agent := range []string{"ann", "bob"} {
		passages, _ := recall(t, st.As(agent), "pear", loop.SearchMessages, own)
		require.Len(t, passages, 6)
		require.NotContains(t, strings.Join(passages, " "), "hunt")
		passages, _ = recall(t, st.As(agent), "hunter")
		require.Empty(t, passages)
	}
}
