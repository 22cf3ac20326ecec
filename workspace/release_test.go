package workspace_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Options.Run cannot end its run by itself.
func TestFinishWithinARun(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
		_, err := run.Finish(ctx)
		require.ErrorIs(t, err, workspace.ErrInvalid)
		_, err = run.Fail(ctx, errors.New("no"))
		require.ErrorIs(t, err, workspace.ErrInvalid)
		return visits.Set(run.State(), 1)
	}})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.Equal(t, 1, visits.Or(view(t, m, "ann").State(), 0))
}
