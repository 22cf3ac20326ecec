package testkit_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
)

// echo returns the address of a server that returns what it receives.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, proxy *testkit.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// exchange sends a text and returns as many bytes as come back, up to its length.
func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	answer := make([]byte, len(text))
	n, _ := io.ReadFull(conn, answer)
	return string(answer[:n])
}

func TestProxyPassesBytes(t *testing.T) {
	proxy := testkit.NewProxy(t, echo(t))
	text := strings.Repeat("text", 100_000)
	require.Equal(t, text, exchange(t, dial(t, proxy), text))
}

func TestProxyCutsOneConnection(t *testing.T) {
	proxy := testkit.NewProxy(t, echo(t))
	for _, direction := range []testkit.Direction{testkit.ToServer, testkit.ToClient} {
		conn := dial(t, proxy)
		require.Equal(t, "warm", exchange(t, conn, "warm"))
		proxy.CutAfter(direction, 3)
		answer := exchange(t, conn, "text")
		require.True(t, strings.HasPrefix("tex", answer), answer)
		require.True(t, proxy.Disarm())
		require.Equal(t, "text", exchange(t, dial(t, proxy), "text"))
	}
	proxy.CutAfter(testkit.ToServer, 100)
	require.Equal(t, "text", exchange(t, dial(t, proxy), "text"))
	require.False(t, proxy.Disarm())
	require.Equal(t, "text", exchange(t, dial(t, proxy), "text"))
}

func TestProxyDropsBytes(t *testing.T) {
	for _, direction := range []testkit.Direction{testkit.ToServer, testkit.ToClient} {
		proxy := testkit.NewProxy(t, echo(t))
		conn := dial(t, proxy)
		require.Equal(t, "warm", exchange(t, conn, "warm"))
		proxy.Drop(direction)
		_, err := io.WriteString(conn, "text")
		require.NoError(t, err)
		testkit.Until(func() bool { return proxy.Dropped() == len("text") })
		proxy.Close()
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		_, err = net.Dial("tcp", proxy.Addr())
		require.Error(t, err)
	}
}

func TestProxyCountsRoundTrips(t *testing.T) {
	proxy := testkit.NewProxy(t, echo(t))
	require.Zero(t, proxy.RoundTrips())
	first, second := dial(t, proxy), dial(t, proxy)
	for range 3 {
		exchange(t, first, "text")
	}
	exchange(t, second, "text")
	require.Equal(t, 4, proxy.RoundTrips())
}
