package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Without a Logger, the log of the process gets what nobody is told otherwise: that a
// message which was submitted is given up, and why.
func TestGivenUpWithoutALogger(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	m := open(t, store.NewMemory(), workspace.Options{Run: func(context.Context, *workspace.Run) error {
		return errors.New("the model does not know the key")
	}})
	_, err := m.Submit(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.NoError(t, m.Wait(t.Context()))
	require.NoError(t, m.Close())
	require.Contains(t, log.String(), "dead letter")
	require.Contains(t, log.String(), "the model does not know the key")
	require.NotContains(t, log.String(), "level=DEBUG")
}
