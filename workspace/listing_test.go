package workspace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A Manager does not remember the workspaces that List, Recover and Expire only
// look at, however many there are.
func TestListingRemembersNoWorkspace(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: nothing})
	const users = 200 // more than a Manager caches
	for i := range users {
		user := fmt.Sprint("user", i)
		_, err := m.Handle(t.Context(), user, text("1"))
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, m.Delete(t.Context(), user))
		}
	}
	m = open(t, db, workspace.Options{Run: nothing})
	for _, err := range m.List(t.Context()) {
		require.NoError(t, err)
	}
	require.NoError(t, settle(t.Context(), m))
	n, err := m.Expire(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, m.Stats().Workspaces)
	n, err = m.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, users/2, n)
	require.Zero(t, m.Stats().Workspaces)
}
