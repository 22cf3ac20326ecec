package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

func TestUnsuitableServers(t *testing.T) {
	t.Run("evicts", func(t *testing.T) {
		for _, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl"} {
			server := start(t, "--maxmemory", "64mb", "--maxmemory-policy", policy)
			_, err := redisstore.Open(t.Context(), server.url, nil)
			require.ErrorIs(t, err, store.ErrInvalid)
			require.ErrorContains(t, err, policy)
		}
	})
	t.Run("replica", func(t *testing.T) {
		master := start(t)
		replica := start(t, "--replicaof", strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(
			master.url, "redis://"), "/0"), ":", " "))
		_, err := redisstore.Open(t.Context(), replica.url, nil)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "replica")
	})
	t.Run("becomes a replica", func(t *testing.T) {
		master, server := start(t), start(t)
		s := open(t, server.url, "")
		host := strings.Split(strings.TrimSuffix(strings.TrimPrefix(master.url, "redis://"), "/0"), ":")
		require.NoError(t, connect(t, server.url).ReplicaOf(t.Context(), host[0], host[1]).Err())
		_, err := store.Put(t.Context(), s, "key", nil, store.Always)
		require.ErrorContains(t, err, "READONLY")
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	})
	t.Run("takes the permission away", func(t *testing.T) {
		server := start(t)
		s := open(t, server.url, "")
		client := connect(t, server.url)
		require.NoError(t, client.ACLSetUser(t.Context(), "default", "resetkeys").Err())
		_, err := store.Put(t.Context(), s, "key", nil, store.Always)
		require.ErrorIs(t, err, store.ErrRefused)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
		_, err = store.Get(t.Context(), s, "key")
		require.ErrorIs(t, err, store.ErrRefused)
	})
	t.Run("not running", func(t *testing.T) {
		server := start(t)
		server.kill()
		_, err := redisstore.Open(t.Context(), server.url, nil)
		require.Error(t, err)
	})
}

func TestUnsuitableClients(t *testing.T) {
	url := shared(t)
	opts, err := redis.ParseURL(url)
	require.NoError(t, err)
	caching := *opts
	caching.ClientSideCacheConfig = &redis.ClientSideCacheConfig{}
	for name, client := range map[string]redis.UniversalClient{
		"cache":         redis.NewClient(&caching),
		"ring":          redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": opts.Addr}}),
		"read replicas": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{opts.Addr}, RouteRandomly: true}),
	} {
		t.Run(name, func(t *testing.T) {
			defer client.Close()
			_, err := redisstore.New(t.Context(), client, nil)
			require.ErrorIs(t, err, store.ErrInvalid)
		})
	}
}

func TestOpenInvalidArguments(t *testing.T) {
	for name, url := range map[string]string{
		"scheme":   "http://user:secret@localhost",
		"port":     "redis://user:secret@localhost:port",
		"database": "redis://localhost/secret",
		"slash":    "redis://user:sec/secret@localhost",
		"empty":    "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := redisstore.Open(t.Context(), url, nil)
			require.ErrorIs(t, err, store.ErrInvalid)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	t.Run("prefix", func(t *testing.T) {
		_, err := redisstore.Open(t.Context(), shared(t), &redisstore.Options{Prefix: "a{b}"})
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := redisstore.Open(ctx, shared(t), nil)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestDurability(t *testing.T) {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	for _, test := range []struct {
		name string
		args []string
		want store.Durability
	}{
		{"in memory", nil, store.DurabilityServer},
		{"synced every second", []string{"--appendonly", "yes", "--appendfsync", "everysec"}, store.DurabilityServer},
		{"synced always", always, store.DurabilityPower},
		{"synced except during snapshots", append(always, "--no-appendfsync-on-rewrite", "yes"), store.DurabilityServer},
		{"hidden settings", append(always, "--rename-command", "CONFIG", ""), store.DurabilityServer},
		{"off, with the policy set", []string{"--appendonly", "no", "--appendfsync", "always"}, store.DurabilityServer},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := start(t, test.args...)
			require.Equal(t, test.want, open(t, server.url, "").Durability())
		})
	}
}
