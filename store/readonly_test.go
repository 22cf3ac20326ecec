package store_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

func TestReadOnlyRefusesWrites(t *testing.T) {
	ctx := t.Context()
	db := store.NewMemory()
	_, err := db.Put(ctx, "a/b", []byte("1"), store.Always)
	require.NoError(t, err)
	r := store.ReadOnly(db)

	_, err = r.Put(ctx, "a/b", []byte("2"), store.Always)
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.EqualError(t, err, `store: read-only: put "a/b": store: read-only`)
	err = r.Delete(ctx, "a/b", store.Always)
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.EqualError(t, err, `store: read-only: delete "a/b": store: read-only`)

	_, err = r.Batch(ctx, []store.Write{{Key: "a/b"}})
	require.ErrorIs(t, err, store.ErrReadOnly)

	e, err := r.Get(ctx, "a/b")
	require.NoError(t, err)
	require.Equal(t, "1", string(e.Value))
	for e, err := range r.Scan(ctx, "", "") {
		require.NoError(t, err)
		require.Equal(t, "a/b", e.Key)
	}
	require.Equal(t, db.Durability(), r.Durability())
	require.NoError(t, r.Close())
	_, err = db.Get(ctx, "a/b")
	require.ErrorIs(t, err, store.ErrClosed)
}

// What a store can do beside reading is what decides how it is used, so a
// read-only one must neither lose an ability nor claim one.
func TestReadOnlyKeepsWhatReads(t *testing.T) {
	type getter struct {
		store.Store
		getting
	}
	type lister struct {
		store.Store
		listing
	}
	type watcher struct {
		store.Store
		watching
	}
	db := store.NewMemory()
	for name, c := range map[string]struct {
		s                    store.Store
		gets, lists, watches bool
	}{
		"none":    {only{db}, false, false, false},
		"gets":    {getter{only{db}, db}, true, false, false},
		"lists":   {lister{only{db}, db}, false, true, false},
		"watches": {watcher{only{db}, db}, false, false, true},
		"all":     {db, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := store.ReadOnly(c.s)
			g, gets := store.As[store.MultiGetter](r)
			l, lists := store.As[store.Lister](r)
			w, watches := store.As[store.Watcher](r)
			require.Equal(t, c.gets, gets)
			require.Equal(t, c.lists, lists)
			require.Equal(t, c.watches, watches)
			for name, can := range map[string]bool{
				"Transactor": is[store.Transactor](r),
			} {
				require.False(t, can, name)
			}
			if gets {
				entries, err := g.GetMulti(t.Context(), "a")
				require.NoError(t, err)
				require.Equal(t, []store.Entry{{Key: "a"}}, entries)
			} else {
				_, err := r.(store.MultiGetter).GetMulti(t.Context(), "a")
				require.ErrorIs(t, err, errors.ErrUnsupported)
			}
			if lists {
				for _, err := range l.List(t.Context(), "", "") {
					require.NoError(t, err)
				}
			} else {
				for _, err := range r.(store.Lister).List(t.Context(), "a", "") {
					require.ErrorIs(t, err, errors.ErrUnsupported)
					require.ErrorContains(t, err, `store: read-only: list "a"`)
				}
			}
			if watches {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				for range w.Watch(ctx, "") {
					t.Fatal("an event after the end")
				}
			} else {
				for _, err := range r.(store.Watcher).Watch(t.Context(), "a") {
					require.ErrorIs(t, err, errors.ErrUnsupported)
				}
			}
		})
	}
}

type (
	getting interface {
		GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error)
	}
	listing interface {
		List(ctx context.Context, prefix, after string) iter.Seq2[string, error]
	}
	watching interface {
		Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error]
	}
)

func is[T store.Store](s store.Store) bool {
	_, ok := store.As[T](s)
	return ok
}
