package workspacetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Users returns the users of a Manager.
func Users(t testing.TB, m *workspace.Manager) []string {
	t.Helper()
	var list []string
	for user, err := range m.List(t.Context()) {
		require.NoError(t, err)
		list = append(list, user)
	}
	return list
}

// A dead letter that is retried is handled at once.
func (s *suite) Retry(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var fine atomic.Bool
		calls := &whichRun{}
		m := Open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			calls.called(run)
			if !fine.Load() {
				return errors.New("model is down")
			}
			return Visits.Set(run.State(), 1)
		}})
		out, err := m.Handle(t.Context(), "ann", Text("1"))
		require.Error(t, err)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.Len(t, View(t, m, "ann").DeadLetters, 1)

		fine.Store(true)
		began := time.Now()
		require.NoError(t, m.Retry(t.Context(), "ann", "1"))
		require.NoError(t, m.Wait(t.Context()))
		requireSoon(t, ttl, began)
		v := View(t, m, "ann")
		require.Empty(t, v.DeadLetters)
		require.Nil(t, v.Run)
		require.Equal(t, 1, Visits.Or(v.State(), 0))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 0"}, calls.calls)
		require.Equal(t, []string{"text of 1"}, Conversation(t, v))

		require.ErrorIs(t, m.Retry(t.Context(), "ann", "1"), workspace.ErrNotFound, "it is done")
		require.ErrorIs(t, m.Retry(t.Context(), "bob", "1"), workspace.ErrNotFound)
		require.NotContains(t, Users(t, m), "bob")
	})
}

// Every Manager that has seen lost writes refuses the workspace until an operator
// accepts it.
func (s *suite) Accept(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		set := func(m *workspace.Manager) error {
			return m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return Visits.Set(w.State(), 1) })
		}
		m, other, fresh := Open(t, db, workspace.Options{}), Open(t, db, workspace.Options{}), Open(t, db, workspace.Options{})
		require.NoError(t, set(m))
		older := Entries(t, db)
		require.NoError(t, set(m))
		require.NoError(t, set(other))
		Restore(t, db, older)
		for _, m := range []*workspace.Manager{m, other} {
			require.ErrorIs(t, set(m), workspace.ErrRolledBack)
		}
		require.NoError(t, fresh.Accept(t.Context(), "ann"), "an operator's program, which has seen nothing")
		for _, m := range []*workspace.Manager{m, other, fresh} {
			require.NoError(t, set(m))
		}
		require.Equal(t, 4, Visits.Or(View(t, m, "ann").State(), 0))
		require.ErrorIs(t, m.Accept(t.Context(), "nobody"), workspace.ErrNotFound)
		require.Equal(t, []string{"ann"}, Users(t, m))

		require.NoError(t, m.Delete(t.Context(), "ann"))
		require.NoError(t, m.Accept(t.Context(), "ann"))
		require.Empty(t, Users(t, m), "a deleted workspace stays deleted")
	})
}
