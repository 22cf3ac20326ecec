package workspace_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A process that is killed between the end of a run and what is done after it,
// or in the middle of that, leaves a workspace in which every message that was
// answered was handled once.
func TestKillDuringTidy(t *testing.T) {
	for name, kind := range map[string]struct {
		open        func() store.Store
		first, step int // of the numbers of writes before a kill
		history     int // with which the first compaction drops something
	}{
		"batches":             {func() store.Store { return store.NewMemory() }, 24, 5, -1},
		"batches and history": {func() store.Store { return store.NewMemory() }, 24, 10, 20 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			const kills = 12
			compacted := 0
			for n := range kills {
				synctest.Test(t, func(t *testing.T) { compacted += killAfter(t, kind.open(), kind.history, kind.first+n*kind.step) })
			}
			t.Logf("%d of %d processes have compacted the workspace before they were killed", compacted, kills)
			require.NotZero(t, compacted)
			require.Less(t, compacted, kills)
		})
	}
}

// killAfter kills a process after a number of writes, and lets another one go
// on. It returns 1 if the first has compacted the workspace, and 0 otherwise.
func killAfter(t *testing.T, db store.Store, history, writes int) (compacted int) {
	var made atomic.Int64
	mortal := withFaults(db, func([]store.Write) (bool, error) {
		if made.Add(1) > int64(writes) {
			return false, store.ErrClosed
		}
		return false, nil
	})
	long := workspace.Message{Content: state.UserText(strings.Repeat("x", 4000))}
	m, answered := open(t, mortal, workspace.Options{Run: visit, TTL: time.Second, RecordBytes: history}), 0
	for {
		if _, err := m.Handle(t.Context(), "ann", long); err != nil {
			break
		}
		answered++
	}
	_ = m.Close()

	other := open(t, db, workspace.Options{Run: visit, TTL: time.Second, RecordBytes: history})
	v, err := other.View(t.Context(), "ann")
	require.NoError(t, err)
	at, err := other.ViewAt(t.Context(), "ann", v.Oldest)
	require.NoError(t, err)
	require.Equal(t, v.Oldest, at.Version)
	if v.Oldest > 0 {
		compacted = 1
	}
	const more = 40 // so that the names of blobs expire
	for range more {
		_, err := other.Handle(t.Context(), "ann", long)
		require.NoError(t, err)
	}
	synctest.Wait()
	_, err = other.Verify(t.Context(), "ann")
	require.NoError(t, err)
	require.NoError(t, other.Compact(t.Context(), "ann"))
	_, err = other.Verify(t.Context(), "ann")
	require.NoError(t, err)
	v, err = other.View(t.Context(), "ann")
	require.NoError(t, err)
	visits, err := workspacetest.Visits.Get(v.State())
	require.NoError(t, err)
	require.Contains(t, []int{answered + more, answered + more + 1}, visits)
	require.NoError(t, other.Close())
	return compacted
}
