package workspace_test

import (
	"bytes"
	"context"
	"runtime/trace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

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
