package workspace_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// goroutineLabels returns the profile labels of all goroutines.
func goroutineLabels(t require.TestingT) string {
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	return text.String()
}

func TestRunsAndTheirToolCallsHaveProfileLabels(t *testing.T) {
	for _, labelled := range []bool{true, false} {
		var inRun, inTool string
		look := tool.Must(tool.New("look", "", func(context.Context, struct{}) (string, error) {
			inTool = goroutineLabels(t)
			return "", nil
		}))
		handle := func(ctx context.Context, run *workspace.Run) error {
			inRun = goroutineLabels(t)
			calls := []state.ToolCall{{ID: "1", Name: "look"}}
			return must(tool.Run(run.Context(), run.State(), []*tool.Tool{look}, calls))[0].Err
		}
		m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: handle, ProfileLabels: labelled})
		require.NoError(t, err)
		for _, begin := range []func() error{
			func() error {
				_, err := m.Handle(t.Context(), "ann@example.com", workspace.Message{Content: state.UserText("hi")})
				return err
			},
			func() error { return m.Do(t.Context(), "ann@example.com", handle) },
		} {
			inRun, inTool = "", ""
			require.NoError(t, begin())
			require.Equal(t, labelled, strings.Contains(inRun, `{"agentstate":"run"}`))
			require.Equal(t, labelled, strings.Contains(inTool, `{"agentstate":"run", "tool":"look"}`))
			require.NotContains(t, inTool, "ann@")
			require.Eventually(t, func() bool { return !strings.Contains(goroutineLabels(t), "agentstate\"") },
				time.Minute, time.Millisecond, "labels end with the run") // once its goroutines have ended
		}
		require.NoError(t, m.Close())
	}
}

func TestRunsAreTasksOfExecutionTraces(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("the tests are being traced")
	}
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Run: func(context.Context, *workspace.Run) error { return nil },
	})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, trace.Start(&text))
	_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("hi")})
	trace.Stop()
	require.NoError(t, err)
	require.Contains(t, text.String(), "agentstate.run")
	require.Contains(t, text.String(), "agentstate.commit")
	require.NoError(t, m.Close())
}
