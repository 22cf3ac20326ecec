package workspace

import (
	"maps"
	"slices"
	"sync"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
)

// maxPolled is the number of heads that are read at once.
const maxPolled = 256

// poll finds the changes of heads in a store that does not report them. It reads the
// heads that somebody follows together: what they cost the store depends little on
// how many there are.
type poll struct {
	m *core

	mu       sync.Mutex
	followed map[string]*polled // by the key of the head
	runs     bool               // whether loop is under way
}

func newPoll(m *core) poll { return poll{m: m, followed: map[string]*polled{}} }

// polled is a head that somebody follows.
type polled struct {
	changed  func()         // is told of a change
	revision store.Revision // that was read last
}

// follow calls changed, which must return soon, when a head has changed, until leave
// is called. It may call it when the head has not. A head has one follower, the
// latest.
func (p *poll) follow(key string, changed func()) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := &polled{changed: changed}
	p.followed[key] = head
	if !p.runs {
		p.runs = p.m.background(p.loop)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.followed[key] == head {
			delete(p.followed, key)
		}
	}
}

// loop reads the heads in intervals, as long as somebody follows one.
func (p *poll) loop() {
	for backoff.Sleep(p.m.ctx, feedInterval) == nil {
		p.mu.Lock()
		keys := slices.Collect(maps.Keys(p.followed))
		p.runs = len(keys) > 0
		p.mu.Unlock()
		if len(keys) == 0 {
			return
		}
		for some := range slices.Chunk(keys, maxPolled) {
			p.look(some)
		}
	}
}

// look reads heads, and tells of those that have changed. Of heads that cannot be
// read it tells too: its follower reads it again, and knows which errors pass.
func (p *poll) look(keys []string) {
	ctx, cancel := p.m.withinStoreTimeout(p.m.ctx)
	defer cancel()
	entries, err := p.m.db.Get(ctx, keys...)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, key := range keys {
		head := p.followed[key]
		if head == nil || err == nil && head.revision == entries[i].Revision {
			continue
		}
		if err == nil {
			head.revision = entries[i].Revision
		}
		head.changed()
	}
}
