package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
)

// faultyStore is a store in memory with all faults that a store may have. Each
// call is a scheduling point.
type faultyStore struct {
	x         *explorer
	entries   map[string]revised
	old       map[string][]revised // replaced and deleted values, by key
	revisions int
	late      []request // requests that may take effect at any time, or never
	past      []photo   // of the whole store, after each write of the head
}

type revised struct {
	value    []byte
	revision store.Revision
	step     int // when it was written, or deleted
	absent   bool
	mark     mark // of a head
}

// mark identifies a head.
type mark struct {
	seq   uint64
	nonce string
}

// request is a batch of writes, with the call that makes them.
type request struct {
	writes []store.Write
	call   *call
}

type photo struct {
	entries   map[string]revised
	revisions int
	world     *world
}

var (
	errUnknown = fmt.Errorf("faulty: %w", store.ErrUnknownOutcome)
	errLost    = errors.New("faulty: connection lost")
)

func newFaultyStore(x *explorer) *faultyStore {
	return &faultyStore{x: x, entries: map[string]revised{}, old: map[string][]revised{}}
}

// make makes all writes or none, as a store without faults does.
func (s *faultyStore) make(r request) error {
	for _, w := range r.writes {
		if e, found := s.entries[w.Key]; !w.Cond.Holds(e.revision, found) {
			s.x.count["conflicts"]++
			return store.ErrConflict
		}
	}
	for _, w := range r.writes {
		e, found := s.entries[w.Key]
		if found {
			e.step = s.x.step
			s.old[w.Key] = append(s.old[w.Key], e)
		} else if !w.Delete {
			s.old[w.Key] = append(s.old[w.Key], revised{absent: true, step: s.x.step})
		}
		if w.Delete {
			delete(s.entries, w.Key)
			continue
		}
		s.revisions++
		n := s.revisions
		if s.x.fault == "restarts" && !found {
			n = 0
		} else if s.x.fault == "restarts" {
			_, _ = fmt.Sscan(string(e.revision), &n)
			n++
		}
		s.entries[w.Key] = revised{value: slices.Clone(w.Value), revision: store.Revision(fmt.Sprint(n)), step: s.x.step}
	}
	s.x.ghost.saw(r)
	return nil
}

// failOver loses the latest requests as a whole.
func (s *faultyStore) failOver() {
	if len(s.past) < 2 {
		return
	}
	n := max(0, len(s.past)-2-s.x.rng.IntN(4))
	to := s.past[n]
	s.past = s.past[:n+1]
	s.entries = maps.Clone(to.entries)
	s.late = nil // connections do not survive a failover
	if s.x.fault == "again" {
		s.revisions = to.revisions
	}
	s.x.ghost.back(to.world)
	s.x.count["failovers"]++
	s.x.logf("the store fails over to seq %d", to.world.seq)
}

func (s *faultyStore) photograph(w *world) {
	s.past = append(s.past, photo{maps.Clone(s.entries), s.revisions, w})
}

// land lets one of the late requests take effect.
func (s *faultyStore) land() {
	i := s.x.rng.IntN(len(s.late))
	r := s.late[i]
	s.late = slices.Delete(s.late, i, i+1)
	err := s.make(r)
	s.x.logf("late %s: %v", describe(r), err)
	if err == nil {
		s.x.count["landed"]++
	}
}

// sign notes the mark of the head that was written.
func (s *faultyStore) sign(seq uint64, nonce string) {
	e := s.entries[headOf]
	e.mark = mark{seq, nonce}
	s.entries[headOf] = e
}

// names returns the keys in the order of their creation, so that a schedule
// does not depend on random names.
func (s *faultyStore) names() []string {
	return slices.SortedFunc(maps.Keys(s.entries), func(a, b string) int {
		return cmp.Compare(s.entries[a].number(), s.entries[b].number())
	})
}

func (e revised) number() (n int) {
	_, _ = fmt.Sscan(string(e.revision), &n)
	return n
}

// port is the store as a process sees it.
type port struct{ *faultyStore }

var (
	_ store.Store   = port{}
	_ store.Batcher = batchPort{}
)

type batchPort struct{ port }

func (p batchPort) Batch(_ context.Context, writes []store.Write) ([]store.Revision, error) {
	if err := p.write(writes); err != nil {
		return nil, err
	}
	revisions := make([]store.Revision, len(writes))
	for i, w := range writes {
		revisions[i] = p.entries[w.Key].revision // "" for a deletion
	}
	return revisions, nil
}

