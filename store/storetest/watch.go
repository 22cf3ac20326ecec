package storetest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// watchTests are skipped if the store is not a Watcher.
var watchTests = []storeTest{
	{"PutAndDelete", func(f *fixture) {
		next := f.watch("")
		for _, f.s = range f.openHandles(2) {
			revision := f.put("key", "value", store.Always)
			f.requireEvent("key", "value", revision, next())
			revision = f.put("key", "", store.IfRevision(revision))
			f.requireEvent("key", "", revision, next())
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
			require.Equal(f, store.Event{Entry: store.Entry{Key: "key"}, Deleted: true}, next())
		}
	}},
	{"StartsWithCall", func(f *fixture) {
		f.put("key 1", "before", store.Always)
		next := f.watch("key")
		revision := f.put("key 2", "after", store.Always)
		f.requireEvent("key 2", "after", revision, next())
	}},
	{"PrefixIsLiteral", func(f *fixture) {
		next := f.watch("a_%.")
		for _, key := range []string{"abc.", "A_%.", "a_%", "a_x.", "b", "xa_%."} {
			f.put(key, "value", store.Always)
		}
		f.put("a_%.key", "value", store.Always)
		require.Equal(f, "a_%.key", next().Key)
	}},
	{"LastChangeIsYielded", func(f *fixture) {
		next := f.watch("")
		for round := range 20 {
			var last string
			for i := range 10 {
				last = fmt.Sprintf("%d.%d", round, i)
				f.put("key", last, store.Always)
			}
			for string(next().Value) != last {
			}
		}
		f.put("key", "then", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
		for !next().Deleted {
		}
	}},
	{"ConflictIsNoChange", func(f *fixture) {
		f.put("key", "value", store.Always)
		next := f.watch("")
		require.ErrorIs(f, put(f.ctx, f.s, "key", store.IfAbsent), store.ErrConflict)
		f.put("other", "value", store.Always)
		require.Equal(f, "other", next().Key)
	}},
	{"ValuesAreCopies", func(f *fixture) {
		one, two := f.watch(""), f.watch("")
		revision := f.put("key", "value", store.Always)
		overwriteBytes(one().Value)
		require.Equal(f, "value", string(two().Value))
		f.requireEntry("key", "value", revision)
	}},
	{"EndsWithContext", func(f *fixture) {
		for _, cancelled := range []time.Duration{0, 20 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(f.ctx, cancelled)
			defer cancel()
			for range f.watcher().Watch(ctx, "") {
			}
		}
	}},
}

// watcher returns the store, and skips the test if it is not a Watcher.
func (f *fixture) watcher() store.Watcher {
	w, ok := store.As[store.Watcher](f.s)
	if !ok {
		f.Skip("the store is not a Watcher")
	}
	return w
}

// watch starts a watch and returns a function that waits for the next event.
func (f *fixture) watch(prefix string) func() store.Event {
	next, stop := iter.Pull2(f.watcher().Watch(f.ctx, prefix))
	f.Cleanup(stop)
	return func() store.Event {
		f.Helper()
		event, err, ok := next()
		require.True(f, ok, "the watch ended")
		require.NoError(f, err)
		return event
	}
}

// requireEvent requires that an event is a write.
func (f *fixture) requireEvent(key, value string, revision store.Revision, event store.Event) {
	f.Helper()
	require.Equal(f, printableEntry{key, value, revision}, printable(event.Entry))
	require.False(f, event.Deleted, "it is no delete")
}
