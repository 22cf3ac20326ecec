package redisstore_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

func TestOpenExisting(t *testing.T) {
	url := shared(t)
	prefix := fresh(t, url)
	existing := &redisstore.Options{Prefix: prefix, Existing: true}
	_, err := redisstore.Open(t.Context(), url, existing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	var of *store.Error
	require.ErrorAs(t, err, &of)
	n, err := connect(t, url).Exists(t.Context(), "{"+prefix+"}entries", "{"+prefix+"}keys").Result()
	require.NoError(t, err)
	require.Zero(t, n, "it has created nothing")

	_, err = store.Put(t.Context(), open(t, url, prefix), "k", []byte("v"), store.Always)
	require.NoError(t, err)
	s, err := redisstore.Open(t.Context(), url, existing)
	require.NoError(t, err)
	e, err := store.Get(t.Context(), s, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(e.Value))
	_, err = store.Put(t.Context(), s, "k", []byte("w"), store.IfRevision(e.Revision))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
