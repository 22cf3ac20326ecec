package workspace_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
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
	require.NoError(t, m.Recover(t.Context()))
	n, err := m.Expire(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, m.Stats().Workspaces)
	n, err = m.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, users/2, n)
	require.Zero(t, m.Stats().Workspaces)
}

// List reads many heads at a time, yields in order all the same, and reads one
// for a caller that stops after it.
func TestListReadsHeadsConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{TTL: time.Hour})
		var users []string
		for i := range 640 {
			user := fmt.Sprintf("user%03d", i)
			users = append(users, user)
			require.NoError(t, m.Update(t.Context(), user, func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
		}
		require.NoError(t, m.Close())
		slow := fakestore.New(db, func(_ context.Context, c fakestore.Call, do func() error) error {
			if c.Op == "Get" {
				time.Sleep(time.Second)
			}
			return do()
		})
		m = open(t, slow, workspace.Options{TTL: time.Hour})
		began := time.Now()
		var got []string
		for user, err := range m.List(t.Context()) {
			require.NoError(t, err)
			if len(got) == 0 {
				require.Equal(t, time.Second, time.Since(began))
			}
			got = append(got, user)
		}
		require.Equal(t, users, got)
		require.LessOrEqual(t, time.Since(began), 20*time.Second)
		require.NoError(t, m.Close())
	})
}
