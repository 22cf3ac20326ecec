package storetest

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var purgeTests = []storeTest{
	{"AllKeys", forPurger(func(f *fixture, p store.Purger) {
		f.putKeys([]string{"a", "b", "c/d", "e"})
		require.NoError(f, p.Purge(f.ctx, "a", "b", "c/d"))
		require.Equal(f, []string{"e"}, f.scanKeys("", ""))
		for _, key := range []string{"a", "b", "c/d"} {
			f.requireMissing(key)
		}
	})},
	{"NoOtherKeys", forPurger(func(f *fixture, p store.Purger) {
		others := []string{"*", "A", "a ", "a*", "a/", "a/*", "a/>", "a/b", "a/b/c", "a>", "aa", "ab", "b", "ä"}
		f.putKeys(others)
		f.put("a", "value", store.Always)
		require.NoError(f, p.Purge(f.ctx, "a"))
		require.Equal(f, others, f.scanKeys("", ""))
		require.NoError(f, p.Purge(f.ctx, "a/*", "*", "a/>"))
		require.Equal(f, []string{"A", "a ", "a*", "a/", "a/b", "a/b/c", "a>", "aa", "ab", "b", "ä"}, f.scanKeys("", ""))
	})},
	{"Missing", forPurger(func(f *fixture, p store.Purger) {
		f.putKeys([]string{"a"})
		require.NoError(f, p.Purge(f.ctx))
		require.NoError(f, p.Purge(f.ctx, "b", "a", "a"))
		require.NoError(f, p.Purge(f.ctx, "a"))
		f.requireMissing("a")
	})},
	{"NothingIsListed", forPurger(func(f *fixture, p store.Purger) {
		l, ok := store.As[store.Lister](f.s)
		if !ok {
			f.Skip("the store is not a Lister")
		}
		f.putKeys([]string{"a", "b", "c"})
		require.NoError(f, f.s.Delete(f.ctx, "b", store.Always))
		require.NoError(f, p.Purge(f.ctx, "a", "b"))
		require.Equal(f, []string{"c"}, f.listKeys(l, "", ""))
	})},
	{"KeyIsNewAgain", forPurger(func(f *fixture, p store.Purger) {
		old := f.put("a", "old", store.Always)
		require.NoError(f, p.Purge(f.ctx, "a"))
		_, err := f.s.Put(f.ctx, "a", nil, store.IfRevision(old))
		require.ErrorIs(f, err, store.ErrConflict)
		f.requireEntry("a", "new", f.put("a", "new", store.IfAbsent))
		_, err = f.s.Put(f.ctx, "a", nil, store.IfRevision(old))
		require.ErrorIs(f, err, store.ErrConflict)
	})},
	{"InvalidKeyRemovesNothing", forPurger(func(f *fixture, p store.Purger) {
		revision := f.put("a", "value", store.Always)
		for _, bad := range []string{"", strings.Repeat("k", store.MaxKey+1), "\xff"} {
			f.requireRefused(p.Purge(f.ctx, "a", bad), store.ErrInvalidKey, "a", "value", revision)
		}
	})},
	{"CancelledRemovesNothing", forPurger(func(f *fixture, p store.Purger) {
		revision := f.put("a", "value", store.Always)
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		f.requireRefused(p.Purge(ctx, "a"), context.Canceled, "a", "value", revision)
	})},
	{"Closed", forPurger(func(f *fixture, p store.Purger) {
		revision := f.put("a", "value", store.Always)
		require.NoError(f, f.s.Close())
		err := p.Purge(f.ctx, "a")
		f.s = f.open()
		f.requireRefused(err, store.ErrClosed, "a", "value", revision)
	})},
	{"ManyAtOnce", forPurger(func(f *fixture, p store.Purger) {
		const workers, each = 8, 40
		var keys []string
		for i := range workers * each {
			keys = append(keys, fmt.Sprintf("garbage/%d", i))
		}
		f.putKeys(append(keys, "kept"))
		handles := f.openHandles(workers)
		f.runWorkers(workers, func(worker int) error {
			return handles[worker].(store.Purger).Purge(f.ctx, keys[worker*each:(worker+1)*each]...)
		})
		require.Equal(f, []string{"kept"}, f.scanKeys("", ""))
	})},
}

// forPurger returns a test that is skipped if the store is not a Purger.
func forPurger(run func(f *fixture, p store.Purger)) func(f *fixture) {
	return func(f *fixture) {
		p, ok := store.As[store.Purger](f.s)
		if !ok {
			f.Skip("the store is not a Purger")
		}
		run(f, p)
	}
}
