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

// readCounter counts the reads of a store.
type readCounter struct {
	store.Store
	reads atomic.Int64
}

func (s *readCounter) Get(ctx context.Context, key string) (store.Entry, error) {
	s.reads.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *readCounter) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	s.reads.Add(1)
	return s.Store.Scan(ctx, prefix, after)
}

// multiReadCounter is a readCounter for a store that reads several entries at
// once.
type multiReadCounter struct{ *readCounter }

func (s multiReadCounter) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	s.reads.Add(1)
	return s.Store.(store.MultiGetter).GetMulti(ctx, keys...)
}

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
		require.Equal(t, state.Messages.Or(want.State(), nil), state.Messages.Or(v.State(), nil))
		require.Equal(t, want.Ended, v.Ended)
		require.NoError(t, m.Close())
	}
	one := &readCounter{Store: db}
	look(one)
	require.Greater(t, one.reads.Load(), int64(messages), "it has all these records")

	multi := &readCounter{Store: db}
	look(multiReadCounter{multi})
	require.LessOrEqual(t, multi.reads.Load(), int64(8))
}
