package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

// dialer returns a dial function that connects to the proxy, whatever the address.
func dialer(proxy *testkit.Proxy) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, proxy.Addr())
	}
}

// TestCutConnection cuts connections during writes and checks the result of Put: nil
// means made, ErrUnknownOutcome means made or not, any other error means not made. The
// clients resend commands, a cluster client even with MaxRetries -1; the store must
// prevent this for writes.
func TestCutConnection(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		url := shared(t)
		opts, err := redis.ParseURL(url)
		require.NoError(t, err)
		proxy := testkit.NewProxy(t, opts.Addr)
		opts.Dialer, opts.PoolSize, opts.MaxRetries = dialer(proxy), 1, 3
		cutWrites(t, proxy, redis.NewClient(opts), url, fresh(t, url))
	})
	t.Run("cluster", func(t *testing.T) {
		url := cluster(t).url
		opts, err := redis.ParseClusterURL(url)
		require.NoError(t, err)
		proxy := testkit.NewProxy(t, opts.Addrs[0])
		opts.Dialer, opts.PoolSize, opts.MaxRetries = dialer(proxy), 1, -1
		cutWrites(t, proxy, redis.NewClusterClient(opts), url, "state:")
	})
}

func cutWrites(t *testing.T, proxy *testkit.Proxy, client redis.UniversalClient, url, prefix string) {
	t.Helper()
	defer client.Close()
	s, err := redisstore.New(t.Context(), client, &redisstore.Options{Prefix: prefix})
	require.NoError(t, err)
	direct := open(t, url, prefix)

	outcomes := map[string]int{}
	var before store.Revision
	for i := range 300 {
		cond := store.IfAbsent
		if before != "" {
			cond = store.IfRevision(before)
		}
		value := fmt.Sprint(i)
		_, err := store.Get(t.Context(), s, "ready") // connects, so that the cut hits the write
		require.ErrorIs(t, err, store.ErrNotFound)
		switch i % 3 {
		case 0:
			proxy.CutAfter(testkit.ToServer, rand.IntN(300)) // within the command
		case 1:
			proxy.CutAfter(testkit.ToClient, 0) // before the reply
		}
		revision, err := store.Put(t.Context(), s, "key", []byte(value), cond)
		proxy.Disarm()

		entry, found := store.Get(t.Context(), direct, "key")
		if errors.Is(found, store.ErrNotFound) {
			found = nil
		}
		require.NoError(t, found)
		made := entry.Revision != before
		switch {
		case err == nil:
			outcomes["acknowledged"]++
			require.Equal(t, revision, entry.Revision)
			require.Equal(t, value, string(entry.Value))
		case errors.Is(err, store.ErrUnknownOutcome):
			require.NotErrorIs(t, err, store.ErrConflict)
			if made {
				outcomes["unknown and made"]++
				require.Equal(t, value, string(entry.Value))
			} else {
				outcomes["unknown and not made"]++
			}
		default:
			require.NoError(t, err, "the server is idle and the condition holds")
		}
		before = entry.Revision
	}
	t.Log(outcomes)
	for _, outcome := range []string{"acknowledged", "unknown and made", "unknown and not made"} {
		require.NotZero(t, outcomes[outcome], outcome)
	}
}

// TestPausedServer checks that a server that hangs does not delay a call beyond its
// context. Without the context, the calls would succeed after the pause.
func TestPausedServer(t *testing.T) {
	server := start(t)
	s := open(t, server.url, "")
	require.NoError(t, connect(t, server.url).ClientPause(t.Context(), time.Hour).Err())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := store.Put(ctx, s, "key", []byte("value"), store.Always)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = store.Get(ctx, s, "key")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
}

// TestDeadServer checks that the outcome is known if nothing was sent.
func TestDeadServer(t *testing.T) {
	server := start(t)
	opts, err := redis.ParseURL(server.url)
	require.NoError(t, err)
	opts.DialerRetries = 1
	client := redis.NewClient(opts)
	defer client.Close()
	s, err := redisstore.New(t.Context(), client, nil)
	require.NoError(t, err)
	server.kill()
	_, err = store.Put(t.Context(), s, "key", nil, store.Always) // on the old connection
	require.Error(t, err)
	_, err = store.Put(t.Context(), s, "key", nil, store.Always)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
}

// TestKilledServer kills a server with "appendfsync always" while clients write.
func TestKilledServer(t *testing.T) {
	server := start(t, "--appendonly", "yes", "--appendfsync", "always")
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	type attempt struct{ acknowledged, last int }
	state := make([]attempt, len(keys))
	written := 0
	for range 5 {
		s := open(t, server.url, "")
		require.Equal(t, store.DurabilityPower, s.Durability())
		var writers sync.WaitGroup
		for i, key := range keys {
			writers.Go(func() {
				for {
					state[i].last++
					if _, err := store.Put(t.Context(), s, key, fmt.Append(nil, state[i].last), store.Always); err != nil {
						return
					}
					state[i].acknowledged = state[i].last
				}
			})
		}
		time.Sleep(100*time.Millisecond + rand.N(200*time.Millisecond)) // at a random moment
		server.kill()
		writers.Wait()
		server.start(t)

		reopened := open(t, server.url, "")
		for i, key := range keys {
			entry, err := store.Get(t.Context(), reopened, key)
			require.NoError(t, err)
			require.Contains(t, []string{fmt.Sprint(state[i].acknowledged), fmt.Sprint(state[i].last)}, string(entry.Value))
			written = max(written, state[i].acknowledged)
		}
	}
	require.Positive(t, written)
}

// panickyHook is a hook of a client that panics.
type panickyHook struct{}

func (panickyHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (panickyHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { panic("no luck") }
}
func (panickyHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { panic("no luck") }
}

// A panic of the client comes to the caller, who may recover it: it does not end
// the process from a goroutine of the store.
func TestPanicOfTheClient(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	client.AddHook(panickyHook{})
	require.PanicsWithValue(t, "no luck", func() { _, _ = redisstore.New(t.Context(), client, nil) })
}
