package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/storetest"
)

func TestStore(t *testing.T) {
	url := shared(t)
	storetest.Run(t, func(t *testing.T) func() store.Store {
		prefix := fresh(t, url)
		return func() store.Store { return open(t, url, prefix) }
	})
}

// TestCluster uses a cluster of one node, which routes as a larger one does.
func TestCluster(t *testing.T) {
	server := cluster(t)
	storetest.Run(t, func(t *testing.T) func() store.Store {
		prefix := "test:" + string(store.NewRevision()) + ":"
		return func() store.Store { return open(t, server.url, prefix) }
	})
}

func cluster(t *testing.T) *private {
	t.Helper()
	server := start(t, "--cluster-enabled", "yes")
	client := connect(t, server.url)
	require.NoError(t, client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	testkit.Until(func() bool {
		info, err := client.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	return server
}

func TestProcesses(t *testing.T) {
	url := shared(t)
	address := url + "#" + fresh(t, url)
	t.Run("linearizable", func(t *testing.T) { storetest.Processes(t, address) })
	t.Run("killed clients", func(t *testing.T) { storetest.Kill(t, address, 20) })
}

func TestPrefixesAreSeparate(t *testing.T) {
	url := shared(t)
	one, two := open(t, url, fresh(t, url)), open(t, url, fresh(t, url))
	_, err := store.Put(t.Context(), one, "key", []byte("value"), store.Always)
	require.NoError(t, err)
	_, err = store.Get(t.Context(), two, "key")
	require.ErrorIs(t, err, store.ErrNotFound)
	for entry := range two.List(t.Context(), "", "", true) {
		t.Errorf("a scan sees %q of another prefix", entry.Key)
	}
}

func TestCloseKeepsTheClientOfTheCaller(t *testing.T) {
	url := shared(t)
	client := connect(t, url)
	s, err := redisstore.New(t.Context(), client, &redisstore.Options{Prefix: fresh(t, url)})
	require.NoError(t, err)
	_, err = store.Put(t.Context(), s, "key", nil, store.IfAbsent)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = store.Get(t.Context(), s, "key")
	require.ErrorIs(t, err, store.ErrClosed)
	require.NoError(t, client.Ping(t.Context()).Err())
}

// TestFlushedScripts flushes the script cache of the server, as a restart does.
func TestFlushedScripts(t *testing.T) {
	server := start(t)
	s, client := open(t, server.url, ""), connect(t, server.url)
	for range 3 {
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		_, err := store.Put(t.Context(), s, "key", []byte("value"), store.Always)
		require.NoError(t, err)
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		for entry, err := range s.List(t.Context(), "", "", true) {
			require.NoError(t, err)
			require.Equal(t, "key", entry.Key)
		}
	}
}

// TestForeignKeys stores a foreign value under one of the two Redis keys of a store,
// and checks that failed writes do not change the other.
func TestForeignKeys(t *testing.T) {
	for foreign, other := range map[string]string{
		"{state:}entries": "{state:}keys",
		"{state:}keys":    "{state:}entries",
	} {
		t.Run(foreign, func(t *testing.T) {
			server := start(t)
			s, client := open(t, server.url, ""), connect(t, server.url)
			_, err := store.Put(t.Context(), s, "key", []byte("value"), store.Always)
			require.NoError(t, err)
			require.NoError(t, client.Set(t.Context(), foreign, "foreign", 0).Err())
			before, err := client.Dump(t.Context(), other).Result()
			require.NoError(t, err)

			_, put := store.Put(t.Context(), s, "another", []byte("value"), store.Always)
			for _, err := range []error{put, store.Delete(t.Context(), s, "key", store.Always)} {
				require.ErrorContains(t, err, "WRONGTYPE")
				require.NotErrorIs(t, err, store.ErrUnknownOutcome)
			}
			after, err := client.Dump(t.Context(), other).Result()
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestTooLargeValues(t *testing.T) {
	server := start(t, "--proto-max-bulk-len", "1mb")
	s := open(t, server.url, "")
	_, err := store.Put(t.Context(), s, "key", make([]byte, 1<<20), store.Always)
	require.NoError(t, err)
	_, err = store.Put(t.Context(), s, "large", make([]byte, 1<<20+1), store.Always)
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = s.Batch(t.Context(), []store.Write{{Key: "a", Value: make([]byte, 1<<20)}, {Key: "b", Value: []byte("1")}})
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = store.Get(t.Context(), s, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// TestFullServer checks that a full server refuses writes and keeps its entries.
func TestFullServer(t *testing.T) {
	server := start(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
	s := open(t, server.url, "")
	made := 0
	for {
		_, err := store.Put(t.Context(), s, fmt.Sprint("key", made), make([]byte, 100_000), store.IfAbsent)
		if err != nil {
			require.True(t, redis.IsOOMError(err), err)
			require.NotErrorIs(t, err, store.ErrUnknownOutcome)
			break
		}
		made++
		require.Less(t, made, 1000)
	}
	require.Positive(t, made)
	found := 0
	for entry, err := range s.List(t.Context(), "", "", true) {
		require.NoError(t, err)
		require.Len(t, entry.Value, 100_000)
		found++
	}
	require.Equal(t, made, found)
}
