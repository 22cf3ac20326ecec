package natsstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
)

func TestLostConnection(t *testing.T) {
	servers(t, func(t *testing.T, url string) {
		for _, test := range []struct {
			name string
			drop testkit.Direction
			made bool
		}{
			{"before the request", testkit.ToServer, false},
			{"before the answer", testkit.ToClient, true},
		} {
			t.Run(test.name, func(t *testing.T) {
				ctx := t.Context()
				proxy, name := testkit.NewProxy(t, strings.TrimPrefix(url, "nats://")), bucket(t, url)
				s, direct := open(t, "nats://"+proxy.Addr(), name), open(t, url, name)
				_, err := s.Put(ctx, "gone", nil, store.Always)
				require.NoError(t, err)

				proxy.Drop(test.drop)
				result := make(chan error, 1)
				put, cancel := context.WithCancel(ctx)
				go func() {
					_, err := s.Put(put, "a", []byte("value"), store.Always)
					result <- err
				}()
				testkit.Until(func() bool { return proxy.Dropped() > 0 })
				proxy.Close()
				cancel()
				err = <-result
				require.ErrorIs(t, err, store.ErrUnknownOutcome)
				require.ErrorContains(t, err, `store: nats: put "a"`)
				require.NotContains(t, err.Error(), "value")
				entry, err := direct.Get(ctx, "a")
				if test.made {
					require.NoError(t, err)
					require.Equal(t, "value", string(entry.Value))
				} else {
					require.ErrorIs(t, err, store.ErrNotFound)
				}

				// The client notices soon that the connection is lost. Then nothing is
				// sent, not even after it is restored.
				testkit.Until(func() bool {
					_, err := s.Get(ctx, "a")
					return errors.Is(err, nats.ErrReconnectBufExceeded)
				})
				_, err = s.Put(ctx, "b", nil, store.Always)
				require.ErrorIs(t, err, nats.ErrReconnectBufExceeded)
				require.NotErrorIs(t, err, store.ErrUnknownOutcome)
				_, err = s.Get(ctx, "a")
				require.Error(t, err)
				require.NotErrorIs(t, err, store.ErrNotFound)
				require.Error(t, s.Delete(ctx, "gone", store.Always))
				_, err = direct.Get(ctx, "gone")
				require.NoError(t, err)
			})
		}
	})
}

func TestServerRestart(t *testing.T) {
	ctx := t.Context()
	opts := &server.Options{Host: "127.0.0.1", Port: -1, StoreDir: t.TempDir()}
	node := start(t, opts)[0]
	s := open(t, node.ClientURL(), "")
	want := map[string]store.Revision{}
	for i := range 100 {
		key := fmt.Sprintf("key/%d", i)
		revision, err := s.Put(ctx, key, []byte(key), store.IfAbsent)
		require.NoError(t, err)
		want[key] = revision
	}
	require.NoError(t, s.Delete(ctx, "key/7", store.IfRevision(want["key/7"])))
	changes := s.Watch(ctx, "key/")

	again := opts.Clone() // has the port of node
	stop(node)
	start(t, again)
	testkit.Until(func() bool { _, err := s.Get(ctx, "key/0"); return err == nil })
	gone := want["key/7"]
	delete(want, "key/7")
	have := map[string]store.Revision{}
	for entry, err := range s.Scan(ctx, "", "") {
		require.NoError(t, err)
		require.Equal(t, entry.Key, string(entry.Value))
		have[entry.Key] = entry.Revision
	}
	require.Equal(t, want, have)
	_, err := s.Put(ctx, "key/7", nil, store.IfRevision(gone))
	require.ErrorIs(t, err, store.ErrConflict)
	last, err := s.Put(ctx, "key/8", nil, store.IfRevision(want["key/8"]))
	require.NoError(t, err)
	for event, err := range changes { // the watch continues
		require.NoError(t, err)
		if event.Revision == last {
			break
		}
	}
}

