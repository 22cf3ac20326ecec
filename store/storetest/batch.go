package storetest

import (
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
		for _, writes := range [][]store.Write{
			{{Key: "key", Value: []byte("1")}, {Key: "other"}, {Key: "key", Value: []byte("2")}},
			{{Key: "key", Value: []byte("1")}, {Key: "key", Delete: true}},
			{{Key: "key", Delete: true}, {Key: "key", Delete: true}},
		} {
			f.requireRefused(store.ErrInvalid, func() error {
				_, err := f.s.Batch(f.ctx, writes)
				return err
			})
		}
	}},
	{"Empty", func(f *fixture) {
		revisions, err := f.s.Batch(f.ctx, nil)
		require.NoError(f, err)
		require.Empty(f, revisions)
	}},
	{"Many", func(f *fixture) {
		for range 3 {
			var writes, deletes []store.Write
			for _, key := range numbered("key ", 200) {
				writes = append(writes, store.Write{Key: key, Value: []byte("value of " + key), Cond: store.IfAbsent})
				deletes = append(deletes, store.Write{Key: key, Delete: true})
			}
			revisions, err := f.s.Batch(f.ctx, writes)
			require.NoError(f, err)
			entries := f.listAll("", "")
			require.Len(f, entries, len(writes))
			for i, entry := range entries {
				f.requireNew(revisions[i])
				require.Equal(f, store.Entry{Key: writes[i].Key, Value: writes[i].Value, Revision: revisions[i]}, entry)
			}
			_, err = f.s.Batch(f.ctx, deletes)
			require.NoError(f, err)
		}
	}},
	{"Isolated", func(f *fixture) { f.testUpdates("a", "b") }},
}
