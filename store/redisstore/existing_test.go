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

	_, err = open(t, url, prefix).Put(t.Context(), "k", []byte("v"), store.Always)
	require.NoError(t, err)
	s, err := redisstore.Open(t.Context(), url, existing)
	require.NoError(t, err)
	e, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(e.Value))
	_, err = s.Put(t.Context(), "k", []byte("w"), store.IfRevision(e.Revision))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
