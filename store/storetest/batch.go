package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var batches = []test{
	{"AllWrites", batching(func(f *fixture, b store.Batcher) {
		f.put("deleted", "value", store.Always)
		old := f.put("replaced", "old", store.Always)
		revisions, err := b.Batch(f.ctx, []store.Write{
			{Key: "new", Value: []byte("1"), Cond: store.IfAbsent},
			{Key: "deleted", Delete: true},
			{Key: "replaced", Value: []byte("2"), Cond: store.IfRevision(old)},
			{Key: "never", Delete: true},
			{Key: "empty"},
			{Key: "O'Brien's \x00%", Value: []byte("\x00\xff")},
		})
		require.NoError(f, err)
		require.Len(f, revisions, 6)
		require.Empty(f, revisions[1], "the revision of a delete")
		require.Empty(f, revisions[3], "the revision of a delete")
		f.has("new", "1", revisions[0])
		f.hasNot("deleted")
		f.has("replaced", "2", revisions[2])
		f.hasNot("never")
		f.has("empty", "", revisions[4])
		f.has("O'Brien's \x00%", "\x00\xff", revisions[5])
	})},
	{"RevisionsAreNew", batching(func(f *fixture, b store.Batcher) {
		seen := map[store.Revision]bool{}
		for range 10 {
			revisions, err := b.Batch(f.ctx, []store.Write{{Key: "a"}, {Key: "b"}, {Key: "c"}})
			require.NoError(f, err)
			for _, revision := range revisions {
				require.NotEmpty(f, revision)
				require.False(f, seen[revision], "the revision %q came again", revision)
				seen[revision] = true
			}
			_, err = b.Batch(f.ctx, []store.Write{{Key: "a", Delete: true}, {Key: "b", Delete: true}, {Key: "c", Delete: true}})
			require.NoError(f, err)
		}
	})},
	{"NoneIfOneConflicts", batching(func(f *fixture, b store.Batcher) {
		stale := f.put("stale", "first", store.Always)
		current := f.put("stale", "second", store.Always)
		there := f.put("there", "value", store.Always)
		for name, conflict := range map[string]store.Write{
			"IfRevision":              {Key: "stale", Value: []byte("lost"), Cond: store.IfRevision(stale)},
			"IfRevisionMissing":       {Key: "missing", Value: []byte("lost"), Cond: store.IfRevision(stale)},
			"IfRevisionOfNoWrite":     {Key: "stale", Value: []byte("lost"), Cond: store.IfRevision("")},
			"IfAbsent":                {Key: "stale", Value: []byte("lost"), Cond: store.IfAbsent},
			"DeleteIfRevision":        {Key: "stale", Delete: true, Cond: store.IfRevision(stale)},
			"DeleteIfRevisionMissing": {Key: "missing", Delete: true, Cond: store.IfRevision(stale)},
		} {
			f.sub(name, func(f *fixture) {
				others := []store.Write{{Key: "new", Value: []byte("lost"), Cond: store.IfAbsent}, {Key: "there", Delete: true, Cond: store.IfRevision(there)}}
				for place := range 3 {
					writes := append(append(append([]store.Write{}, others[:place]...), conflict), others[place:]...)
					_, err := b.Batch(f.ctx, writes)
					f.refused(err, store.ErrConflict, "stale", "second", current)
					f.has("there", "value", there)
					f.hasNot("new")
					f.hasNot("missing")
				}
			})
		}
	})},
	{"ConflictNamesTheKey", batching(func(f *fixture, b store.Batcher) {
		f.put("guilty", "value", store.Always)
		_, err := b.Batch(f.ctx, []store.Write{{Key: "innocent"}, {Key: "guilty", Cond: store.IfAbsent}, {Key: "last"}})
		require.ErrorIs(f, err, store.ErrConflict)
		var named *store.Error
		require.ErrorAs(f, err, &named)
		require.Equal(f, "guilty", named.Key)
	})},
	{"InvalidChangesNothing", batching(func(f *fixture, b store.Batcher) {
		revision := f.put("key", "value", store.Always)
		for name, writes := range map[string][]store.Write{
			"KeyTwice":             {{Key: "key", Value: []byte("1")}, {Key: "other"}, {Key: "key", Value: []byte("2")}},
			"KeyWrittenAndDeleted": {{Key: "key", Value: []byte("1")}, {Key: "key", Delete: true}},
			"KeyDeletedTwice":      {{Key: "key", Delete: true}, {Key: "key", Delete: true}},
			"DeleteIfAbsent":       {{Key: "key", Value: []byte("1")}, {Key: "other", Delete: true, Cond: store.IfAbsent}},
			"EmptyKey":             {{Key: "key", Value: []byte("1")}, {Key: ""}},
			"LongKey":              {{Key: strings.Repeat("k", store.MaxKey+1)}, {Key: "key", Value: []byte("1")}},
			"KeyNotUTF8":           {{Key: "key", Value: []byte("1")}, {Key: "a\xff"}},
		} {
			f.sub(name, func(f *fixture) {
				_, err := b.Batch(f.ctx, writes)
				f.refused(err, store.ErrInvalid, "key", "value", revision)
				f.hasNot("other")
			})
		}
	})},
	{"Empty", batching(func(f *fixture, b store.Batcher) {
		revisions, err := b.Batch(f.ctx, nil)
		require.NoError(f, err)
		require.Empty(f, revisions)
	})},
	{"Many", batching(func(f *fixture, b store.Batcher) {
		var writes []store.Write
		for i := range 200 {
			writes = append(writes, store.Write{Key: fmt.Sprintf("key %03d", i), Value: []byte(fmt.Sprint(i)), Cond: store.IfAbsent})
		}
		revisions, err := b.Batch(f.ctx, writes)
		require.NoError(f, err)
		entries := f.scan("", "")
		require.Len(f, entries, len(writes))
		for i, entry := range entries {
			require.Equal(f, readable{writes[i].Key, string(writes[i].Value), revisions[i]}, text(entry))
		}
	})},
	{"GivenBytes", batching(func(f *fixture, b store.Batcher) {
		given := []byte("value")
		revisions, err := b.Batch(f.ctx, []store.Write{{Key: "key", Value: given}, {Key: "other", Value: given}})
		require.NoError(f, err)
		scribble(given)
		f.has("key", "value", revisions[0])
		f.has("other", "value", revisions[1])
	})},
	{"CancelledChangesNothing", batching(func(f *fixture, b store.Batcher) {
		revision := f.put("key", "value", store.Always)
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := b.Batch(ctx, []store.Write{{Key: "key", Value: []byte("lost")}, {Key: "other"}})
		f.refused(err, context.Canceled, "key", "value", revision)
		f.hasNot("other")
	})},
	{"NothingInBetween", batching(func(f *fixture, _ store.Batcher) {
		const workers, rounds = 4, 15
		handles := f.handles(workers)
		f.fill([]string{"a", "b"})
		f.together(workers, func(worker int) error {
			b := handles[worker].(store.Batcher)
			for round := range rounds {
				value := []byte(fmt.Sprintf("%d.%d", worker, round))
				for {
					first, err := b.Get(f.ctx, "a")
					if err != nil {
						return err
					}
					second, err := b.Get(f.ctx, "b")
					if err != nil {
						return err
					}
					// In the other order for every other worker: a store that locks one
					// key after the other must not lock up.
					writes := []store.Write{
						{Key: "a", Value: append(first.Value, '+'), Cond: store.IfRevision(first.Revision)},
						{Key: "b", Value: append(second.Value, '+'), Cond: store.IfRevision(second.Revision)},
						{Key: fmt.Sprintf("by %d", worker), Value: value},
					}
					if worker%2 == 1 {
						writes[0], writes[1] = writes[1], writes[0]
					}
					if _, err = b.Batch(f.ctx, writes); err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) {
						return err
					}
					time.Sleep(time.Millisecond)
				}
			}
			return nil
		})
		for _, key := range []string{"a", "b"} {
			entry, err := f.s.Get(f.ctx, key)
			require.NoError(f, err)
			require.Equal(f, key+strings.Repeat("+", workers*rounds), string(entry.Value))
		}
	})},
}

// batching is a test of what only a Batcher promises.
func batching(run func(f *fixture, b store.Batcher)) func(f *fixture) {
	return func(f *fixture) {
		b, ok := f.s.(store.Batcher)
		if !ok {
			f.Skip("the store is no Batcher")
		}
		run(f, b)
	}
}
