package workspace_test

import (
	"context"
	"slices"
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

// purging is a store without batches whose purges take time.
type purging struct {
	*marking
	purge   time.Duration
	linger  time.Duration // for how long a purge goes on whose context has ended
	purged  []string
	running int
	most    int // purges that were under way at once
}

func (p *purging) Purge(ctx context.Context, keys ...string) error {
	p.mu.Lock()
	p.running++
	p.most = max(p.most, p.running)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.running--
		p.mu.Unlock()
	}()
	if err := nap(ctx, p.purge); err != nil {
		time.Sleep(p.linger)
		return err
	}
	for _, key := range keys {
		if err := p.Store.Delete(ctx, key, store.Always); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.purged = append(p.purged, keys...)
	return nil
}

// No message waits for the blobs of another to be deleted, and few purges are
// under way at once. No blob leaves a marker.
func TestPurgesAreInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &purging{marking: &marking{Store: store.NewMemory()}, purge: time.Second}
		m := open(t, db, workspace.Options{Run: visit, TTL: time.Hour})
		for _, hour := range []string{"first", "second"} { // the goroutines of the first have ended
			began := time.Now()
			for n := range 20 {
				for _, user := range []string{"a", "b", "c", "d", "e", "f"} {
					message := text("")
					message.ID = hour + user + strings.Repeat("x", n)
					message.Content = state.UserText(strings.Repeat("long ", 200)) // it has a blob of its own
					_, err := m.Handle(t.Context(), user, message)
					require.NoError(t, err)
				}
			}
			require.Zero(t, time.Since(began))
			time.Sleep(time.Hour)
			synctest.Wait()
			require.LessOrEqual(t, db.most, 4)
			require.False(t, slices.ContainsFunc(db.deleted, func(key string) bool { return strings.Contains(key, "/b/") }), "markers")
			r, err := m.Verify(t.Context(), "a")
			require.NoError(t, err)
			require.Zero(t, r.Garbage)
		}
		require.GreaterOrEqual(t, len(db.purged), 240)
		require.NoError(t, m.Close())
	})
}

// Close ends what is done in the background, and waits for its end. Another Manager finds a workspace
// that is whole, and collects what is left.
func TestCloseDuringTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &purging{marking: &marking{Store: store.NewMemory()}, purge: time.Hour, linger: time.Second}
		m := open(t, db, workspace.Options{Run: visit, TTL: time.Minute})
		for range 200 {
			_, err := m.Handle(t.Context(), "ann", text(""))
			require.NoError(t, err)
		}
		synctest.Wait()
		require.NotZero(t, db.running)
		began := time.Now()
		require.NoError(t, m.Close())
		require.Equal(t, db.linger, time.Since(began))
		require.Zero(t, db.running)
		require.Empty(t, db.purged)

		db.purge = 0
		other := open(t, db, workspace.Options{Run: visit, TTL: time.Minute})
		r, err := other.Verify(t.Context(), "ann")
		require.NoError(t, err)
		require.NotZero(t, r.Garbage)
		for range 70 { // the names of the blobs expire
			_, err = other.Handle(t.Context(), "ann", text(""))
			require.NoError(t, err)
		}
		require.NoError(t, other.Compact(t.Context(), "ann"))
		synctest.Wait()
		r, err = other.Verify(t.Context(), "ann")
		require.NoError(t, err)
		require.Zero(t, r.Garbage)
		require.NoError(t, other.Close())
	})
}

// A process that is killed between the end of a run and what is done after it,
// or in the middle of that, leaves a workspace in which every message that was
// answered was handled once, and garbage that another process collects.
func TestKillDuringTidy(t *testing.T) {
	for name, kind := range map[string]struct {
		open        func() store.Store
		first, step int // of the numbers of writes before a kill
		history     int // with which the first compaction drops something
	}{
		"batches":                 {func() store.Store { return store.NewMemory() }, 24, 5, -1},
		"batches and history":     {func() store.Store { return store.NewMemory() }, 24, 5, 20 << 10},
		"no batches":              {func() store.Store { return &marking{Store: store.NewMemory()} }, 80, 15, -1},
		"no batches, but history": {func() store.Store { return &marking{Store: store.NewMemory()} }, 80, 15, 20 << 10},
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
	m, answered := open(t, mortal, workspace.Options{Run: visit, TTL: time.Second, History: history}), 0
	for {
		if _, err := m.Handle(t.Context(), "ann", long); err != nil {
			break
		}
		answered++
	}
	_ = m.Close()

	other := open(t, db, workspace.Options{Run: visit, TTL: time.Second, History: history})
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
	r, err := other.Verify(t.Context(), "ann")
	require.NoError(t, err)
	require.Zero(t, r.Garbage)
	v, err = other.View(t.Context(), "ann")
	require.NoError(t, err)
	visits, err := workspacetest.Visits.Get(v.State())
	require.NoError(t, err)
	require.Contains(t, []int{answered + more, answered + more + 1}, visits)
	require.NoError(t, other.Close())
	return compacted
}
