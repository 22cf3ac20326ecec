package storetest

import (
	"fmt"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var revisionTests = []storeTest{
	{"ChangeWithEachWrite", func(f *fixture) {
		seen := map[store.Revision]bool{}
		for range 20 {
			revision := f.put("key", "the same value", store.Always)
			require.False(f, seen[revision], "the revision %q is reused", revision)
			seen[revision] = true
			f.requireEntry("key", "the same value", revision)
		}
	}},
	{"UnchangedWithoutWrite", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		f.put("other", "value", store.Always)
		_, err := f.s.Put(f.ctx, "key", []byte("refused"), store.IfAbsent)
		require.ErrorIs(f, err, store.ErrConflict)
		f.requireEntry("key", "value", revision)
		f.requireEntry("key", "value", revision)
	}},
	{"NotReusedAfterDelete", func(f *fixture) {
		seen := map[store.Revision]bool{}
		for i := range 30 {
			revision := f.put("key", "value", store.IfAbsent)
			require.False(f, seen[revision], "the revision %q is reused after %d deletes", revision, i)
			seen[revision] = true
			if i%2 == 0 {
				revision = f.put("key", "value", store.IfRevision(revision))
				require.False(f, seen[revision], "the revision %q is reused after %d deletes", revision, i)
				seen[revision] = true
			}
			require.NoError(f, f.s.Delete(f.ctx, "key", store.IfRevision(revision)))
		}
	}},
	{"NotReusedInEmptiedStore", func(f *fixture) {
		seen := map[store.Revision]bool{}
		for i := range 10 {
			for _, key := range []string{"a", "b"} {
				revision := f.put(key, "value", store.IfAbsent)
				require.False(f, seen[revision], "the revision %q is reused after the store was emptied %d times", revision, i)
				seen[revision] = true
			}
			require.NoError(f, f.s.Delete(f.ctx, "a", store.Always))
			require.NoError(f, f.s.Delete(f.ctx, "b", store.Always))
		}
	}},
	{"NotSharedByKeys", func(f *fixture) {
		seen := map[store.Revision]string{}
		for i := range 30 {
			key := fmt.Sprintf("key %d", i)
			revision := f.put(key, "value", store.IfAbsent)
			require.NotContains(f, seen, revision, "%q has the revision of another key", key)
			seen[revision] = key
		}
	}},
	{"ValidInOtherHandles", func(f *fixture) {
		revision := f.put("key", "first", store.IfAbsent)
		f.s = f.open()
		f.requireEntry("key", "first", revision)
		f.requireEntry("key", "second", f.put("key", "second", store.IfRevision(revision)))
	}},
	{"NotReusedInOtherHandles", func(f *fixture) {
		seen := map[store.Revision]bool{}
		for i := range 10 {
			revision := f.put("key", "value", store.IfAbsent)
			require.False(f, seen[revision], "the revision %q is reused in handle %d", revision, i)
			seen[revision] = true
			require.NoError(f, f.s.Delete(f.ctx, "key", store.Always))
			require.NoError(f, f.s.Close())
			f.s = f.open()
		}
	}},
	{"StaleAfterDelete", func(f *fixture) {
		old := f.put("key", "value", store.IfAbsent)
		require.NoError(f, f.s.Delete(f.ctx, "key", store.Always))
		current := f.put("key", "value", store.IfAbsent)
		_, err := f.s.Put(f.ctx, "key", []byte("lost"), store.IfRevision(old))
		f.requireRefused(err, store.ErrConflict, "key", "value", current)
		err = f.s.Delete(f.ctx, "key", store.IfRevision(old))
		f.requireRefused(err, store.ErrConflict, "key", "value", current)
	}},
}
