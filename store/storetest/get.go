package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var getTests = []storeTest{
	getsKeys("NoKeys"),
	getsKeys("OrderOfKeys", "b", "a", "c/d", "%", "*", "A", "a ", "ä", "a\x00", "c", "0"),
	getsKeys("MissingKeys", "missing", "b", "deleted", "c", "never"),
	getsKeys("RepeatedKeys", "a", "b", "a", "missing", "a", "missing", "b"),
	{"ManyKeys", func(f *fixture) {
		keys := numbered("many/", 700)
		f.putKeys(keys)
		for _, n := range []int{2, 31, 32, 33, 255, 256, 257, 700} {
			for i, e := range f.getAll(keys[:n]...) {
				require.Equal(f, keys[i], e.Key)
				require.Equal(f, keys[i], e.Value)
			}
		}
	}},
	{"LargeValues", func(f *fixture) {
		var keys []string
		var want []printableEntry
		for i := range 24 {
			key, value := fmt.Sprint(i), randomBytes(256<<10+i)
			revision := f.put(key, string(value), store.Always)
			keys, want = append(keys, key), append(want, printable(store.Entry{Key: key, Value: value, Revision: revision}))
		}
		require.Equal(f, want, f.getAll(keys...))
	}},
	{"InvalidKey", func(f *fixture) {
		f.putKeys([]string{"a"})
		for _, bad := range invalidKeys {
			for _, keys := range [][]string{{bad}, {"a", bad}} {
				entries, err := f.s.Get(f.ctx, keys...)
				require.ErrorIs(f, err, store.ErrInvalidKey)
				require.Empty(f, entries)
			}
		}
	}},
}

// getsKeys tests that Get returns an entry for each of the keys, of which some are
// missing.
func getsKeys(name string, keys ...string) storeTest {
	return storeTest{name, func(f *fixture) {
		there := map[string]printableEntry{}
		for _, key := range []string{"a", "b", "c", "c/d", "%", "*", "A", "a ", "ä", "a\x00", "0", "deleted"} {
			there[key] = printableEntry{key, "value of " + key, f.put(key, "value of "+key, store.Always)}
		}
		require.NoError(f, store.Delete(f.ctx, f.s, "deleted", store.Always))
		delete(there, "deleted")
		want := []printableEntry{}
		for _, key := range keys {
			e := there[key]
			e.Key = key
			want = append(want, e)
			require.Equal(f, []printableEntry{e}, f.getAll(key))
		}
		require.Equal(f, want, f.getAll(keys...))
	}}
}