func (p port) Get(_ context.Context, key string) (store.Entry, error) {
	p.x.running.point()
	if p.x.chance(p.x.rates.lostRead) {
		p.x.logf("%v: get %s: lost", p.x.running, short(key))
		return store.Entry{}, errLost
	}
	e, found := p.entries[key]
	if old, stale := p.staleRead(key, found); stale {
		e, found = old, !old.absent
		p.x.count["stale"]++
		p.x.logf("%v: get %s: stale", p.x.running, short(key))
	}
	if !found {
		return store.Entry{}, store.ErrNotFound
	}
	if key == headOf {
		a := p.x.running
		a.behind = e.mark.seq < a.process.seen.seq || e.mark.seq == a.process.seen.seq && e.mark != a.process.seen
		a.process.sees(e)
	}
	return store.Entry{Key: key, Value: slices.Clone(e.value), Revision: e.revision}, nil
}

// staleRead returns an earlier value of a key. A ledger reads missing data
// again a few times, so stale reads must not follow one another for long.
func (p port) staleRead(key string, found bool) (revised, bool) {
	old := p.old[key]
	if p.x.variant.failover || len(old) == 0 || !p.x.chance(p.x.rates.stale) {
		p.x.running.stale = 0
		return revised{}, false
	}
	if p.x.running.stale++; p.x.running.stale > 2 {
		p.x.running.stale = 0
		return revised{}, false
	}
	if key == headOf {
		return old[max(0, len(old)-1-p.x.rng.IntN(8))], true
	}
	last := old[len(old)-1]
	return last, !found || last.step > p.x.step-30
}

func (p port) Put(_ context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	if err := p.write([]store.Write{{Key: key, Value: value, Cond: cond}}); err != nil {
		return "", err
	}
	return p.entries[key].revision, nil
}

func (p port) Delete(_ context.Context, key string, cond store.Condition) error {
	return p.write([]store.Write{{Key: key, Delete: true, Cond: cond}})
}

func (p port) write(writes []store.Write) error {
	x, a := p.x, p.x.running
	r := request{slices.Clone(writes), a.call}
	for i := range r.writes {
		r.writes[i].Value = slices.Clone(r.writes[i].Value)
	}
	for _, w := range r.writes {
		if w.Key == headOf && a.behind {
			x.violated("%v writes although it has seen a later head", a)
		}
	}
	p.x.running.point()
	switch {
	case x.chance(x.rates.drop):
		x.count["unknown"]++
		x.logf("%v: %s: dropped", p.x.running, describe(r))
		return errUnknown
	case x.chance(x.rates.late):
		x.count["unknown"]++
		x.logf("%v: %s: late", p.x.running, describe(r))
		p.late = append(p.late, r)
		return errUnknown
	}
	err := p.make(r)
	x.logf("%v: %s: %v", p.x.running, describe(r), err)
	if x.chance(x.rates.crash) {
		p.x.running.crash()
	}
	if x.chance(x.rates.lostReply) {
		x.count["unknown"]++
		x.logf("%v: reply lost", p.x.running)
		return errUnknown
	}
	if err == nil {
		for _, w := range r.writes {
			if w.Key == headOf && !w.Delete {
				a.process.sees(p.entries[w.Key])
			}
		}
	}
	return err
}

func (p port) Scan(_ context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for _, key := range p.names() {
			if !strings.HasPrefix(key, prefix) || key <= after || p.x.chance(p.x.rates.missed) {
				continue
			}
			e, found := p.entries[key]
			if found && !yield(store.Entry{Key: key, Value: e.value, Revision: e.revision}, nil) {
				return
			}
			if p.x.chance(0.2) {
				p.x.running.point()
			}
			if p.x.chance(p.x.rates.lostRead) {
				yield(store.Entry{}, errLost)
				return
			}
		}
	}
}

func (p port) Durability() store.Durability { return store.DurabilityProcess }
func (p port) Close() error                 { return nil }

func short(key string) string {
	if key == headOf {
		return "head"
	}
	name := strings.TrimPrefix(key, headOf+blobInfix)
	return "blob " + name[12:min(len(name), 21)]
}

func describe(r request) string {
	var b strings.Builder
	fmt.Fprint(&b, r.call)
	for _, w := range r.writes {
		verb := " put "
		if w.Delete {
			verb = " delete "
		}
		b.WriteString(verb + short(w.Key))
	}
	return b.String()
}
