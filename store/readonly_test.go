package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

func TestReadOnlyRefusesWrites(t *testing.T) {
	ctx := t.Context()
	db := store.NewMemory()
	_, err := store.Put(ctx, db, "a/b", []byte("1"), store.Always)
	require.NoError(t, err)
	r := store.ReadOnly(db)

	_, err = store.Put(ctx, r, "a/b", []byte("2"), store.Always)
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.EqualError(t, err, `store: read-only: write "a/b": store: read-only`)
	err = store.Delete(ctx, r, "a/b", store.Always)
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.EqualError(t, err, `store: read-only: write "a/b": store: read-only`)

	_, err = r.Batch(ctx, []store.Write{{Key: "a/b"}})
	require.ErrorIs(t, err, store.ErrReadOnly)

	e, err := store.Get(ctx, r, "a/b")
	require.NoError(t, err)
	require.Equal(t, "1", string(e.Value))
	for e, err := range r.List(ctx, "", "", true) {
		require.NoError(t, err)
		require.Equal(t, "a/b", e.Key)
	}
	require.Equal(t, db.Durability(), r.Durability())
	require.NoError(t, r.Close())
	_, err = store.Get(ctx, db, "a/b")
	require.ErrorIs(t, err, store.ErrClosed)
}

// What a store can do beside reading is what decides how it is used, so a
// read-only one must neither lose an ability nor claim one.
func TestReadOnlyKeepsWhatReads(t *testing.T) {
	db := store.NewMemory()
	for _, c := range []struct {
		s       store.Store
		watches bool
	}{{only{db}, false}, {db, true}} {
		r := store.ReadOnly(c.s)
		w, watches := store.As[store.Watcher](r)
		require.Equal(t, c.watches, watches)
		_, transacts := store.As[store.Transactor](r)
		require.False(t, transacts)
		if watches {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for range w.Watch(ctx, "") {
				t.Fatal("an event after the end")
			}
			continue
		}
		for _, err := range r.(store.Watcher).Watch(t.Context(), "a") {
			require.ErrorIs(t, err, errors.ErrUnsupported)
		}
	}
}
