package natsstore_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/natsstore"
)

func TestUnsuitableBuckets(t *testing.T) {
	ctx := t.Context()
	url := embedded(t).ClientURL()
	js := streams(t, url)
	for _, test := range []struct {
		name   string
		change func(*jetstream.StreamConfig)
		opts   natsstore.Options
		want   string // "" if the bucket is suitable
	}{
		{name: "suitable", change: func(*jetstream.StreamConfig) {}},
		{name: "in memory", change: func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{name: "full", change: func(c *jetstream.StreamConfig) { c.MaxBytes = 64 << 20 }},
		{name: "expires", change: func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, want: "expire after 1h0m0s"},
		{name: "evicts by size", change: func(c *jetstream.StreamConfig) {
			c.MaxBytes, c.Discard = 1<<20, jetstream.DiscardOld
		}, want: "evicts"},
		{name: "evicts by number", change: func(c *jetstream.StreamConfig) {
			c.MaxMsgs, c.Discard = 10, jetstream.DiscardOld
		}, want: "evicts"},
		{name: "direct gets", change: func(c *jetstream.StreamConfig) { c.AllowDirect = true }, want: "direct gets"},
		{name: "history", change: func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, want: "keeps 5 values"},
		{name: "first value only", change: func(c *jetstream.StreamConfig) {
			c.DiscardNewPerSubject = true
		}, want: "refuses to replace"},
		{name: "queue", change: func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, want: "after they are read"},
		{name: "sealed", change: func(c *jetstream.StreamConfig) { c.Sealed = true }, want: "cannot be written"},
		{name: "replicas", change: func(*jetstream.StreamConfig) {}, opts: natsstore.Options{Replicas: 3}, want: "1 replicas, not 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := bucket(t, url)
			config := jetstream.StreamConfig{
				Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
			}
			sealed := config
			test.change(&config)
			sealed.Sealed, config.Sealed = config.Sealed, false
			_, err := js.CreateStream(ctx, config)
			require.NoError(t, err)
			if sealed.Sealed {
				_, err = js.UpdateStream(ctx, sealed)
				require.NoError(t, err)
			}
			test.opts.Bucket = name
			s, err := natsstore.Open(ctx, url, &test.opts)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				require.ErrorContains(t, err, name)
				return
			}
			require.NoError(t, err)
			require.Equal(t, store.DurabilityServer, s.Durability())
			require.NoError(t, s.Close())
		})
	}
}

func TestOpen(t *testing.T) {
	ctx := t.Context()
	t.Run("no server", func(t *testing.T) {
		_, err := natsstore.Open(ctx, "nats://127.0.0.1:1", nil)
		require.ErrorIs(t, err, nats.ErrNoServers)
	})
	t.Run("errors contain no password", func(t *testing.T) {
		for _, bad := range []string{"nats://me:se%cret@127.0.0.1:1", "nats://me:secret@127.0.0.1:1", "nats://me:sec/ret@h"} {
			_, err := natsstore.Open(ctx, bad, nil)
			require.Error(t, err)
			require.NotRegexp(t, "se%?c", err.Error())
		}
	})
	t.Run("context ends", func(t *testing.T) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = silent.Close() }()
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err = natsstore.Open(ctx, "nats://"+silent.Addr().String(), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("without JetStream", func(t *testing.T) {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
		require.NoError(t, err)
		s.Start()
		defer stop(s)
		testkit.Until(func() bool { return s.ReadyForConnections(time.Second) })
		_, err = natsstore.Open(ctx, s.ClientURL(), nil)
		require.ErrorContains(t, err, "jetstream not enabled")
	})
	t.Run("bad name", func(t *testing.T) {
		_, err := natsstore.Open(ctx, embedded(t).ClientURL(), &natsstore.Options{Bucket: "a.b"})
		require.ErrorIs(t, err, jetstream.ErrInvalidBucketName)
	})
	t.Run("New does not close its connection", func(t *testing.T) {
		nc, err := nats.Connect(embedded(t).ClientURL())
		require.NoError(t, err)
		defer nc.Close()
		s, err := natsstore.New(ctx, nc, nil)
		require.NoError(t, err)
		_, err = s.Put(ctx, "a", nil, store.Always)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.True(t, nc.IsConnected())
		_, err = s.Get(ctx, "a")
		require.ErrorIs(t, err, store.ErrClosed)
		again, err := natsstore.New(ctx, nc, &natsstore.Options{Bucket: "state"})
		require.NoError(t, err)
		_, err = again.Get(ctx, "a")
		require.NoError(t, err)
	})
}

// TestFailover checks that a cluster keeps acknowledged writes when its leader is lost.
func TestFailover(t *testing.T) {
	ctx := t.Context()
	var routes []*url.URL
	var nodes []*server.Options
	for _, name := range []string{"a", "b", "c"} {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		routes = append(routes, &url.URL{Scheme: "nats", Host: free.Addr().String()})
		nodes = append(nodes, &server.Options{
			ServerName: name, Host: "127.0.0.1", Port: -1, StoreDir: t.TempDir(),
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: free.Addr().(*net.TCPAddr).Port},
		})
		require.NoError(t, free.Close())
	}
	for _, node := range nodes {
		node.Routes = routes
	}
	cluster := start(t, nodes...)
	servers := cluster[0].ClientURL() + "," + cluster[1].ClientURL() + "," + cluster[2].ClientURL()
	var s *natsstore.Store
	testkit.Until(func() bool {
		var err error
		s, err = natsstore.Open(ctx, servers, &natsstore.Options{Replicas: 3})
		return err == nil
	})
	defer func() { _ = s.Close() }()
	require.Equal(t, store.DurabilityFailover, s.Durability())

	// A call may fail while the cluster elects a leader.
	var revision store.Revision
	testkit.Until(func() bool {
		var err error
		revision, err = s.Put(ctx, "a", []byte("before"), store.Always)
		return err == nil
	})
	for _, node := range cluster {
		if node.JetStreamIsStreamLeader("$G", "KV_state") {
			stop(node)
			break // another may lead by now, and one alone has no majority
		}
	}
	testkit.Until(func() bool {
		entry, err := s.Get(ctx, "a")
		return err == nil && string(entry.Value) == "before" && entry.Revision == revision
	})
	// ErrConflict means that an earlier attempt of unknown outcome was made.
	testkit.Until(func() bool {
		_, err := s.Put(ctx, "a", []byte("after"), store.IfRevision(revision))
		return err == nil || errors.Is(err, store.ErrConflict)
	})
	testkit.Until(func() bool {
		entry, err := s.Get(ctx, "a")
		return err == nil && string(entry.Value) == "after"
	})
}
