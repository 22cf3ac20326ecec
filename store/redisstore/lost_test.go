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

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

// proxy passes bytes between clients and a server until it cuts a connection.
type proxy struct {
	net.Listener
	mu       sync.Mutex
	up, down int // after how many bytes to or from the server a connection is cut; -1 is never
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: listener, up: -1, down: -1}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go p.pass(client, server, &p.up)
			go p.pass(server, client, &p.down)
		}
	}()
	return p
}

// dial connects to the proxy, whatever the address.
func (p *proxy) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, p.Addr().String())
}

// cut cuts connections after so many more bytes to the server or from it.
func (p *proxy) cut(up, down int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = up, down
}

// take returns how many of n bytes still pass, and whether the connection is cut then.
func (p *proxy) take(left *int, n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *left < 0 || n < *left {
		if *left >= 0 {
			*left -= n
		}
		return n, false
	}
	n, *left = *left, -1
	return n, true
}

func (p *proxy) pass(from, to net.Conn, left *int) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		n, cut := p.take(left, n)
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil || cut {
			return
		}
	}
}

// A connection is cut somewhere in a write. Whatever Put says then has to be true: nil
// means made, unknown means made or not, and anything else means not made. The clients
// try again by themselves, a cluster client even if it is told not to; that must not
// reach a write.
func TestCutConnection(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		url := shared(t)
		opts, err := redis.ParseURL(url)
		require.NoError(t, err)
		proxy := newProxy(t, opts.Addr)
		opts.Dialer, opts.PoolSize, opts.MaxRetries = proxy.dial, 1, 3
		cutWrites(t, proxy, redis.NewClient(opts), url, fresh(t, url))
	})
	t.Run("cluster", func(t *testing.T) {
		url := cluster(t).url
		opts, err := redis.ParseClusterURL(url)
		require.NoError(t, err)
		proxy := newProxy(t, opts.Addrs[0])
		opts.Dialer, opts.PoolSize, opts.MaxRetries = proxy.dial, 1, -1
		cutWrites(t, proxy, redis.NewClusterClient(opts), url, "state:")
	})
}

func cutWrites(t *testing.T, proxy *proxy, client redis.UniversalClient, url, prefix string) {
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
		_, err := s.Get(t.Context(), "ready") // the connection is there, so that it is the write that is cut
		require.ErrorIs(t, err, store.ErrNotFound)
		switch i % 3 {
		case 0:
			proxy.cut(rand.IntN(300), -1) // in the middle of the command
		case 1:
			proxy.cut(-1, 0) // before the answer
		case 2:
			proxy.cut(-1, -1)
		}
		revision, err := s.Put(t.Context(), "key", []byte(value), cond)
		proxy.cut(-1, -1)

		entry, found := direct.Get(t.Context(), "key")
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
			require.NoError(t, err, "an idle server and a condition that holds leave only those two")
		}
		before = entry.Revision
	}
	t.Log(outcomes)
	for _, outcome := range []string{"acknowledged", "unknown and made", "unknown and not made"} {
		require.NotZero(t, outcomes[outcome], outcome)
	}
}

// A server that hangs does not hold the caller longer than its context.
func TestServerThatHangs(t *testing.T) {
	server := start(t)
	s := open(t, server.url, "")
	require.NoError(t, connect(t, server.url).ClientPause(t.Context(), time.Hour).Err())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Put(ctx, "key", []byte("value"), store.Always)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.Get(ctx, "key")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
}

// Nothing is sent to a server that is gone.
func TestServerThatIsGone(t *testing.T) {
	server := start(t)
	opts, err := redis.ParseURL(server.url)
	require.NoError(t, err)
	opts.DialerRetries = 1
	client := redis.NewClient(opts)
	defer client.Close()
	s, err := redisstore.New(t.Context(), client, nil)
	require.NoError(t, err)
	server.kill()
	_, err = s.Put(t.Context(), "key", nil, store.Always) // on a connection from before
	require.Error(t, err)
	_, err = s.Put(t.Context(), "key", nil, store.Always)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
}

// A server with "appendfsync always" is killed while clients write.
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
					if _, err := s.Put(t.Context(), key, fmt.Append(nil, state[i].last), store.Always); err != nil {
						return
					}
					state[i].acknowledged = state[i].last
				}
			})
		}
		time.Sleep(100*time.Millisecond + rand.N(200*time.Millisecond))
		server.kill()
		writers.Wait()
		server.start(t)

		again := open(t, server.url, "")
		for i, key := range keys {
			entry, err := again.Get(t.Context(), key)
			require.NoError(t, err)
			require.Contains(t, []string{fmt.Sprint(state[i].acknowledged), fmt.Sprint(state[i].last)}, string(entry.Value))
			written = max(written, state[i].acknowledged)
		}
	}
	require.Positive(t, written)
}
