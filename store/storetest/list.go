package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var listTests = []storeTest{
	{"EmptyStore", func(f *fixture) {
		require.Empty(f, f.listAll("", ""))
		require.Empty(f, f.listAll("a", "b"))
	}},
	{"ByteOrder", func(f *fixture) {
		keys := []string{"a", "B", "b", "A", "aa", "ab", "a\x00", "a ", "a!", "a-", "a_", "Z", "z", "ä", "é", "e", "f", "0", "10", "2", "\x01",
			"\uffff", "\U00010000", "\U0010ffff", "~", "ß", "ss", "鍵"}
		f.putKeys(keys)
		require.Equal(f, slices.Sorted(slices.Values(keys)), f.listKeys("", ""))
	}},
	{"PrefixIsNotFolder", func(f *fixture) {
		keys := []string{"foo", "foo/child", "foo/child/deep", "foobar", "foo2", "fo", "f", "fop", "fon", "FOO", "Foo/child", "xfoo", "foo\x00", "foo\U0010ffff"}
		f.testPrefixes(keys, "", "f", "fo", "foo", "foo/", "foo/child", "foo/child/deep", "foo/child/deep/", "foob", "fooz", "x", "F", "oo", "child")
	}},
	{"PrefixIsLiteral", func(f *fixture) {
		keys := []string{"user_1", "userX1", "a%b", "axxb", "ab", "star*", "starX", "q?m", "qXm", "br[ack]et", "bracket", "bra", "plus+", "plusX",
			`back\slash`, `back\\slash`, "backslash", "a.b", "a.c", "axb", "it's", "its", "$1", ".", ".*", "*", ">", "^a", "[", "[^a]", "%", "_"}
		f.testPrefixes(keys, "user_", "a%", "star*", "q?", "br[", "br[ack]", "plus+", `back\`, `back\\`, "a.", "it'", "it''", "$", ".", ".*", "*", ">",
			"^", "[", "[^", "%", "_", "%%", "__", "?", "' OR '1'='1", "a%' OR 1=1 --")
	}},
	{"PrefixOfHighestRunes", func(f *fixture) {
		keys := []string{"\U0010ffff", "\U0010ffff\U0010ffff", "\U0010ffffa", "a\U0010ffff", "a\U0010ffffz", "b", "\x7f", "\x7f\x7f", "\u0080", "a\x7f", "a\u0080", "\uffff", "\ud7ff", "\ue000"}
		f.testPrefixes(keys, "\U0010ffff", "\U0010ffff\U0010ffff", "a\U0010ffff", "\x7f", "a\x7f", "\uffff", "\ud7ff", "a")
	}},
	{"PrefixIsCaseSensitive", func(f *fixture) {
		f.testPrefixes([]string{"foo/1", "Foo/2", "FOO/3", "ä/1", "Ä/1"}, "foo/", "Foo/", "FOO/", "fOO/", "ä", "Ä")
	}},
	{"PrefixIsNotNormalized", func(f *fixture) {
		f.testPrefixes([]string{"caf\u00e9/1", "cafe\u0301/1", "cafe/1"}, "caf\u00e9", "cafe\u0301", "cafe", "caf")
	}},
	{"LongPrefix", func(f *fixture) {
		long := strings.Repeat("k", store.MaxKey)
		f.testPrefixes([]string{long, long[1:], long[2:]}, long, long[1:], long[2:], "k")
	}},
	{"After", func(f *fixture) {
		keys := []string{"a", "a\x00", "ab", "b", "b/1", "b/2", "b/3", "c", "B", "z", "ä"}
		f.putKeys(keys)
		sorted := slices.Sorted(slices.Values(keys))
		for _, prefix := range []string{"", "a", "b", "b/", "zz"} {
			for _, after := range append(keys, "", "0", "aa", "b/", "b/2\x00", "b/25", "b/9", "zzz", "\U0010ffff", "'", "%") {
				require.Equal(f, keysInRange(sorted, prefix, after), f.listKeys(prefix, after), "prefix %q, after %q", prefix, after)
			}
		}
	}},
	{"EntriesAreWhole", func(f *fixture) {
		want := []printableEntry{}
		for i := range 5 {
			key, value := fmt.Sprintf("key %d", i), strings.Repeat("v", i*1000)
			want = append(want, printableEntry{key, value, f.put(key, value, store.Always)})
		}
		got := []printableEntry{}
		for _, entry := range f.listAll("key", "") {
			got = append(got, printable(entry))
		}
		require.Equal(f, want, got)
	}},
	{"DeletedKeysAreGone", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		require.NoError(f, store.Delete(f.ctx, f.s, "b", store.Always))
		require.Equal(f, []string{"a", "c"}, f.listKeys("", ""))
		f.put("b", "again", store.Always)
		require.Equal(f, []string{"a", "b", "c"}, f.listKeys("", ""))
	}},
	{"RepeatedRange", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		list := f.s.List(f.ctx, "", "", true)
		for range 2 {
			keys := []string{}
			for entry, err := range list {
				require.NoError(f, err)
				keys = append(keys, entry.Key)
			}
			require.Equal(f, []string{"a", "b", "c"}, keys)
		}
	}},
	{"CallsInsideLoop", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		keys := []string{}
		f.mustEnd("a loop that reads and writes", func() {
			for entry, err := range f.s.List(f.ctx, "", "", true) {
				if err != nil {
					break
				}
				keys = append(keys, entry.Key)
				if _, err := store.Get(f.ctx, f.s, entry.Key); err != nil {
					break
				}
				if _, err := store.Put(f.ctx, f.s, "0", []byte("before the position of the list"), store.Always); err != nil {
					break
				}
				if err := store.Delete(f.ctx, f.s, entry.Key, store.IfRevision(entry.Revision)); err != nil {
					break
				}
			}
		})
		require.Equal(f, []string{"a", "b", "c"}, keys)
		require.Equal(f, []string{"0"}, f.listKeys("", ""))
	}},
	{"OnlyKeys", func(f *fixture) {
		f.put("a", "value", store.Always)
		f.put("b", "", store.Always)
		var entries []store.Entry
		for entry, err := range f.s.List(f.ctx, "", "", false) {
			require.NoError(f, err)
			entries = append(entries, entry)
		}
		require.Equal(f, []store.Entry{{Key: "a"}, {Key: "b"}}, entries)
	}},
	{"ConcurrentWrites", testConcurrentWrites},
	{"Pages", testPages},
}

// testPrefixes requires that lists have exactly the keys that begin with a
// prefix.
func (f *fixture) testPrefixes(keys []string, prefixes ...string) {
	f.Helper()
	f.putKeys(keys)
	sorted := slices.Sorted(slices.Values(keys))
	for _, prefix := range prefixes {
		require.Equal(f, keysInRange(sorted, prefix, ""), f.listKeys(prefix, ""), "prefix %q", prefix)
	}
}

// testPages tests lists of more keys than a store reads at once.
func testPages(f *fixture) {
	keys := make([]string, 1025)
	for i := range keys {
		keys[i] = fmt.Sprintf("page/%05d", i)
	}
	f.putKeys(keys)
	f.put("pag", "before", store.Always)
	f.put("page0", "after", store.Always)

	f.subtest("Complete", func(f *fixture) {
		seen := map[string]bool{}
		for _, key := range f.listKeys("page/", "") {
			seen[key] = true
		}
		for _, key := range keys {
			require.True(f, seen[key], "%q is missing", key)
		}
		require.Len(f, seen, len(keys), "unexpected keys")
	})
	f.subtest("NoKeyTwice", func(f *fixture) {
		seen := map[string]bool{}
		for _, key := range f.listKeys("page/", "") {
			require.False(f, seen[key], "%q is yielded twice", key)
			seen[key] = true
		}
	})
	f.subtest("InOrder", func(f *fixture) {
		require.True(f, slices.IsSorted(f.listKeys("page/", "")))
	})
	f.subtest("AfterAnyKey", func(f *fixture) {
		for _, left := range []int{0, 1, 2, 99, 100, 101, 127, 128, 129, 255, 256, 257, 499, 500, 501, 511, 512, 513, 999, 1000, 1001, 1023, 1024} {
			after := keys[len(keys)-left-1]
			got := f.listKeys("page/", after)
			require.Equal(f, left, len(got), "after %q", after)
			require.True(f, slices.Equal(keys[len(keys)-left:], got), "after %q", after)
		}
	})
	f.subtest("BreakEarly", func(f *fixture) {
		for _, n := range []int{1, 2, 256, 257, 1000} {
			var got []string
			for entry, err := range f.s.List(f.ctx, "page/", "", true) {
				require.NoError(f, err)
				got = append(got, entry.Key)
				if len(got) == n {
					break
				}
			}
			require.True(f, slices.Equal(keys[:n], got), "the first %d", n)
		}
		// A loop that breaks must release its locks and connections.
		for range 50 {
			for range f.s.List(f.ctx, "page/", "", true) {
				break
			}
		}
		var err error
		f.mustEnd("a write after lists that were not finished", func() {
			_, err = store.Put(f.ctx, f.s, "page0", []byte("again"), store.Always)
		})
		require.NoError(f, err)
	})
	f.subtest("CancelledInTheMiddle", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		n := 0
		var last error
		for _, err := range f.s.List(ctx, "page/", "", true) {
			require.NoError(f, last, "List yields after an error")
			if last = err; err == nil {
				n++
			}
			cancel()
		}
		require.ErrorIs(f, last, context.Canceled)
		require.Less(f, n, len(keys))
	})
}

// testConcurrentWrites requires that a list has each unchanged key exactly
// once while writers create, change and delete keys between them.
func testConcurrentWrites(f *fixture) {
	var stable []string
	for i := range 300 {
		stable = append(stable, fmt.Sprintf("key/%04d/stable", i))
	}
	f.putKeys(stable)
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	writers := []store.Store{nil, f.open(), f.open()}
	f.runWorkers(3, func(worker int) error {
		if worker == 0 {
			defer stop()
			for range 10 {
				var got, all []string
				for entry, err := range f.s.List(f.ctx, "key/", "", true) {
					if err != nil {
						return err
					}
					all = append(all, entry.Key)
					if strings.HasSuffix(entry.Key, "/stable") {
						got = append(got, entry.Key)
					}
				}
				if !slices.Equal(stable, got) {
					return fmt.Errorf("of %d unchanged keys, %d are yielded", len(stable), len(got))
				}
				if !slices.IsSorted(all) || len(slices.Compact(all)) != len(all) {
					return errors.New("a key is yielded twice or out of order")
				}
			}
			return nil
		}
		s := writers[worker]
		for i := worker; ctx.Err() == nil; i += 7 {
			key := fmt.Sprintf("key/%04d/%d", i%300, worker)
			if _, err := store.Put(f.ctx, s, key, []byte("value"), store.Always); err != nil {
				return err
			}
			if i%3 == 0 {
				if err := store.Delete(f.ctx, s, key, store.Always); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
