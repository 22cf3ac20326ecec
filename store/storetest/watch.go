package storetest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var watchTests = []storeTest{
	{"PutAndDelete", forWatcher(func(f *fixture, w store.Watcher) {
		next := f.watchEvents(w, "")
		revision := f.put("key", "value", store.Always)
		event := next()
		require.Equal(f, printableEntry{"key", "value", revision}, printable(event.Entry))
		require.False(f, event.Deleted)
		revision = f.put("key", "", store.IfRevision(revision))
		event = next()
		require.Equal(f, printableEntry{"key", "", revision}, printable(event.Entry))
		require.False(f, event.Deleted, "an empty value is not a delete")
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
		event = next()
		require.Equal(f, printableEntry{Key: "key"}, printable(event.Entry))
		require.True(f, event.Deleted)
	})},
	{"StartsWithCall", forWatcher(func(f *fixture, w store.Watcher) {
		f.put("key 1", "before", store.Always)
		events := w.Watch(f.ctx, "key")
		revision := f.put("key 2", "after", store.Always)
		event := f.nextEvent(events)()
		require.Equal(f, printableEntry{"key 2", "after", revision}, printable(event.Entry), "the first change after the call of Watch")
	})},
	{"PrefixIsLiteral", forWatcher(func(f *fixture, w store.Watcher) {
		next := f.watchEvents(w, "a_%.")
		for _, key := range []string{"abc.", "A_%.", "a_%", "a_x.", "b", "xa_%."} {
			f.put(key, "value", store.Always)
		}
		f.put("a_%.key", "value", store.Always)
		require.Equal(f, "a_%.key", next().Key)
	})},
	{"OtherHandles", forWatcher(func(f *fixture, w store.Watcher) {
		other := f.open()
		next := f.watchEvents(w, "")
		_, err := store.Put(f.ctx, other, "key", []byte("value"), store.Always)
		require.NoError(f, err)
		require.Equal(f, "key", next().Key)
	})},
	{"LastChangeIsYielded", forWatcher(func(f *fixture, w store.Watcher) {
		next := f.watchEvents(w, "")
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
	})},
	{"ConflictIsNoChange", forWatcher(func(f *fixture, w store.Watcher) {
		f.put("key", "value", store.Always)
		next := f.watchEvents(w, "")
		_, err := store.Put(f.ctx, f.s, "key", []byte("lost"), store.IfAbsent)
		require.ErrorIs(f, err, store.ErrConflict)
		f.put("other", "value", store.Always)
		require.Equal(f, "other", next().Key)
	})},
	{"ValuesAreCopies", forWatcher(func(f *fixture, w store.Watcher) {
		one, two := f.watchEvents(w, ""), f.watchEvents(w, "")
		revision := f.put("key", "value", store.Always)
		overwriteBytes(one().Value)
		require.Equal(f, "value", string(two().Value))
		f.requireEntry("key", "value", revision)
	})},
	{"EndsWithContext", forWatcher(func(f *fixture, w store.Watcher) {
		ctx, cancel := context.WithCancel(f.ctx)
		events := w.Watch(ctx, "")
		time.AfterFunc(20*time.Millisecond, cancel)
		f.mustEnd("a watch whose context was cancelled", func() {
			for range events {
			}
		})
	})},
	{"CancelledBeforeCall", forWatcher(func(f *fixture, w store.Watcher) {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		f.mustEnd("a watch with a cancelled context", func() {
			for range w.Watch(ctx, "") {
			}
		})
	})},
}

// forWatcher returns a test that is skipped if the store is not a Watcher.
func forWatcher(run func(f *fixture, w store.Watcher)) func(f *fixture) {
	return func(f *fixture) {
		w, ok := store.As[store.Watcher](f.s)
		if !ok {
			f.Skip("the store is not a Watcher")
		}
		run(f, w)
	}
}

// watchEvents starts a watch and returns a function that waits for the next
// event.
func (f *fixture) watchEvents(w store.Watcher, prefix string) func() store.Event {
	return f.nextEvent(w.Watch(f.ctx, prefix))
}

// nextEvent returns a function that waits for the next event.
func (f *fixture) nextEvent(events iter.Seq2[store.Event, error]) func() store.Event {
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
		case <-f.hangLimit():
			f.Fatal("no change comes")
			return store.Event{}
		}
	}
}
