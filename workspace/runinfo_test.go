package workspace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// runInfos returns what the holder, another Manager and a summary say of the run
// of ann.
func runInfos(t *testing.T, holder, other *workspace.Manager) (held, seen, summary workspace.RunInfo) {
	t.Helper()
	list := holder.Held()
	require.Len(t, list, 1)
	own, v := view(t, holder, "ann"), view(t, other, "ann")
	require.Equal(t, own.Run, v.Run)
	s, err := other.Summary(t.Context(), "ann")
	require.NoError(t, err)
	return list[0], *v.Run, *s.Run
}

// A run is described the same wherever it is seen. Only a summary, which reads
// the head alone, does not know the heartbeats of its holder.
func TestRunInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, ttl := store.NewMemory(), 9*time.Second
		m, runs := hold(t, db, workspace.Options{TTL: ttl})
		other := open(t, db, workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		held, seen, summary := runInfos(t, m, other)
		require.Equal(t, held, seen)
		require.Equal(t, ttl, held.TTL)
		require.Zero(t, held.Step)
		require.NotEmpty(t, held.LeaseID)
		require.Equal(t, held.LeaseID, summary.LeaseID)
		require.Equal(t, ttl, summary.TTL)
		require.Zero(t, summary.Heartbeat)
		first := held.Heartbeat

		time.Sleep(ttl + time.Second)
		synctest.Wait()
		held, seen, summary = runInfos(t, m, other)
		require.Equal(t, held, seen)
		require.Equal(t, first+3, held.Heartbeat, "three heartbeats a TTL")
		require.Zero(t, summary.Heartbeat)

		require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.UserText("more")}))
		require.NoError(t, run.Commit(t.Context()))
		held, seen, summary = runInfos(t, m, other)
		require.Equal(t, held, seen)
		require.Equal(t, first+4, held.Heartbeat)
		require.Equal(t, 1, held.Step)
		require.Equal(t, run.Step(), held.Step)
		require.Equal(t, 1, summary.Step)
		require.EqualValues(t, 1, summary.Heartbeat)

		run.Finish(t)
		require.Nil(t, view(t, other, "ann").Run)
	})
}

// A run that was given back waits for a holder. The next one has another lease.
func TestRunInfoOfAVacantRun(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{})
	runs.Begin(t, "ann", text("1"))
	before := m.Held()[0]
	closeEarly(t, m)

	vacant := *view(t, open(t, db, workspace.Options{}), "ann").Run
	require.Empty(t, vacant.LeaseID)
	require.Zero(t, vacant.Heartbeat)

	began, end := make(chan bool), make(chan bool)
	m = open(t, db, workspace.Options{Run: func(context.Context, *workspace.Run) error {
		began <- true
		<-end
		return nil
	}})
	<-began
	defer close(end)
	held, seen, _ := runInfos(t, m, open(t, db, workspace.Options{}))
	require.Equal(t, held, seen)
	require.Equal(t, before.ID, held.ID)
	require.NotEqual(t, before.LeaseID, held.LeaseID)
}

// A View can be had whatever has become of the record of the holder.
func TestRunInfoWithoutAHolderRecord(t *testing.T) {
	for name, damage := range map[string]func(db store.Store, key string) error{
		"gone": func(db store.Store, key string) error { return store.Delete(t.Context(), db, key, store.Always) },
		"damaged": func(db store.Store, key string) error {
			_, err := store.Put(t.Context(), db, key, []byte("{"), store.Always)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			_, runs := hold(t, db, workspace.Options{})
			runs.Begin(t, "ann", text("1"))
			for key := range holderRecords(t, db) {
				require.NoError(t, damage(db, key))
			}
			info := view(t, open(t, db, workspace.Options{}), "ann").Run
			require.Zero(t, info.Heartbeat)
			require.NotEmpty(t, info.LeaseID)
		})
	}
}
