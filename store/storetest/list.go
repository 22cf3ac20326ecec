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
	prefixes("PrefixIsNotFolder",
		[]string{
			"foo", "foo/child", "foo/child/deep", "foobar", "foo2", "fo", "f", "fop", "fon", "FOO", "Foo/child",
			"xfoo", "foo\x00", "foo\U0010ffff",
		},
		"", "f", "fo", "foo", "foo/", "foo/child", "foo/child/deep", "foo/child/deep/", "foob", "fooz", "x", "F", "oo",
		"child"),
	prefixes("PrefixIsLiteral",
		[]string{"user_1", "userX1", "a%b", "axxb", "ab", "star*", "starX", "q?m", "qXm", "br[ack]et", "bracket", "bra", "plus+", "plusX",
			`back\slash`, `back\\slash`, "backslash", "a.b", "a.c", "axb", "it's", "its", "$1", ".", ".*", "*", ">", "^a", "[",
			"[^a]", "%", "_"},
		"user_", "a%", "star*", "q?", "br[", "br[ack]", "plus+", `back\`, `back\\`, "a.", "it'", "it''", "$", ".", ".*", "*",
		">",
		"^", "[", "[^", "%", "_", "%%", "__", "?", "' OR '1'='1", "a%' OR 1=1 --"),
	prefixes("PrefixOfHighestRunes",
		[]string{"\U0010ffff", "\U0010ffff\U0010ffff", "\U0010ffffa", "a\U0010ffff", "a\U0010ffffz", "b", "\x7f", "\x7f\x7f", "\u0080", "a\x7f", "a\u0080",
			"\uffff", "\ud7ff", "\ue000"},
		"\U0010ffff", "\U0010ffff\U0010ffff", "a\U0010ffff", "\x7f", "a\x7f", "\uffff", "\ud7ff", "a"),
	prefixes("PrefixIsCaseSensitive", []string{"foo/1", "Foo/2", "FOO/3", "ä/1", "Ä/1"}, "foo/", "Foo/",
		"FOO/", "fOO/", "ä", "Ä"),
	prefixes("PrefixIsNotNormalized", []string{"caf\u00e9/1", "cafe\u0301/1", "cafe/1"}, "caf\u00e9",
		"cafe\u0301", "cafe", "caf"),
	prefixes("LongPrefix", []string{longestKey, longestKey[1:], longestKey[2:]}, longestKey,
		longestKey[1:], longestKey[2:], "k"),
	prefixes("ByteOrder", []string{"a", "B", "b", "A", "aa", "ab", "a\x00", "a ", "a!", "a-", "a_", "Z", "z", "ä", "é", "e", "f", "0", "10", "2", "\x01",
		"\uffff", "\U00010000", "\U0010ffff", "~", "ß", "ss", "鍵"}, ""),
	{"After", func(f *fixture) {
		keys := []string{"a", "a\x00", "ab", "b", "b/1", "b/2", "b/3", "c", "B", "z", "ä"}
		f.putKeys(keys)
		sorted := slices.Sorted(slices.Values(keys))
		for _, prefix := range []string{"", "a", "b", "b/", "zz"} {
			for _, after := range append(keys, "", "0", "aa", "b/", "b/2\x00", "b/25", "b/9", "zzz", "\U0010ffff", "'", "%") {
				require.Equal(f, keysInRange(sorted, prefix, after), f.listKeys(prefix, after),
					"prefix %q, after %q", prefix, after)
			}
		}
	}},
	{"DeletedKeysAreGone", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		require.NoError(f, store.Delete(f.ctx, f.s, "b", store.Always))
		require.Equal(f, []string{"a", "c"}, f.listKeys("", ""))
		f.put("b", "again", store.Always)
		require.Equal(f, []string{"a", "b", "c"}, f.listKeys("", ""))
	}},
	{"OnlyKeys", func(f *fixture) {
		f.put("a", "value", store.Always)
		f.put("b", "", store.Always)
		require.Equal(f, []store.Entry{{Key: "a"}, {Key: "b"}}, f.list("", "", false))
	}},
	{"CallsInsideLoop", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		var keys []string
		for entry, err := range f.s.List(f.ctx, "", "", true) {
			require.NoError(f, err)
			keys = append(keys, entry.Key)
			require.Equal(f, entry.Key, f.getAll(entry.Key)[0].Value)
			f.put("0", "before the position of the list", store.Always)
			require.NoError(f, store.Delete(f.ctx, f.s, entry.Key, store.IfRevision(entry.Revision)))
		}
		require.Equal(f, []string{"a", "b", "c"}, keys)
		require.Equal(f, []string{"0"}, f.listKeys("", ""))
	}},
	{"ConcurrentWrites", testConcurrentWrites},
	{"ManyKeysOnceInOrder", func(f *fixture) { f.requireKeys(f.putPages(), f.listKeys("page/", "")) }},
	{"ManyKeysAfter", func(f *fixture) {
		keys := f.putPages()
		for _, left := range []int{0, 1, 2, 99, 100, 101, 127, 128, 129, 255, 256, 257, 499, 500, 501, 511, 512, 513, 999, 1000, 1001, 1023, 1024} {
			f.requireKeys(keys[len(keys)-left:], f.listKeys("page/", keys[len(keys)-left-1]))
		}
	}},
	{"BreakEarly", func(f *fixture) {
		keys := f.putPages()
		list := f.s.List(f.ctx, "page/", "", true)
		for _, n := range []int{1, 2, 256, 257, 1000, len(keys)} {
			var got []string
			for entry, err := range list {
				require.NoError(f, err)
				if got = append(got, entry.Key); len(got) == n {
					break
				}
			}
			f.requireKeys(keys[:n], got)
		}
		// A loop that breaks must release its locks and connections.
		for range 50 {
			for range list {
				break
			}
		}
		f.put("page0", "again", store.Always)
	}},
	{"CancelledInTheMiddle", func(f *fixture) {
		keys := f.putPages()
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		entries, err := collect(func(yield func(store.Entry, error) bool) {
			for entry, err := range f.s.List(ctx, "page/", "", true) {
				cancel()
				if !yield(entry, err) {
					return
				}
			}
		})
		require.ErrorIs(f, err, context.Canceled)
		require.Less(f, len(entries), len(keys))
	}},
}

// prefixes tests that lists have exactly the keys that begin with a prefix, in
// order.
func prefixes(name string, keys []string, prefixes ...string) storeTest {
	return storeTest{name, func(f *fixture) {
		f.putKeys(keys)
		sorted := slices.Sorted(slices.Values(keys))
		for _, prefix := range prefixes {
			require.Equal(f, keysInRange(sorted, prefix, ""), f.listKeys(prefix, ""), "prefix %q", prefix)
		}
	}}
}

var longestKey = strings.Repeat("k", store.MaxKey)

// putPages writes more keys than a store reads at once, and others around them.
func (f *fixture) putPages() []string {
	f.Helper()
	keys := numbered("page/", 1025)
	f.putKeys(keys)
	f.putKeys([]string{"pag", "page0"})
	return keys
}

// requireKeys requires that many keys are the wanted ones.
func (f *fixture) requireKeys(want, got []string) {
	f.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(f, want[i], got[i], "key %d of %d", i, len(want))
	}
	require.Len(f, got, len(want))
}

// testConcurrentWrites requires that a list has each unchanged key exactly
// once while writers create, change and delete keys between them.
func testConcurrentWrites(f *fixture) {
	stable := numbered("key/stable/", 300)
	f.putKeys(stable)
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	writers := f.openHandles(2)
	f.runWorkers(3, func(worker int) error {
		if worker == 2 {
			defer stop()
			for range 10 {
				entries, err := collect(f.s.List(f.ctx, "key/", "", true))
				if err != nil {
					return err
				}
				keys := keysOf(entries)
				if !slices.IsSorted(keys) || len(slices.Compact(keys)) != len(entries) {
					return errors.New("a key is yielded twice or out of order")
				}
				got := slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "+") })
				if !slices.Equal(stable, got) {
					return fmt.Errorf("of %d unchanged keys, %d are yielded", len(stable), len(got))
				}
			}
			return nil
		}
		for i := worker; ctx.Err() == nil; i += 7 {
			key := fmt.Sprintf("%s+%d", stable[i%300], worker)
			_, err := store.Put(f.ctx, writers[worker], key, []byte("value"), store.Always)
			if err == nil && i%3 == 0 {
				err = store.Delete(f.ctx, writers[worker], key, store.Always)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
