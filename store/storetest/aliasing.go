package storetest

import (
	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// A store neither keeps the bytes it was given nor returns bytes that it keeps.
var aliasing = []test{
	{"GivenBytes", func(f *fixture) {
		given := []byte("value")
		revision, err := f.s.Put(f.ctx, "key", given, store.Always)
		require.NoError(f, err)
		scribble(given)
		f.has("key", "value", revision)
	}},
	{"GivenBytesAreNotChanged", func(f *fixture) {
		room := []byte("value, and what is behind it")
		_, err := f.s.Put(f.ctx, "key", room[:5], store.Always)
		require.NoError(f, err)
		require.Equal(f, "value, and what is behind it", string(room))
	}},
	{"BytesOfGet", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		for range 2 {
			entry, err := f.s.Get(f.ctx, "key")
			require.NoError(f, err)
			scribble(entry.Value)
			f.has("key", "value", revision)
		}
	}},
	{"BytesOfScan", func(f *fixture) {
		first, second := f.put("key 1", "value 1", store.Always), f.put("key 2", "value 2", store.Always)
		for _, entry := range f.scan("", "") {
			scribble(entry.Value)
		}
		f.has("key 1", "value 1", first)
		f.has("key 2", "value 2", second)
	}},
	{"BytesOfScanStay", func(f *fixture) {
		f.put("key 1", "value 1", store.Always)
		f.put("key 2", "value 2", store.Always)
		entries := f.scan("", "")
		f.put("key 1", "other 1", store.Always)
		f.scan("", "")
		require.Equal(f, "value 1", string(entries[0].Value), "a value changed after it was yielded")
		require.Equal(f, "value 2", string(entries[1].Value), "a value changed after it was yielded")
	}},
}

func scribble(value []byte) {
	for i := range value {
		value[i] = '!'
	}
	_ = append(value, '!')
}
