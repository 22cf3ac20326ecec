package workspace_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// marking is a store without batches that keeps the latest markers of deleted
// keys for some time. A listing yields them, and a scan reads
// them. It counts what is read.
type marking struct {
	store.Store
	mu      sync.Mutex
	deleted []string // the oldest first
	reads   int
	again   int // deletions of a key that is in deleted
}

const markersKept = 900

func (m *marking) Get(ctx context.Context, key string) (store.Entry, error) {
	m.mu.Lock()
	m.reads++
	m.mu.Unlock()
	return m.Store.Get(ctx, key)
}

func (m *marking) Delete(ctx context.Context, key string, cond store.Condition) error {
	err := m.Store.Delete(ctx, key, cond)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if slices.Contains(m.deleted, key) {
			m.again++
			return nil
		}
		m.deleted = append(m.deleted, key)
		m.deleted = m.deleted[max(0, len(m.deleted)-markersKept):]
	}
	return err
}

func (m *marking) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for key, err := range m.List(ctx, prefix, after) {
			var e store.Entry
			if err == nil {
				e, err = m.Get(ctx, key)
			}
			if err == nil && !yield(e, nil) {
				return
			}
		}
	}
}

func (m *marking) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	m.mu.Lock()
	keys := slices.Clone(m.deleted)
	m.mu.Unlock()
	for key := range m.Store.(store.Lister).List(ctx, prefix, after) {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		return key <= after || !strings.HasPrefix(key, prefix) || strings.Contains(key[len(prefix):], "/")
	})
	return func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// What a message reads does not grow with the blobs that were deleted, on a
// store that knows deleted keys only when it reads them.
func TestReadsDoNotGrowWithDeletedBlobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // garbage is looked for from time to time
		db := &marking{Store: store.NewMemory()}
		m := open(t, db, workspace.Options{Run: visit})
		handle := func(n int) int {
			before := db.reads
			for range n {
				_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: text("").Content})
				require.NoError(t, err)
			}
			return db.reads - before
		}
		const n = 200 // several compactions
		handle(n)
		first := handle(n)
		handle(2 * n)
		last := handle(n)
		t.Logf("%d reads, and %d in the end, of %d messages; %d deleted keys", first, last, n, len(db.deleted))
		require.LessOrEqual(t, last, first+first/4)
		require.NoError(t, m.Close())
	})
}

// Garbage is collected on a store that lists deleted keys, and no deleted key is
// deleted again.
func TestGarbageAmongMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store.NewMemory()
		db := &marking{Store: inner}
		m := open(t, db, workspace.Options{Run: visit})
		handle := func(m *workspace.Manager, n int) {
			for range n {
				_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: text("").Content})
				require.NoError(t, err)
			}
		}
		handle(m, 200)
		synctest.Wait()                                        // until m deletes nothing any more
		const garbage = "agent:workspace:ann/b/1-aaabbbbbbbbb" // of a writer that has crashed
		_, err := inner.Put(t.Context(), garbage, []byte("?"), store.Always)
		require.NoError(t, err)
		other := open(t, db, workspace.Options{Run: visit}) // has deleted nothing itself
		require.NoError(t, other.Compact(t.Context(), "ann"))
		_, err = inner.Get(t.Context(), garbage)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Zero(t, db.again, "markers that were written again")
		r, err := other.Verify(t.Context(), "ann")
		require.NoError(t, err)
		require.Zero(t, r.Garbage)
		require.NoError(t, errors.Join(m.Close(), other.Close()))
	})
}

// A blob that is written after its deletion, by a write that was late, is
// garbage and is collected later.
func TestGarbageOfLateWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store.NewMemory()
		db := &marking{Store: inner}
		m := open(t, db, workspace.Options{Run: visit, TTL: time.Hour})
		handle := func() {
			for range 100 {
				_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: text("").Content})
				require.NoError(t, err)
			}
		}
		handle()
		late := db.deleted[len(db.deleted)-1]
		_, err := inner.Put(t.Context(), late, []byte("?"), store.Always)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		handle() // until no head may refer to it for the first time
		require.NoError(t, m.Compact(t.Context(), "ann"))
		_, err = inner.Get(t.Context(), late)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.NoError(t, m.Close())
	})
}
