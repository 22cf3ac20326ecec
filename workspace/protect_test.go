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

// brokenAnchor forgets everything.
type brokenAnchor struct{}

func (brokenAnchor) Load(context.Context, string) (workspace.Mark, error) {
	return workspace.Mark{}, nil
}

func (brokenAnchor) Advance(context.Context, string, workspace.Mark) error {
	return errors.New("disk is full")
}

func TestAnchorThatFails(t *testing.T) {
	var log bytes.Buffer
	m := open(t, store.NewMemory(), workspace.Options{
		Anchor: brokenAnchor{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Run: func(context.Context, *workspace.Run) error { return nil },
	})
	out, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
	require.Contains(t, log.String(), "disk is full")
	require.Contains(t, log.String(), "ann")
}
