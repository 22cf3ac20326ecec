package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// proxy passes bytes between clients and a server, until it cuts a connection.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	armed bool
	up    bool // cut what goes to the server, else what comes from it
	left  int  // bytes that still pass
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{listener: listener, target: target}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return p
}

func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	over := make(chan struct{}, 2)
	go func() { p.copy(server, client, true); over <- struct{}{} }()
	go func() { p.copy(client, server, false); over <- struct{}{} }()
	<-over
}

func (p *proxy) copy(to, from net.Conn, up bool) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		n, cut := p.passes(n, up)
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil || cut {
			return
		}
	}
}

// passes returns how many of n bytes pass, and whether the connection is cut then.
func (p *proxy) passes(n int, up bool) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || p.up != up {
		return n, false
	}
	if n < p.left {
		p.left -= n
		return n, false
	}
	p.armed = false
	return p.left, true
}

// arm cuts the next connection after so many bytes in a direction.
func (p *proxy) arm(up bool, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.up, p.left = true, up, left
}

// disarm reports whether a connection was cut.
func (p *proxy) disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := !p.armed
	p.armed = false
	return cut
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) }

func TestPostgresCut(t *testing.T) {
	s := newServer(t, "postgres")
	for _, mode := range []string{"cache_statement", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { testCut(t, s, s.with(t, "default_query_exec_mode", mode)) })
	}
}

func TestMySQLCut(t *testing.T) {
	s := newServer(t, "mysql")
	testCut(t, s, s.url)
}

// testCut cuts the connection at a random byte of a write, and compares what the
// write returned to what is there. Each round has keys of its own, so that one
// that the server makes late is seen as well.
func testCut(t *testing.T, s *server, dsn string) {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	p := newProxy(t, u.Host)
	u.Host = p.listener.Addr().String()
	table := s.table(t)
	direct, through := s.open(t, s.url, table), s.open(t, u.String(), table)

	const rounds = 400
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]cutRound, rounds)
	made, not, cuts := 0, 0, 0 // of unknown outcomes, those that were made or not
	for i := range all {
		r := &all[i]
		r.prepare(t, random, direct, i)
		if random.IntN(4) > 0 { // else it may have to connect first
			_, _ = through.Get(t.Context(), "warm")
		}
		if up := random.IntN(3) > 0; up {
			p.arm(true, random.IntN(len(r.writes[0].Value)+400))
		} else {
			p.arm(false, random.IntN(150))
		}
		r.make(t.Context(), through)
		if p.disarm() {
			cuts++
		}
		happened := r.check(t, direct)
		switch {
		case isUnknown(r.err) && happened:
			made++
		case isUnknown(r.err):
			not++
		}
	}
	time.Sleep(100 * time.Millisecond)
	for _, r := range all {
		r.check(t, direct)
	}
	t.Logf("%d rounds, %d cut, %d outcomes unknown: %d made, %d not", rounds, cuts, made+not, made, not)
	require.Greater(t, cuts, rounds/4)
	require.Positive(t, made)
	require.Positive(t, not)
}

// cutRound is one call that makes writes, whose conditions hold.
type cutRound struct {
	name   string
	writes []store.Write
	before []string // the values before, "" for none
	err    error
}

func (r *cutRound) prepare(t *testing.T, random *rand.Rand, direct store.Store, i int) {
	t.Helper()
	value := make([]byte, 1+random.IntN(2000))
	if random.IntN(10) == 0 {
		value = make([]byte, 100_000)
	}
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	key := fmt.Sprintf("key %d", i)
	old := fmt.Sprintf("old %d", i)
	revision, err := direct.Put(t.Context(), key, []byte(old), store.IfAbsent)
	require.NoError(t, err)
	switch random.IntN(5) {
	case 0:
		r.name, r.before = "overwrite", []string{old}
		r.writes = []store.Write{{Key: key, Value: value}}
	case 1:
		r.name, r.before = "compare and set", []string{old}
		r.writes = []store.Write{{Key: key, Value: value, Cond: store.IfRevision(revision)}}
	case 2:
		r.name, r.before = "create", []string{""}
		r.writes = []store.Write{{Key: key + " new", Value: value, Cond: store.IfAbsent}}
	case 3:
		r.name, r.before = "delete", []string{old}
		r.writes = []store.Write{{Key: key, Delete: true, Cond: store.IfRevision(revision)}}
	default:
		r.name, r.before = "batch", []string{old, ""}
		r.writes = []store.Write{
			{Key: key, Value: value, Cond: store.IfRevision(revision)},
			{Key: key + " new", Value: value, Cond: store.IfAbsent},
		}
	}
}

func (r *cutRound) make(ctx context.Context, s store.Batcher) {
	w := r.writes[0]
	switch {
	case len(r.writes) > 1:
		_, r.err = s.Batch(ctx, r.writes)
	case w.Delete:
		r.err = s.Delete(ctx, w.Key, w.Cond)
	default:
		_, r.err = s.Put(ctx, w.Key, w.Value, w.Cond)
	}
}

// check reports whether the writes were made, and fails if the error told
// otherwise.
func (r *cutRound) check(t *testing.T, direct store.Store) bool {
	t.Helper()
	var made, not int
	for i, w := range r.writes {
		value := ""
		entry, err := direct.Get(t.Context(), w.Key)
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(t, err)
			value = string(entry.Value)
		}
		switch value {
		case string(w.Value):
			made++
		case r.before[i]:
			not++
		default:
			require.Fail(t, "the value is neither the old nor the new", r.name)
		}
	}
	// Nobody else writes: a conflict would be with the call's own first try.
	require.NotErrorIs(t, r.err, store.ErrConflict, "%s: %d writes made, %d not", r.name, made, not)
	require.NotErrorIs(t, r.err, context.DeadlineExceeded, r.name)
	require.True(t, made == 0 || not == 0, "%s: %d writes made, %d not", r.name, made, not)
	switch {
	case r.err == nil:
		require.Zero(t, not, "%s: acknowledged, and not made", r.name)
	case !isUnknown(r.err):
		require.Zero(t, made, "%s: made, in spite of %v", r.name, r.err)
	}
	return made > 0
}
