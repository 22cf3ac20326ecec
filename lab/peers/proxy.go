package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy stands between contenders and a server. It counts round trips and
// bytes, and can delay what it forwards.
type proxy struct {
	listener net.Listener
	target   string
	delay    time.Duration // in each direction

	trips, sent atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(target string, roundTrip time.Duration) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, target: target, delay: roundTrip / 2}
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// counts returns the round trips and the bytes sent so far, and zeros of a proxy
// that is nil.
func (p *proxy) counts() (trips, sent int64) {
	if p == nil {
		return 0, 0
	}
	return p.trips.Load(), p.sent.Load()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *proxy) accept() {
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
		// A round trip is a request after an answer. Requests that are sent
		// together, before an answer, are one.
		var asking atomic.Bool
		go p.forward(server, client, func(n int) {
			p.sent.Add(int64(n))
			if !asking.Swap(true) {
				p.trips.Add(1)
			}
		})
		go p.forward(client, server, func(int) { asking.Store(false) })
	}
}

type packet struct {
	due  time.Time
	data []byte
}

// forward reads without waiting for what it delays, so that the delay is one of
// distance and not of bandwidth.
func (p *proxy) forward(to, from net.Conn, count func(n int)) {
	defer to.Close()
	if p.delay == 0 {
		relay(to, from, count)
		return
	}
	packets := make(chan packet, 4096)
	go func() {
		defer close(packets)
		relay(sender(func(data []byte) error {
			packets <- packet{time.Now().Add(p.delay), append([]byte(nil), data...)}
			return nil
		}), from, count)
	}()
	for next := range packets {
		time.Sleep(time.Until(next.due))
		if _, err := to.Write(next.data); err != nil {
			_ = from.Close() // ends relay
			for range packets {
			}
			return
		}
	}
}

type sender func(data []byte) error

func (s sender) Write(data []byte) (int, error) { return len(data), s(data) }

func relay(to interface{ Write([]byte) (int, error) }, from net.Conn, count func(n int)) {
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			count(n)
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
