package workspace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A Manager that has never read a workspace reads its records together, if the
// store can do that.
func TestColdWorkspaceIsReadAtOnce(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: visit})
	const messages = 40
	for n := range messages {
		_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint(n)))
		require.NoError(t, err)
	}
	want, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.NoError(t, m.Close())

	look := func(db store.Store) {
		m := open(t, db, workspace.Options{Run: visit})
		v, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, want.Version, v.Version)
		require.Equal(t, state.Messages.GetOr(want.State(), nil), state.Messages.GetOr(v.State(), nil))
		require.Equal(t, want.Ended, v.Ended)
		require.NoError(t, m.Close())
	}
	counted := fakestore.Count(db)
	look(counted)
	require.Greater(t, counted.Read(), messages, "it has all these records")
	require.LessOrEqual(t, counted.Reads(), 8)
}
