package natsstore_test

import (
	"io/fs"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/natsstore"
)

func TestOpenExisting(t *testing.T) {
	url := embedded(t).ClientURL()
	name := bucket(t, url)
	existing := &natsstore.Options{Bucket: name, Existing: true}
	_, err := natsstore.Open(t.Context(), url, existing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	var of *store.Error
	require.ErrorAs(t, err, &of)
	_, err = streams(t, url).Stream(t.Context(), "KV_"+name)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "it has created nothing")

	_, err = open(t, url, name).Put(t.Context(), "k", []byte("v"), store.Always)
	require.NoError(t, err)
	s, err := natsstore.Open(t.Context(), url, existing)
	require.NoError(t, err)
	e, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(e.Value))
	require.NoError(t, s.Close())
}
