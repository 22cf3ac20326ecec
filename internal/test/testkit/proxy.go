package testkit

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// Direction is a direction in which bytes pass a Proxy.
type Direction int

const (
	ToServer Direction = iota
	ToClient
)

// Proxy is a TCP proxy between clients and a server. It loses the bytes and the
// connections that a test wants to lose, and counts round trips.
type Proxy struct {
	listener net.Listener
	target   string

	mu        sync.Mutex
	armed     bool // cut a connection after remaining bytes in direction
	direction Direction
	remaining int
	dropping  [2]bool
	dropFrom  string // drop from the request that contains it; "" for none
	dropped   int
	trips     int
	conns     []net.Conn
}

// NewProxy returns a proxy for the server at a TCP address. It is closed when
// the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target}
	t.Cleanup(p.Close)
	go p.accept()
	return p
}

// Addr returns the TCP address of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// CutAfter closes the next connection that passes n more bytes in a direction,
// after these n bytes.
func (p *Proxy) CutAfter(direction Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.direction, p.remaining = true, direction, n
}

// Disarm cancels CutAfter and reports whether it has cut a connection.
func (p *Proxy) Disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := !p.armed
	p.armed = false
	return cut
}

// Drop reads and discards all bytes in a direction from now on, and the end of
// connections.
func (p *Proxy) Drop(direction Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropping[direction] = true
}

// DropFrom is Drop in both directions from the request on that contains text,
// in upper or lower case.
func (p *Proxy) DropFrom(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropFrom = strings.ToLower(text)
}

// Dropped returns the number of bytes that Drop has discarded so far.
func (p *Proxy) Dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// RoundTrips returns how often a client has sent something after the server had
// been the last to send, or at first. Requests that are sent without waiting
// for an answer are one round trip.
func (p *Proxy) RoundTrips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

// Close closes all connections and accepts no more.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		asking := false // guarded by mu
		go p.forward(server, client, ToServer, &asking)
		go p.forward(client, server, ToClient, &asking)
	}
}

func (p *Proxy) forward(to, from net.Conn, direction Direction, asking *bool) {
	defer from.Close()
	defer p.passEnd(to, direction)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.count(direction, asking)
		}
		if direction == ToServer {
			p.lookFor(buffer[:n])
		}
		n, cut := p.admit(direction, n)
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil || cut {
			return
		}
	}
}

// passEnd closes a connection whose other side has ended. What drops bytes drops
// that as well: the other side does not learn of it.
func (p *Proxy) passEnd(to net.Conn, direction Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dropping[direction] {
		_ = to.Close()
	}
}

// count counts a round trip if bytes to the server are the first since an
// answer. asking is whether they are not.
func (p *Proxy) count(direction Direction, asking *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if direction == ToServer && !*asking {
		p.trips++
	}
	*asking = direction == ToServer
}

// lookFor begins to drop if a request contains the text of DropFrom.
func (p *Proxy) lookFor(request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropFrom != "" && strings.Contains(strings.ToLower(string(request)), p.dropFrom) {
		p.dropping = [2]bool{true, true}
	}
}

// admit returns how many of n bytes pass, and whether the connection is then
// cut.
func (p *Proxy) admit(direction Direction, n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dropping[direction]:
		p.dropped += n
		return 0, false
	case !p.armed || p.direction != direction:
		return n, false
	case n < p.remaining:
		p.remaining -= n
		return n, false
	}
	p.armed = false
	return p.remaining, true
}
