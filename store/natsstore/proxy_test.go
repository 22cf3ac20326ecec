package natsstore_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between clients and a server, and loses what it is told to.
type proxy struct {
	listener     net.Listener
	server       string
	loseRequests atomic.Bool
	loseAnswers  atomic.Bool
	mu           sync.Mutex
	conns        []net.Conn
}

func newProxy(t *testing.T, url string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, server: strings.TrimPrefix(url, "nats://")}
	t.Cleanup(p.close)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			go forward(server, client, &p.loseRequests)
			go forward(client, server, &p.loseAnswers)
		}
	}()
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// close also takes no new ones.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
}

func forward(to io.WriteCloser, from io.Reader, lose *atomic.Bool) {
	defer func() { _ = to.Close() }()
	for part := make([]byte, 64<<10); ; {
		n, err := from.Read(part)
		if err != nil {
			return
		}
		if lose.Load() {
			continue
		}
		if _, err := to.Write(part[:n]); err != nil {
			return
		}
	}
}
