package storetest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var watches = []test{
	{"PutAndDelete", watching(func(f *fixture, w store.Watcher) {
		next := f.watch(w, "")
		revision := f.put("key", "value", store.Always)
		event := next()
		require.Equal(f, readable{"key", "value", revision}, text(event.Entry))
		require.False(f, event.Deleted)
		revision = f.put("key", "", store.IfRevision(revision))
		event = next()
		require.Equal(f, readable{"key", "", revision}, text(event.Entry))
		require.False(f, event.Deleted, "an empty value is no delete")
		require.NoError(f, f.s.Delete(f.ctx, "key", store.Always))
		event = next()
		require.Equal(f, readable{Key: "key"}, text(event.Entry))
		require.True(f, event.Deleted)
	})},
	{"FromTheCall", watching(func(f *fixture, w store.Watcher) {
		f.put("key 1", "before", store.Always)
		events := w.Watch(f.ctx, "key")
		revision := f.put("key 2", "after", store.Always)
		event := f.following(events)()
		require.Equal(f, readable{"key 2", "after", revision}, text(event.Entry), "the first change after the call of Watch")
	})},
	{"PrefixIsLiteral", watching(func(f *fixture, w store.Watcher) {
		next := f.watch(w, "a_%.")
		for _, key := range []string{"abc.", "A_%.", "a_%", "a_x.", "b", "xa_%."} {
			f.put(key, "value", store.Always)
		}
		f.put("a_%.key", "value", store.Always)
		require.Equal(f, "a_%.key", next().Key)
	})},
	{"OfOtherHandles", watching(func(f *fixture, w store.Watcher) {
		other := f.open()
		next := f.watch(w, "")
		_, err := other.Put(f.ctx, "key", []byte("value"), store.Always)
		require.NoError(f, err)
		require.Equal(f, "key", next().Key)
	})},
	{"TheLastChangeIsSeen", watching(func(f *fixture, w store.Watcher) {
		next := f.watch(w, "")
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
		require.NoError(f, f.s.Delete(f.ctx, "key", store.Always))
		for !next().Deleted {
		}
	})},
	{"ConflictIsNoChange", watching(func(f *fixture, w store.Watcher) {
		f.put("key", "value", store.Always)
		next := f.watch(w, "")
		_, err := f.s.Put(f.ctx, "key", []byte("lost"), store.IfAbsent)
		require.ErrorIs(f, err, store.ErrConflict)
		f.put("other", "value", store.Always)
		require.Equal(f, "other", next().Key)
	})},
	{"BytesAreTheWatchers", watching(func(f *fixture, w store.Watcher) {
		one, two := f.watch(w, ""), f.watch(w, "")
		revision := f.put("key", "value", store.Always)
		scribble(one().Value)
		require.Equal(f, "value", string(two().Value))
		f.has("key", "value", revision)
	})},
	{"EndsWithItsContext", watching(func(f *fixture, w store.Watcher) {
		ctx, cancel := context.WithCancel(f.ctx)
		events := w.Watch(ctx, "")
		time.AfterFunc(20*time.Millisecond, cancel)
		f.soon("a watch whose context was cancelled", func() {
			for range events {
			}
		})
	})},
	{"CancelledBefore", watching(func(f *fixture, w store.Watcher) {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		f.soon("a watch whose context was cancelled before", func() {
			for range w.Watch(ctx, "") {
			}
		})
	})},
}

// watching is a test of what only a Watcher promises.
func watching(run func(f *fixture, w store.Watcher)) func(f *fixture) {
	return func(f *fixture) {
		w, ok := f.s.(store.Watcher)
		if !ok {
			f.Skip("the store is no Watcher")
		}
		run(f, w)
	}
}

// watch begins to watch, and returns a function that waits for the next change.
func (f *fixture) watch(w store.Watcher, prefix string) func() store.Event {
	return f.following(w.Watch(f.ctx, prefix))
}

// following returns a function that waits for the next of the changes.
func (f *fixture) following(events iter.Seq2[store.Event, error]) func() store.Event {
	type change struct {
		event store.Event
		err   error
	}
	changes := make(chan change)
	go func() {
		defer close(changes)
		for event, err := range events {
			select {
			case changes <- change{event, err}:
			case <-f.ctx.Done():
				return
			}
		}
	}()
	return func() store.Event {
		f.Helper()
		select {
		case c, ok := <-changes:
			require.True(f, ok, "the watch ended")
			require.NoError(f, c.err)
			return c.event
		case <-f.hangs():
			f.Fatal("no change comes")
			return store.Event{}
		}
	}
}
