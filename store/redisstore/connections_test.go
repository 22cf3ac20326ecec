package redisstore_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

// connections returns the number of connections that the server has accepted.
func connections(t *testing.T, asker *redis.Client) int {
	t.Helper()
	info, err := asker.InfoMap(t.Context(), "stats").Result()
	require.NoError(t, err)
	n, err := strconv.Atoi(info["Stats"]["total_connections_received"])
	require.NoError(t, err)
	return n
}

// atOnce calls f from many goroutines, and holds the server until some wait for it.
func atOnce(t *testing.T, asker *redis.Client, f func(i int) error) {
	t.Helper()
	const callers = 100
	errs := make(chan error, callers)
	var begun sync.WaitGroup
	begun.Add(callers)
	require.NoError(t, asker.ClientPause(t.Context(), 300*time.Millisecond).Err())
	for i := range callers {
		go func() {
			begun.Done()
			errs <- f(i)
		}()
	}
	begun.Wait()
	for range callers {
		require.NoError(t, <-errs)
	}
}

// PoolSize bounds the connections of a store, which sends no pipelines: since
// go-redis 9.23.0 those have a pool of their own, which neither PoolSize nor
// MaxActiveConns bounds.
func TestConnectionsAreBounded(t *testing.T) {
	server := start(t)
	asker := connect(t, server.url)
	use := func(s *redisstore.Store) func(i int) error {
		return func(i int) error {
			key := strconv.Itoa(i)
			if _, err := store.Put(t.Context(), s, key, nil, store.Always); err != nil {
				return err
			}
			_, err := s.Get(t.Context(), key)
			for _, err := range s.List(t.Context(), "", "", true) {
				if err != nil {
					return err
				}
			}
			return err
		}
	}
	pipeline := func(client *redis.Client) func(i int) error {
		return func(i int) error {
			_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				return p.Set(t.Context(), "other"+strconv.Itoa(i), "", 0).Err()
			})
			return err
		}
	}
	t.Run("opened by its URL", func(t *testing.T) {
		before := connections(t, asker)
		s := open(t, server.url+"?pool_size=2", "")
		atOnce(t, asker, use(s))
		require.Equal(t, 2, connections(t, asker)-before)
	})
	for name, row := range map[string]struct {
		pipelinePool int
		most         int
	}{
		"client of a program with pipelines":               {0, 2 + redis.DefaultPipelinePoolSize},
		"client of a program without a pool for pipelines": {-1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := redis.ParseURL(server.url)
			require.NoError(t, err)
			opts.PoolSize, opts.MaxActiveConns, opts.PipelinePoolSize = 2, 2, row.pipelinePool
			client := redis.NewClient(opts)
			defer client.Close()
			before := connections(t, asker)
			s, err := redisstore.New(t.Context(), client, nil)
			require.NoError(t, err)
			atOnce(t, asker, use(s))
			require.Equal(t, 2, connections(t, asker)-before, "of the store")
			testkit.Until(func() bool {
				atOnce(t, asker, pipeline(client))
				require.LessOrEqual(t, connections(t, asker)-before, row.most)
				return connections(t, asker)-before == row.most
			})
		})
	}
}
