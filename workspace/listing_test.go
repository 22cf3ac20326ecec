package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A Manager does not remember the workspaces that List and Expire only
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

// A Manager finds a run whose holder has died although nobody asks, up to 2.5 ×
// TTL after the last heartbeat, and looks at nothing of idle workspaces.
func TestManagersRecoverByThemselves(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const ttl = 4 * time.Second
			db := store.NewMemory()
			idle := open(t, db, workspace.Options{TTL: ttl, Run: nothing})
			for i := range 100 {
				_, err := idle.Handle(t.Context(), fmt.Sprint("idle", i), text("1"))
				require.NoError(t, err)
			}
			require.NoError(t, idle.Close())

			counted := fakestore.Count(plain{Store: db})
			handled := make(chan time.Time, 1)
			m := open(t, counted, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error {
				handled <- time.Now()
				return nil
			}})
			time.Sleep(100*ttl + rand.N(ttl))
			lists := counted.Calls("List")
			require.Zero(t, counted.Read())
			require.Greater(t, lists, 2*98, "what is running, and what has expired")
			require.Less(t, lists, 2*(100*4/3+2))

			process, kill := asProcess(db)
			dying, runs := hold(t, process, workspace.Options{TTL: ttl})
			runs.Begin(t, "ann", text("1"))
			time.Sleep(rand.N(3 * ttl)) // its heartbeats are seen, or not
			before := time.Now()
			kill()
			require.NoError(t, dying.Close())
			took := (<-handled).Sub(before)
			require.Greater(t, took, ttl*9/10, "a heartbeat is a third of a TTL old at most, and was seen a quarter late")
			require.LessOrEqual(t, took, ttl*5/2)
			require.NoError(t, m.Close())
		})
	}
}

// Active yields the workspaces in which something is to be done, each once.
func TestBusy(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
		if run.Message().ID == "dead" {
			return errors.New("broken")
		}
		return nil
	}})
	for user, id := range map[string]string{"idle": "1", "dead": "dead", "both": "dead", "ended": "dead"} {
		_, _ = m.Handle(t.Context(), user, text(id))
	}
	require.NoError(t, m.Discard(t.Context(), "ended", "dead"))
	require.NoError(t, m.Close())
	other, runs := hold(t, db, workspace.Options{})
	for _, user := range []string{"both", "running"} {
		runs.Begin(t, user, text("2"))
	}
	var got []string
	for s, err := range other.Active(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, s.Err)
		got = append(got, fmt.Sprint(s.UserID, " ", s.Run != nil, " ", s.DeadLetters))
	}
	require.Equal(t, []string{"both true 1", "running true 0", "dead false 1"}, got)
	write(t, db, map[string]string{annsHead: "{", "agent:busy:run:ann": "", "agent:busy:run:gone": "", "agent:busy:run:%": ""})
	got = nil
	for s, err := range other.Active(t.Context()) {
		require.NoError(t, err)
		got = append(got, s.UserID)
		require.ErrorIs(t, s.Err, workspace.ErrCorrupt)
	}
	require.Equal(t, []string{"ann"}, got)
}
