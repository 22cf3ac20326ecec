package storetest

import (
	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// A store neither keeps the slices that it receives nor returns slices that it
// keeps.
var aliasingTests = []storeTest{
	{"GivenBytes", func(f *fixture) {
		given := []byte("value")
		revision, err := store.Put(f.ctx, f.s, "key", given, store.Always)
		require.NoError(f, err)
		overwriteBytes(given)
		f.requireEntry("key", "value", revision)
	}},
	{"GivenBytesAreNotChanged", func(f *fixture) {
		room := []byte("value and the rest of the array")
		_, err := store.Put(f.ctx, f.s, "key", room[:5], store.Always)
		require.NoError(f, err)
		require.Equal(f, "value and the rest of the array", string(room))
	}},
	{"BytesOfGet", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		for range 2 {
			entry, err := store.Get(f.ctx, f.s, "key")
			require.NoError(f, err)
			overwriteBytes(entry.Value)
			f.requireEntry("key", "value", revision)
		}
	}},
	{"BytesOfScan", func(f *fixture) {
		first, second := f.put("key 1", "value 1", store.Always), f.put("key 2", "value 2", store.Always)
		for _, entry := range f.listAll("", "") {
			overwriteBytes(entry.Value)
		}
		f.requireEntry("key 1", "value 1", first)
		f.requireEntry("key 2", "value 2", second)
	}},
	{"BytesOfScanStay", func(f *fixture) {
		f.put("key 1", "value 1", store.Always)
		f.put("key 2", "value 2", store.Always)
		entries := f.listAll("", "")
		f.put("key 1", "other 1", store.Always)
		f.listAll("", "")
		require.Equal(f, "value 1", string(entries[0].Value), "the value changed after Scan had yielded it")
		require.Equal(f, "value 2", string(entries[1].Value), "the value changed after Scan had yielded it")
	}},
}

func overwriteBytes(value []byte) {
	for i := range value {
		value[i] = '!'
	}
	_ = append(value, '!')
}
