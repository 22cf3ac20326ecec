package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/storetest"
)

// TestMain is also the main function of worker processes. An address is a URL, # and
// a prefix.
func TestMain(m *testing.M) {
	logging.Disable() // tests use servers that have not started or have stopped
	os.Exit(storetest.Main(m, func(address string) (store.Store, error) {
		url, prefix, _ := strings.Cut(address, "#")
		return redisstore.Open(context.Background(), url, &redisstore.Options{Prefix: prefix})
	}))
}

// missing skips a test whose requirement is missing, or fails it if STATE_TEST_REQUIRE
// demands it.
func missing(t testing.TB, what string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), "redis") {
		t.Fatal(what)
	}
	t.Skip("NOT TESTED: " + what)
}

// shared returns the URL of the server that all tests share.
func shared(t testing.TB) string {
	t.Helper()
	url := os.Getenv("STATE_TEST_REDIS")
	if url == "" {
		url = "redis://127.0.0.1:6379/0"
	}
	if err := ping(t, url); err != nil {
		missing(t, "no Redis answers; start redis-server, or set STATE_TEST_REDIS to the URL of one")
	}
	return url
}

func ping(t testing.TB, url string) error {
	t.Helper()
	client := connect(t, url)
	return client.Ping(t.Context()).Err()
}

// connect returns a client of the driver.
func connect(t testing.TB, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	require.NoError(t, err)
	opts.DialerRetries = 1
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// fresh returns a prefix without entries, and removes its entries after the test.
func fresh(t testing.TB, url string) string {
	t.Helper()
	prefix := "test:" + string(store.NewRevision()) + ":"
	client := connect(t, url)
	t.Cleanup(func() {
		require.NoError(t, client.Unlink(context.Background(), "{"+prefix+"}entries", "{"+prefix+"}keys").Err())
	})
	return prefix
}

func open(t testing.TB, url, prefix string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, &redisstore.Options{Prefix: prefix})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// private is a server that one test uses.
type private struct {
	url  string
	args []string
	cmd  *exec.Cmd
}

// start starts a server with an empty directory.
func start(t testing.TB, args ...string) *private {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		missing(t, "redis-server is not installed")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	p := &private{
		url: fmt.Sprintf("redis://127.0.0.1:%d/0", port),
		args: append([]string{"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", t.TempDir(),
			"--save", "", "--daemonize", "no"}, args...),
	}
	p.start(t)
	t.Cleanup(func() { p.kill() })
	return p
}

func (p *private) start(t testing.TB) {
	t.Helper()
	p.cmd = exec.Command("redis-server", p.args...)
	require.NoError(t, p.cmd.Start())
	testkit.Until(func() bool { return ping(t, p.url) == nil })
}

// kill ends the server with SIGKILL.
func (p *private) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