// TestRevisionsOfRecreatedBucket deletes and creates a bucket, whose sequence numbers
// start again at 1.
func TestRevisionsOfRecreatedBucket(t *testing.T) {
	servers(t, func(t *testing.T, url string) {
		ctx, name := t.Context(), bucket(t, url)
		s := open(t, url, name)
		revision, err := s.Put(ctx, "a", []byte("old"), store.IfAbsent)
		require.NoError(t, err)
		require.NoError(t, streams(t, url).DeleteStream(ctx, "KV_"+name))
		_, err = s.Put(ctx, "a", nil, store.Always)
		require.ErrorIs(t, err, jetstream.ErrNoStreamResponse)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)

		again := open(t, url, name)
		_, err = again.Put(ctx, "a", []byte("new"), store.IfAbsent)
		require.NoError(t, err)
		_, err = s.Put(ctx, "a", nil, store.IfRevision(revision))
		require.ErrorIs(t, err, store.ErrConflict)
		require.ErrorIs(t, s.Delete(ctx, "a", store.IfRevision(revision)), store.ErrConflict)
		entry, err := s.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, "new", string(entry.Value))
	})
}

func TestSizes(t *testing.T) {
	servers(t, func(t *testing.T, url string) {
		ctx, name := t.Context(), bucket(t, url)
		s := open(t, url, name)
		largest := bytes.Repeat([]byte{0xff}, 1<<20-272)
		for _, cond := range []store.Condition{store.IfAbsent, store.Always} {
			revision, err := s.Put(ctx, "a", largest, cond)
			require.NoError(t, err)
			_, err = s.Put(ctx, "a", append(largest, 1), cond)
			require.ErrorIs(t, err, store.ErrTooLarge)
			entry, err := s.Get(ctx, "a")
			require.NoError(t, err)
			require.Equal(t, revision, entry.Revision)
			require.True(t, bytes.Equal(largest, entry.Value))
		}

		stream, err := streams(t, url).Stream(ctx, "KV_"+name)
		require.NoError(t, err)
		config := stream.CachedInfo().Config
		config.MaxMsgSize = 1000
		_, err = streams(t, url).UpdateStream(ctx, config)
		require.NoError(t, err)
		_, err = s.Put(ctx, "a", largest, store.Always)
		require.ErrorIs(t, err, store.ErrTooLarge)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	})
}

// TestScanOfManyKeys scans more keys than the 100 000 that a server lists at a time.
func TestScanOfManyKeys(t *testing.T) {
	servers(t, func(t *testing.T, url string) {
		ctx, name := t.Context(), bucket(t, url)
		s := open(t, url, name)
		js := streams(t, url)
		const keys = 100_100
		for i := range keys {
			_, err := js.PublishAsync(fmt.Sprintf("$KV.%s.%d", name, 1_000_000+i), make([]byte, 16), jetstream.WithStallWait(time.Hour))
			require.NoError(t, err)
		}
		<-js.PublishAsyncComplete()
		next := 100_000 - 100
		for entry, err := range s.Scan(ctx, "1", fmt.Sprint(1_000_000+next-1)) {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(1_000_000+next), entry.Key)
			next++
		}
		require.Equal(t, keys, next)
	})
}

func TestForeignEntries(t *testing.T) {
	ctx := t.Context()
	url := embedded(t).ClientURL()
	s := open(t, url, "")
	kv, err := streams(t, url).KeyValue(ctx, "state")
	require.NoError(t, err)
	_, err = kv.Put(ctx, "no/key", []byte("secret"))
	require.NoError(t, err)
	for entry, err := range s.Scan(ctx, "", "") {
		t.Fatal("yields a message whose subject is not that of a key", entry.Key, err)
	}
	_, err = kv.Put(ctx, "key", []byte("secret"))
	require.NoError(t, err)
	_, err = s.Get(ctx, "key")
	require.ErrorContains(t, err, "not written by this package")
	require.NotContains(t, err.Error(), "secret")
	for _, err := range s.Scan(ctx, "", "") {
		require.ErrorContains(t, err, "not written by this package")
	}
	_, err = s.Put(ctx, "key", []byte("ours"), store.Always)
	require.NoError(t, err)
	require.NoError(t, kv.Purge(ctx, "key"))
	_, err = s.Get(ctx, "key")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Put(ctx, "key", []byte("ours"), store.IfAbsent)
	require.NoError(t, err)
}
