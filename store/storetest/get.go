package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var getTests = []storeTest{
	{"NoKeys", func(f *fixture) {
		entries, err := f.s.Get(f.ctx)
		require.NoError(f, err)
		require.Empty(f, entries)
	}},
	{"OrderOfKeys", func(f *fixture) {
		keys := []string{"b", "a", "c/d", "%", "*", "A", "a ", "ä", "a\x00", "c", "0"}
		f.putKeys(keys)
		require.Equal(f, entriesOf(f, keys), f.getAll(keys...))
		slices.Reverse(keys)
		require.Equal(f, entriesOf(f, keys), f.getAll(keys...))
		require.Equal(f, entriesOf(f, keys[:1]), f.getAll(keys[0]))
	}},
	{"MissingKeys", func(f *fixture) {
		revision := f.put("b", "", store.Always)
		f.put("d", "deleted", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "d", store.Always))
		require.Equal(f, []printableEntry{{Key: "a"}, {"b", "", revision}, {Key: "c"}, {Key: "d"}}, f.getAll("a", "b", "c", "d"))
		require.Equal(f, []printableEntry{{Key: "a"}}, f.getAll("a"))
	}},
	{"RepeatedKeys", func(f *fixture) {
		f.putKeys([]string{"a", "b"})
		keys := []string{"a", "b", "a", "missing", "a", "missing", "b"}
		require.Equal(f, entriesOf(f, keys), f.getAll(keys...))
	}},
	{"BytesOfEntries", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		entries, err := f.s.Get(f.ctx, "key", "key")
		require.NoError(f, err)
		overwriteBytes(entries[0].Value)
		require.Equal(f, "value", string(entries[1].Value), "two entries have the same bytes")
		overwriteBytes(entries[1].Value)
		f.requireEntry("key", "value", revision)
		require.Equal(f, []printableEntry{{"key", "value", revision}}, f.getAll("key"))
	}},
	{"ManyKeys", func(f *fixture) {
		keys := make([]string, 700)
		for i := range keys {
			keys[i] = fmt.Sprintf("many/%d", i)
		}
		f.putKeys(keys)
		for _, n := range []int{2, 31, 32, 33, 255, 256, 257, 700} {
			for i, e := range f.getAll(keys[:n]...) {
				require.Equal(f, keys[i], e.Key)
				require.Equal(f, keys[i], e.Value)
			}
		}
	}},
	{"LargeValues", func(f *fixture) {
		var keys, values []string
		for i := range 24 {
			keys, values = append(keys, fmt.Sprint(i)), append(values, string(randomBytes(256<<10)))
			f.put(keys[i], values[i], store.Always)
		}
		entries, err := f.s.Get(f.ctx, keys...)
		require.NoError(f, err)
		require.Len(f, entries, len(keys))
		for i, e := range entries {
			require.True(f, values[i] == string(e.Value), "the value of %s is another one", keys[i])
		}
	}},
	{"SeesAcknowledgedWrites", func(f *fixture) {
		other := f.open()
		for i := range 20 {
			value := fmt.Sprint(i)
			revision, err := store.Put(f.ctx, other, "key", []byte(value), store.Always)
			require.NoError(f, err)
			require.Equal(f, []printableEntry{{Key: "other"}, {"key", value, revision}}, f.getAll("other", "key"))
		}
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
	{"Deadline", func(f *fixture) {
		keys := make([]string, 300)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		f.putKeys(keys)
		want := entriesOf(f, keys)
		for i := range 20 {
			ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*i)*20*time.Microsecond)
			entries, err := f.s.Get(ctx, keys...)
			cancel()
			if err != nil {
				require.ErrorIs(f, err, context.DeadlineExceeded)
				require.Empty(f, entries)
				continue
			}
			require.Equal(f, want, printableEntries(entries))
		}
	}},
}

// getAll returns the entries that Get returns.
func (f *fixture) getAll(keys ...string) []printableEntry {
	f.Helper()
	entries, err := f.s.Get(f.ctx, keys...)
	require.NoError(f, err)
	return printableEntries(entries)
}

// entriesOf returns the entries that Get must return: those of each key alone.
func entriesOf(f *fixture, keys []string) []printableEntry {
	f.Helper()
	var entries []printableEntry
	for _, key := range keys {
		e, err := store.Get(f.ctx, f.s, key)
		if err != nil {
			require.ErrorIs(f, err, store.ErrNotFound)
		}
		entries = append(entries, printableEntry{key, string(e.Value), e.Revision})
	}
	return entries
}

func printableEntries(entries []store.Entry) []printableEntry {
	list := make([]printableEntry, len(entries))
	for i, e := range entries {
		list[i] = printable(e)
	}
	return list
}
