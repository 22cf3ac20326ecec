package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// revisionTests rely on fixture.put, which requires that each revision is new.
var revisionTests = []storeTest{
	{"ChangeWithEachWrite", func(f *fixture) {
		for range 20 {
			f.requireEntry("key", "the same value", f.put("key", "the same value", store.Always))
		}
	}},
	{"UnchangedWithoutWrite", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		f.put("other", "value", store.Always)
		_, err := store.Put(f.ctx, f.s, "key", []byte("refused"), store.IfAbsent)
		require.ErrorIs(f, err, store.ErrConflict)
		f.requireEntry("key", "value", revision)
		f.requireEntry("key", "value", revision)
	}},
	{"NotReusedAfterDelete", func(f *fixture) {
		for i := range 30 {
			revision := f.put("key", "value", store.IfAbsent)
			if i%2 == 0 {
				revision = f.put("key", "value", store.IfRevision(revision))
			}
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
		}
	}},
	{"NotReusedInEmptiedStore", func(f *fixture) {
		for range 10 {
			for _, key := range []string{"a", "b"} {
				f.put(key, "value", store.IfAbsent)
			}
			require.NoError(f, store.Delete(f.ctx, f.s, "a", store.Always))
			require.NoError(f, store.Delete(f.ctx, f.s, "b", store.Always))
		}
	}},
	{"NotSharedByKeys", func(f *fixture) {
		for i := range 30 {
			f.put(fmt.Sprintf("key %d", i), "value", store.IfAbsent)
		}
	}},
	{"ValidInOtherHandles", func(f *fixture) {
		revision := f.put("key", "first", store.IfAbsent)
		f.s = f.open()
		f.requireEntry("key", "first", revision)
		f.requireEntry("key", "second", f.put("key", "second", store.IfRevision(revision)))
	}},
	{"NotReusedInOtherHandles", func(f *fixture) {
		for range 10 {
			f.put("key", "value", store.IfAbsent)
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
			require.NoError(f, f.s.Close())
			f.s = f.open()
		}
	}},
	{"StaleAfterDelete", func(f *fixture) {
		old := f.put("key", "value", store.IfAbsent)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
		f.put("key", "value", store.IfAbsent)
		f.requireRefused(store.ErrConflict, func() error { return put(f.ctx, f.s, "key", store.IfRevision(old)) })
		f.requireRefused(store.ErrConflict, func() error { return store.Delete(f.ctx, f.s, "key", store.IfRevision(old)) })
	}},
}
