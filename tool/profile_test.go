package tool_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"runtime/trace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// goroutineLabels returns the profile labels of all goroutines.
func goroutineLabels(t require.TestingT) string {
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	return text.String()
}

func TestCallsOfLabelledRunsHaveTheNameOfTheTool(t *testing.T) {
	var labels string
	look := tracedTool("look", func(context.Context, tracedIn) (string, error) {
		labels = goroutineLabels(t)
		return "", nil
	})
	call := func(ctx context.Context) {
		_, err := look.Call(ctx, state.New(nil), `{"word":"x"}`)
		require.NoError(t, err)
	}
	run := func(ctx context.Context) {
		results := must(tool.Run(ctx, state.New(nil), []*tool.Tool{look}, []state.ToolCall{{Name: "look", Input: `{"word":"x"}`}}))
		require.NoError(t, results[0].Err)
	}
	for _, make := range []func(context.Context){call, run} {
		pprof.Do(t.Context(), pprof.Labels("agentstate", "run"), func(ctx context.Context) {
			make(ctx)
			require.Contains(t, labels, `{"agentstate":"run", "tool":"look"}`)
			require.NotContains(t, goroutineLabels(t), `"tool"`, "the label ends with the call")
		})
		pprof.Do(t.Context(), pprof.Labels("other", "run"), make)
		require.NotContains(t, labels, `"tool"`, "no run has asked for it")
	}
}

func TestCallsAreRegionsOfExecutionTraces(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("the tests are being traced")
	}
	look := tracedTool("look_closely", func(context.Context, tracedIn) (string, error) { return "", nil })
	var text bytes.Buffer
	require.NoError(t, trace.Start(&text))
	_, err := look.Call(t.Context(), state.New(nil), `{"word":"x"}`)
	trace.Stop()
	require.NoError(t, err)
	require.Contains(t, text.String(), "agentstate.tool look_closely")
}
