package loop_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

// Outside of a workspace, the default log is told why a call has failed, if that is
// a mistake of the program.
func TestMistakesOfToolsAreLogged(t *testing.T) {
	pin := &state.Field[string]{Name: "pin", Secret: true}
	kept := &state.Field[string]{Name: "kept", Read: state.Public}
	tools := []*tool.Tool{
		tool.Must(tool.New("burst", "Bursts.", func(context.Context, struct{}) (string, error) { panic("no hunter2-hunter2") })),
		tool.Must(tool.New("note", "Notes.", func(context.Context, struct{}) (string, error) { return "x", nil }, tool.To(kept, ""))),
		tool.Must(tool.New("fail", "Fails.", func(context.Context, struct{}) (string, error) { return "", context.Canceled })),
	}
	st := state.New(state.MustSchema(state.Team{"desk": nil}, pin, kept))
	require.NoError(t, pin.Set(st, "hunter2-hunter2"))
	require.NoError(t, st.UserSays("Hello!"))

	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	turn, err := loop.NewTurn(state.NewContext(t.Context(), st), "desk", tools...)
	require.NoError(t, err)
	call := func(id, name string) state.ToolCall { return state.ToolCall{ID: id, Name: name, Input: "{}"} }
	require.NoError(t, turn.Said(t.Context(), say(call("1", "burst"), call("2", "note"), call("3", "fail"))))
	results, err := turn.Run(t.Context(), turn.Pending()...)
	require.NoError(t, err)
	for _, r := range results {
		require.Error(t, r.Err)
		require.NotContains(t, r.Message.Text(), "Write of")
	}

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 2, "an error that a tool returns is for the model")
	require.Contains(t, lines[0], `level=ERROR msg="a tool panicked" agent=desk tool=burst call=`)
	require.Contains(t, lines[0], `the function panicked: no [SECRET]"`)
	require.Contains(t, lines[0], "report_test.go")
	require.Contains(t, lines[1], `level=WARN msg="access denied to a tool" agent=desk tool=note call=`)
	require.Contains(t, lines[1], `hint="Write of the field \"kept\" would have to allow the agent \"desk\", or Owner to be it"`)
}
