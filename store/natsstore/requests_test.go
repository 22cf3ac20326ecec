package natsstore_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// expectRequests returns a function that requires that the server has got a
// number of requests with a subject since it was called last. A request too many
// may be seen by the next call: the server may answer before it tells others.
func expectRequests(t *testing.T, url, subject string) func(n int) {
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	sub, err := nc.SubscribeSync(subject)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func(n int) {
		t.Helper()
		for range n {
			_, err := sub.NextMsg(time.Minute)
			require.NoError(t, err)
		}
		require.NoError(t, nc.Flush())
		more, _, err := sub.Pending()
		require.NoError(t, err)
		require.Zero(t, more, "requests beyond %d", n)
	}
}

// A key that has never existed is put in one request. The marker of a deleted
// key, which the server takes for a message, is found out by a second one.
func TestRequestsOfIfAbsent(t *testing.T) {
	ctx := t.Context()
	url := embedded(t).ClientURL()
	name := bucket(t, url)
	s := open(t, url, name)
	writes := expectRequests(t, url, "$KV."+name+".>")
	reads := expectRequests(t, url, "$JS.API.STREAM.MSG.GET.KV_"+name)

	_, err := s.Put(ctx, "a", []byte("1"), store.IfAbsent)
	require.NoError(t, err)
	writes(1)
	reads(0)

	_, err = s.Put(ctx, "a", []byte("2"), store.IfAbsent)
	require.ErrorIs(t, err, store.ErrConflict)
	writes(1)
	reads(1)

	require.NoError(t, s.Delete(ctx, "a", store.Always))
	writes(1)
	_, err = s.Put(ctx, "a", []byte("3"), store.IfAbsent)
	require.NoError(t, err)
	writes(2)
	reads(1)
	e, err := s.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "3", string(e.Value))
}
