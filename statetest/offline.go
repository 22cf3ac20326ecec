package statetest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Offline makes a request through http.DefaultTransport fail the test unless
// the host is loopback, until the test ends. Transports that were made before
// are not changed. Clones of http.DefaultTransport that are made later refuse
// as it does. Offline changes a variable of the whole process: as with Setenv, a
// parallel test panics.
func Offline(t testing.TB) {
	t.Helper()
	t.Setenv("STATETEST_OFFLINE", "1") // panics if the test is parallel, and keeps it from becoming so
	guard := &networkGuard{t: t}
	before := http.DefaultTransport
	now := guard.transport(before)
	http.DefaultTransport = now
	t.Cleanup(func() {
		http.DefaultTransport = before
		guard.end()
		if idle, ok := now.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	})
}

// A networkGuard fails a test that leaves the machine.
type networkGuard struct {
	mu    sync.Mutex
	t     testing.TB
	ended bool
}

// end makes the guard silent: nothing may be reported after the test.
func (g *networkGuard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// check fails the test unless a host is loopback.
func (g *networkGuard) check(host string) error {
	if isLoopback(host) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.t.Errorf("statetest: the test reaches for %s, although it is Offline\n    %s", host, rerun(g.t))
	}
	return fmt.Errorf("statetest: %s is refused: the test is Offline", host)
}

func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// transport returns a guarded copy of a transport.
func (g *networkGuard) transport(before http.RoundTripper) http.RoundTripper {
	tr, ok := before.(*http.Transport)
	if !ok {
		return guardedTripper{g, before}
	}
	guarded := tr.Clone()
	guarded.Proxy = nil // it would hide the host
	dial, dialTLS := tr.DialContext, tr.DialTLSContext
	//lint:ignore SA1019 an old transport may dial in this way
	if old := tr.Dial; dial == nil && old != nil {
		dial = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	//lint:ignore SA1019 an old transport may dial in this way
	if old := tr.DialTLS; dialTLS == nil && old != nil {
		dialTLS = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	//lint:ignore SA1019 the functions with a context go first, but only if they are set
	guarded.Dial, guarded.DialTLS = nil, nil
	guarded.DialContext = g.dialer(dial)
	if dialTLS != nil {
		guarded.DialTLSContext = g.dialer(dialTLS)
	}
	return guarded
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns dial for loopback only.
func (g *networkGuard) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		if err := g.check(host); err != nil {
			return nil, err
		}
		return dial(ctx, network, addr)
	}
}

// guardedTripper guards a transport of another type.
type guardedTripper struct {
	guard *networkGuard
	next  http.RoundTripper
}

func (r guardedTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.guard.check(req.URL.Hostname()); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return r.next.RoundTrip(req)
}
