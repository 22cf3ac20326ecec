package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// logLines are the lines of a log, of which line 30 000 has words of its own.
func logLines(more string) string {
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "line %d is like the others%s\n", i, more)
		if i == 30_000 {
			b.WriteString("Übermut kommt vor dem Fall: disk full\n")
		}
	}
	return b.String()
}

// The model is shown the ends of what a tool has returned, the field that the tool
// writes has the whole, and recall finds the rest, also while the result is shown.
func TestRecallFindsWhatIsLeftOut(t *testing.T) {
	output := &state.Field[string]{Name: "output"}
	st := state.New(state.MustSchema(output))
	read := tool.Must(tool.New("read", "Reads.", func(context.Context, struct{}) (string, error) { return logLines(""), nil }, tool.To(output, "")))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("read")}))
	require.NoError(t, st.History().Append(say(state.ToolCall{ID: "c1", Name: "read", Input: `{}`})))
	turn, err := loop.NewTurn(state.NewContext(t.Context(), st), "", read, loop.Recall())
	require.NoError(t, err)
	prompt, err := turn.Prompt(t.Context(), state.Messages.GetOr(st, nil)) // which makes the call
	require.NoError(t, err)
	require.Len(t, output.GetOr(st, ""), len(logLines("")), "outputs to fields get the whole")
	shown := transcript.Shown(prompt, true)
	require.Equal(t, shown, transcript.Shown(state.Messages.GetOr(st, nil), true), "and in the next request")
	result := shown[len(shown)-1].Text()
	require.LessOrEqual(t, len(result), 16<<10)
	require.True(t, strings.HasPrefix(result, "line 0 is like"))
	require.True(t, strings.HasSuffix(result, "line 59999 is like the others\n"))
	require.Contains(t, result, "The tool recall finds words in them.")
	require.NotContains(t, result, "disk full")

	for _, words := range []string{"disk", "übermut fall", "disk full"} {
		passages, _ := recall(t, st, words)
		require.NotEmpty(t, passages, words)
		require.Contains(t, passages[0], "disk full", words)
		require.Contains(t, passages[0], "result of read: ")
		for _, passage := range passages {
			require.Less(t, len(passage), 2<<10+8)
		}
	}
	passages, _ := recall(t, st, "line 30002")
	require.Contains(t, passages[0], "line 30002 is")
}

// What recall returns is under the limit, so that nothing is left out of it.
func TestRecallReturnsWhatIsShown(t *testing.T) {
	for _, limit := range []int{0, 600, 2000, 5000} {
		st := state.New(state.MustSchema(state.Limits{ResultBytes: limit}))
		call := turnCall("c1", "read")
		hear(t, st, state.UserText("read"), state.ToolCalls(call), state.ToolResult(call, state.JSONText(logLines(` "quoted"`))), state.UserText("find"))
		more := func(context.Context, *state.State, string) ([]string, error) {
			return []string{strings.Repeat("a ", 5000), strings.Repeat("b\n", 5000), "c", "d", "e", "f"}, nil
		}
		for _, searches := range [][]loop.Search{nil, {loop.SearchMessages, more}, {more, more, more, more}} {
			asked := state.ToolCall{ID: "r", Name: "recall", Input: `{"words":"line others"}`}
			require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(asked)}}))
			results, err := tool.Answer(t.Context(), st, []*tool.Tool{loop.Recall(searches...)}, st.History().Pending())
			require.NoError(t, err)
			require.NotEqual(t, "[]", results[0].Message.Text())
			require.Equal(t, results[0].Message.Text(), transcript.Shown([]state.Message{results[0].Message}, true)[0].Text(), "limit %d, %d searches", limit, len(searches))
		}
	}
}

// A secret is masked before a large result is cut into pieces.
func TestRecallOfPiecesShowsNoSecret(t *testing.T) {
	secret := &state.Field[string]{Name: "secret", Secret: true}
	st := state.New(state.MustSchema(secret))
	require.NoError(t, secret.Set(st, "swordfish and trout"))
	call := turnCall("c1", "read")
	hear(t, st, state.UserText("read"), state.ToolCalls(call), state.ToolResult(call, state.JSONText(strings.Repeat("pear swordfish and trout ", 5000))), state.UserText("find"))
	passages, _ := recall(t, st, "pear")
	require.NotEmpty(t, passages)
	for _, passage := range passages {
		require.NotContains(t, passage, "swordfish")
		require.NotContains(t, passage, "trout")
	}
	passages, _ = recall(t, st, "trout")
	require.Empty(t, passages)
}
