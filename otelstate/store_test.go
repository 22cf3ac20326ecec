package otelstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

// A traced store passes the tests of every store.
func TestTracedStoreIsAStore(t *testing.T) {
	e := newTelemetry(t, otelstate.Options{})
	storetest.Run(t, func(*testing.T) func() store.Store {
		db := store.NewMemory()
		return func() store.Store { return otelstate.Store(db.Open(), e.Tracer) }
	})
	require.Empty(t, e.unended())
}

func TestStoreSpans(t *testing.T) {
	e := newTelemetry(t, otelstate.Options{})
	memory := store.NewMemory()
	db := otelstate.Store(memory, e.Tracer)
	ctx := t.Context()
	_, err := store.Get(ctx, db, "user/secret")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = store.Put(ctx, db, "user/secret", []byte("value"), store.IfAbsent)
	require.NoError(t, err)
	_, err = store.Put(ctx, db, "user/secret", []byte("value"), store.IfAbsent)
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = db.Batch(ctx, []store.Write{{Key: "user/a"}, {Key: "user/b"}})
	require.NoError(t, err)
	_, err = db.Get(ctx, "user/a", "user/b", "user/c")
	require.NoError(t, err)
	for range db.List(ctx, "", "", true) {
		break
	}
	for range db.List(ctx, "user/", "", false) {
	}
	require.NoError(t, store.Delete(ctx, db, "user/secret", store.Always))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = store.Get(ended, db, "user/a")
	require.Error(t, err)
	require.NoError(t, db.Close())
	require.Empty(t, e.unended())
	requireFile(t, "store_spans.txt", tree(e)+"\n"+strings.Join(e.series(t), "\n")+"\n")
	require.NotContains(t, e.everything(t), "user/")
}

// plain has the methods of Store and of nothing else.
type plain struct{ store.Store }

// A traced store has the optional interfaces that the store has, and no others.
func TestTracedStoreHasWhatTheStoreHas(t *testing.T) {
	e := newTelemetry(t, otelstate.Options{})
	memory := store.NewMemory()
	full, bare := otelstate.Store(memory, e.Tracer), otelstate.Store(plain{memory}, e.Tracer)
	requireAs[store.Watcher](t, memory, full, bare)
	requireAs[store.Transactor](t, memory, full, bare)

	ctx := t.Context()
	for _, err := range bare.(store.Watcher).Watch(ctx, "") {
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
	_, err := bare.(store.Transactor).Transact(ctx, nil, nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Empty(t, e.unended())
}

func requireAs[T store.Store](t *testing.T, in, full, bare store.Store) {
	t.Helper()
	_, want := store.As[T](in)
	_, got := store.As[T](full)
	require.Equal(t, want, got)
	_, got = store.As[T](bare)
	require.False(t, got)
}
