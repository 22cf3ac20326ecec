package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var listTests = []storeTest{
	{"EmptyStore", forLister(func(f *fixture, l store.Lister) {
		require.Empty(f, f.listKeys(l, "", ""))
		require.Empty(f, f.listKeys(l, "a", "b"))
	})},
	{"KeysAbove", forLister(func(f *fixture, l store.Lister) {
		keys := []string{"a", "a/", "a/b", "a/b/", "a/b/c", "a/b/c/d", "a/b0", "a/b.", "a/bc", "a//", "a//b", "a0", "/", "/a", "//", "ab", "b/c",
			"a/\x00", "a/b\x00", "a/b\x00/c", "a/ä/c", "a/ä", "a/*", "a/*/x", "a/=", "a/%2F", "a/\U0010ffff", "A/b"}
		f.putKeys(keys)
		slices.Sort(keys)
		for _, prefix := range []string{"", "a", "a/", "a/b", "a/b/", "a/b/c", "a//", "/", "//", "b", "b/", "a/*", "a/ä/", "A", "x", "\U0010ffff"} {
			require.Equal(f, keysAbove(keys, prefix, ""), f.listKeys(l, prefix, ""), "prefix %q", prefix)
		}
	})},
	{"After", forLister(func(f *fixture, l store.Lister) {
		keys := []string{"a", "a\x00", "ab", "b", "b/1", "b/2", "b/2/x", "b/3", "c", "c/x", "B", "z", "ä"}
		f.putKeys(keys)
		sorted := slices.Sorted(slices.Values(keys))
		for _, prefix := range []string{"", "a", "b", "b/", "zz"} {
			for _, after := range append(keys, "", "0", "aa", "b/", "b/2\x00", "b/25", "b0", "c/", "zzz", "\U0010ffff") {
				require.Equal(f, keysAbove(sorted, prefix, after), f.listKeys(l, prefix, after), "prefix %q, after %q", prefix, after)
			}
		}
	})},
	{"Pages", forLister(testPagesOfKeys)},
	{"DeletedKeys", forLister(func(f *fixture, l store.Lister) {
		f.putKeys([]string{"a", "b", "c"})
		require.NoError(f, f.s.Delete(f.ctx, "b", store.Always))
		got := slices.DeleteFunc(f.listKeys(l, "", ""), func(key string) bool { return key == "b" })
		require.Equal(f, []string{"a", "c"}, got)
		f.put("b", "again", store.Always)
		require.Equal(f, []string{"a", "b", "c"}, f.listKeys(l, "", ""))
	})},
	{"RepeatedRange", forLister(func(f *fixture, l store.Lister) {
		f.putKeys([]string{"a", "b", "c"})
		list := l.List(f.ctx, "", "")
		for range 2 {
			var keys []string
			for key, err := range list {
				require.NoError(f, err)
				keys = append(keys, key)
			}
			require.Equal(f, []string{"a", "b", "c"}, keys)
		}
	})},
	{"CallsInsideLoop", forLister(func(f *fixture, l store.Lister) {
		f.putKeys([]string{"a", "b", "c"})
		var keys []string
		f.mustEnd("a loop that reads and writes", func() {
			for key, err := range l.List(f.ctx, "", "") {
				if err != nil {
					break
				}
				keys = append(keys, key)
				if f.s.Delete(f.ctx, key, store.Always) != nil {
					break
				}
			}
		})
		require.Equal(f, []string{"a", "b", "c"}, keys)
		require.Empty(f, f.scanKeys("", ""))
	})},
	{"Cancelled", forLister(func(f *fixture, l store.Lister) {
		f.putKeys([]string{"a", "b"})
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		errs := []error{}
		for key, err := range l.List(ctx, "", "") {
			require.Empty(f, key)
			errs = append(errs, err)
		}
		require.Len(f, errs, 1)
		require.ErrorIs(f, errs[0], context.Canceled)
	})},
	{"Closed", forLister(func(f *fixture, l store.Lister) {
		f.putKeys([]string{"a", "b"})
		require.NoError(f, f.s.Close())
		errs := []error{}
		for key, err := range l.List(f.ctx, "", "") {
			require.Empty(f, key)
			errs = append(errs, err)
		}
		require.Len(f, errs, 1)
		require.ErrorIs(f, errs[0], store.ErrClosed)
	})},
}

// forLister returns a test that is skipped if the store is not a Lister.
func forLister(run func(f *fixture, l store.Lister)) func(f *fixture) {
	return func(f *fixture) {
		l, ok := store.As[store.Lister](f.s)
		if !ok {
			f.Skip("the store is not a Lister")
		}
		run(f, l)
	}
}

// testPagesOfKeys tests lists of more keys, and of larger folders, than a store
// reads at once.
func testPagesOfKeys(f *fixture, l store.Lister) {
	var above, all []string
	for i := range 700 {
		above = append(above, fmt.Sprintf("page%05d", i))
	}
	for i := range 600 {
		all = append(all, fmt.Sprintf("page00300/%05d", i), fmt.Sprintf("page00301/folder%d/key", i))
	}
	f.putKeys(append(all, above...))

	f.subtest("Complete", func(f *fixture) {
		require.Equal(f, above, f.listKeys(l, "page", ""))
		require.Len(f, f.listKeys(l, "page00300/", ""), 600)
	})
	f.subtest("BreakEarly", func(f *fixture) {
		for _, n := range []int{1, 256, 257, 302, 600} {
			var got []string
			for key, err := range l.List(f.ctx, "page", "") {
				require.NoError(f, err)
				if got = append(got, key); len(got) == n {
					break
				}
			}
			require.Equal(f, above[:n], got)
		}
	})
	f.subtest("CancelledInTheMiddle", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		n := 0
		var last error
		for _, err := range l.List(ctx, "page", "") {
			require.NoError(f, last, "List yields after an error")
			if last = err; err == nil {
				n++
			}
			cancel()
		}
		require.ErrorIs(f, last, context.Canceled)
		require.Less(f, n, len(above))
	})
}

// listKeys returns the keys that List yields.
func (f *fixture) listKeys(l store.Lister, prefix, after string) []string {
	f.Helper()
	var keys []string
	for key, err := range l.List(f.ctx, prefix, after) {
		require.NoError(f, err)
		keys = append(keys, key)
	}
	return keys
}

// keysAbove returns the keys of a range that have no slash after the prefix.
func keysAbove(sorted []string, prefix, after string) []string {
	var found []string
	for _, key := range keysInRange(sorted, prefix, after) {
		if !strings.Contains(key[len(prefix):], "/") {
			found = append(found, key)
		}
	}
	return found
}
