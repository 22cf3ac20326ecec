package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var batchTests = []storeTest{
	{"AllWrites", func(f *fixture) {
		f.put("deleted", "value", store.Always)
		old := f.put("replaced", "old", store.Always)
		revisions, err := f.s.Batch(f.ctx, []store.Write{
			{Key: "new", Value: []byte("1"), Cond: store.IfAbsent},
			{Key: "deleted", Delete: true},
			{Key: "replaced", Value: []byte("2"), Cond: store.IfRevision(old)},
			{Key: "never", Delete: true},
			{Key: "empty"},
			{Key: "O'Brien's \x00%", Value: []byte("\x00\xff")},
		})
		require.NoError(f, err)
		require.Len(f, revisions, 6)
		require.Empty(f, revisions[1], "revision of a delete")
		require.Empty(f, revisions[3], "revision of a delete")
		f.requireEntry("new", "1", revisions[0])
		f.requireMissing("deleted")
		f.requireEntry("replaced", "2", revisions[2])
		f.requireMissing("never")
		f.requireEntry("empty", "", revisions[4])
		f.requireEntry("O'Brien's \x00%", "\x00\xff", revisions[5])
	}},
	{"RevisionsAreNew", func(f *fixture) {
		for range 10 {
			revisions, err := f.s.Batch(f.ctx, []store.Write{{Key: "a"}, {Key: "b"}, {Key: "c"}})
			require.NoError(f, err)
			for _, revision := range revisions {
				f.requireNew(revision)
			}
			_, err = f.s.Batch(f.ctx, []store.Write{{Key: "a", Delete: true}, {Key: "b", Delete: true}, {Key: "c", Delete: true}})
			require.NoError(f, err)
		}
	}},
	{"ConflictNamesTheKey", func(f *fixture) {
		f.put("guilty", "value", store.Always)
		_, err := f.s.Batch(f.ctx, []store.Write{{Key: "innocent"}, {Key: "guilty", Cond: store.IfAbsent}, {Key: "last"}})
		require.ErrorIs(f, err, store.ErrConflict)
		var named *store.Error
		require.ErrorAs(f, err, &named)
		require.Equal(f, "guilty", named.Key)
	}},
	{"KeyTwiceIsInvalid", func(f *fixture) {
		f.put("key", "value", store.Always)
		for name, writes := range map[string][]store.Write{
			"Written":           {{Key: "key", Value: []byte("1")}, {Key: "other"}, {Key: "key", Value: []byte("2")}},
			"WrittenAndDeleted": {{Key: "key", Value: []byte("1")}, {Key: "key", Delete: true}},
			"Deleted":           {{Key: "key", Delete: true}, {Key: "key", Delete: true}},
		} {
			f.subtest(name, func(f *fixture) {
				f.requireRefused(store.ErrInvalid, func() error {
					_, err := f.s.Batch(f.ctx, writes)
					return err
				})
			})
		}
	}},
	{"Empty", func(f *fixture) {
		revisions, err := f.s.Batch(f.ctx, nil)
		require.NoError(f, err)
		require.Empty(f, revisions)
	}},
	{"Many", func(f *fixture) {
		var writes []store.Write
		for i := range 200 {
			writes = append(writes, store.Write{Key: fmt.Sprintf("key %03d", i), Value: []byte(fmt.Sprint(i)), Cond: store.IfAbsent})
		}
		revisions, err := f.s.Batch(f.ctx, writes)
		require.NoError(f, err)
		entries := f.listAll("", "")
		require.Len(f, entries, len(writes))
		for i, entry := range entries {
			require.Equal(f, printableEntry{writes[i].Key, string(writes[i].Value), revisions[i]}, printable(entry))
		}
	}},
	{"GivenBytes", func(f *fixture) {
		given := []byte("value")
		revisions, err := f.s.Batch(f.ctx, []store.Write{{Key: "key", Value: given}, {Key: "other", Value: given}})
		require.NoError(f, err)
		overwriteBytes(given)
		f.requireEntry("key", "value", revisions[0])
		f.requireEntry("other", "value", revisions[1])
	}},
	{"Isolated", func(f *fixture) {
		const workers, rounds = 4, 15
		handles := f.openHandles(workers)
		f.putKeys([]string{"a", "b"})
		f.runWorkers(workers, func(worker int) error {
			b := handles[worker]
			for round := range rounds {
				value := []byte(fmt.Sprintf("%d.%d", worker, round))
				for {
					first, err := store.Get(f.ctx, b, "a")
					if err != nil {
						return err
					}
					second, err := store.Get(f.ctx, b, "b")
					if err != nil {
						return err
					}
					// Half of the workers use the other order: a store that
					// locks one key after the other must not deadlock.
					writes := []store.Write{
						{Key: "a", Value: append(first.Value, '+'), Cond: store.IfRevision(first.Revision)},
						{Key: "b", Value: append(second.Value, '+'), Cond: store.IfRevision(second.Revision)},
						{Key: fmt.Sprintf("by %d", worker), Value: value},
					}
					if worker%2 == 1 {
						writes[0], writes[1] = writes[1], writes[0]
					}
					if _, err = f.s.Batch(f.ctx, writes); err == nil {
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
			entry, err := store.Get(f.ctx, f.s, key)
			require.NoError(f, err)
			require.Equal(f, key+strings.Repeat("+", workers*rounds), string(entry.Value))
		}
	}},
}
