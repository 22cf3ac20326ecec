package workspace_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run can delete the workspace of its user, with everything that is stored,
// although the deletion ends the run and its context.
func TestDeleteWithinARun(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var m *workspace.Manager
		m = open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			if err := run.Store().Set(ctx, "card", "4242"); err != nil {
				return err
			}
			require.NoError(t, m.Delete(ctx, run.UserID()))
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.ErrorIs(t, err, workspace.ErrInterrupted)
		require.Empty(t, users(t, m))
		require.NoError(t, m.Close())
		keys := 0
		for e, err := range db.List(t.Context(), "agent:data:", "", true) {
			require.NoError(t, err)
			t.Log(e.Key)
			keys++
		}
		require.Zero(t, keys)
	})
}
