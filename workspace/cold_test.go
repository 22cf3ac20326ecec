package workspace_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// readCounter counts the reads of a store. Each page of a scan counts.
type readCounter struct {
	store.Store
	gets, pages atomic.Int64
}

func (s *readCounter) Get(ctx context.Context, key string) (store.Entry, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *readCounter) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		const page = 256
		n := 0
		for e, err := range s.Store.Scan(ctx, prefix, after) {
			if n%page == 0 {
				s.pages.Add(1)
			}
			n++
			if !yield(e, err) {
				return
			}
		}
	}
}

// batchReadCounter is a readCounter for a store with batches.
type batchReadCounter struct{ *readCounter }

func (s batchReadCounter) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return s.Store.(store.Batcher).Batch(ctx, writes)
}

// A Manager that has never read a workspace reads its records in pages, if the
// store can do that.
func TestColdWorkspaceIsReadInPages(t *testing.T) {
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
		require.Equal(t, state.Messages.Or(want.State(), nil), state.Messages.Or(v.State(), nil))
		require.Equal(t, want.Ended, v.Ended)
		require.NoError(t, m.Close())
	}
	one := &readCounter{Store: db}
	look(one)
	require.Greater(t, one.gets.Load(), int64(messages), "it has all these records")
	require.Zero(t, one.pages.Load())

	pages := &readCounter{Store: db}
	look(batchReadCounter{pages})
	require.LessOrEqual(t, pages.gets.Load(), int64(6))
	require.LessOrEqual(t, pages.pages.Load(), int64(2))
}

// Messages that wait are not read with the records, if they are more.
func TestColdWorkspaceIsReadWithoutALongQueue(t *testing.T) {
	db := &readCounter{Store: store.NewMemory()}
	m := open(t, batchReadCounter{db}, workspace.Options{})
	run, _, err := m.Begin(t.Context(), "ann", text("begin"))
	require.NoError(t, err)
	for n := range 20 {
		require.NoError(t, run.State().KV().Set("visits", n))
		require.NoError(t, run.Commit(t.Context()))
	}
	for n := range 8 {
		long := text(fmt.Sprint("long ", n))
		long.Content = state.UserText(fmt.Sprintf("%0100000d", n))
		_, _, err := m.Begin(t.Context(), "ann", long)
		require.NoError(t, err)
	}
	db.pages.Store(0)
	_, err = open(t, batchReadCounter{db}, workspace.Options{}).View(t.Context(), "ann")
	require.NoError(t, err)
	require.Zero(t, db.pages.Load())
	_, err = run.Finish(t.Context())
	require.NoError(t, err)
}
