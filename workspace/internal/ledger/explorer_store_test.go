package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
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
	marks     map[store.Revision]mark // of heads
	late      []request               // requests that may take effect at any time, or never
	// expiredLate says that one of them has removed the head, maybe after another
	// process wrote the blob of a head that it never wrote.
	expiredLate bool
	past        []photo // of the whole store, after each write of the head
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
	seq     uint64
	ops     string
	epoch   uint64
	deleted bool // the head says that the workspace was deleted
}

// isBehind reports whether a head is not the one seen, nor may follow it.
func (m mark) isBehind(seen mark) bool {
	return m.isOlder(seen) || !m.isNewEpoch(seen) && m.isFork(seen)
}

// isOlder reports whether a head comes before the one seen.
func (m mark) isOlder(seen mark) bool {
	return !m.isNewEpoch(seen) && (m.epoch < seen.epoch || m.seq < seen.seq) // an epoch ends with an expiry
}

// isNewEpoch reports whether a head follows a deletion that was seen: the
// deleted workspace may have expired.
func (m mark) isNewEpoch(seen mark) bool { return seen.deleted && m.epoch > seen.epoch }

// isFork reports whether the operations of a head show that it does not follow
// the one seen.
func (m mark) isFork(seen mark) bool {
	end := len(m.ops) - int(m.seq-seen.seq)*nonceLen
	return m.seq >= seen.seq && seen.seq > 0 && end >= nonceLen && m.ops[end-nonceLen:end] != seen.nonce()
}

func (m mark) nonce() string { return m.ops[max(0, len(m.ops)-nonceLen):] }

// absent is the mark of a head that is not there.
var absent = mark{epoch: math.MaxUint64}

// request is a batch of writes, with the call that makes them, after it has read
// a head.
type request struct {
	writes []store.Write
	call   *call
	ending store.Revision // of the holder record that it ends
	read   mark
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
	return &faultyStore{x: x, entries: map[string]revised{}, old: map[string][]revised{}, marks: map[store.Revision]mark{}}
}

// make makes all writes or none, as a store without faults does.
func (s *faultyStore) make(r request) error {
	for _, w := range r.writes {
		if e, found := s.entries[w.Key]; !w.Cond.Holds(e.revision, found) {
			s.x.count["conflicts"]++
			return store.ErrConflict
		}
	}
	if last := r.writes[len(r.writes)-1]; last.Key == headOf && last.Delete && s.x.fault == "" && !s.mayExpire() {
		return errLost
	}
	for _, w := range r.writes {
		e, found := s.entries[w.Key]
		if found {
			e.step = s.x.step
			s.old[w.Key] = append(s.old[w.Key], e)
		} else if !w.Delete {
			s.old[w.Key] = append(s.old[w.Key], revised{absent: true, step: s.x.step})
		}
		if isHolderKey(w.Key) {
			s.x.ghost.sawHolder(r, w, e, found)
		}
		if w.Delete {
			if delete(s.entries, w.Key); w.Key == headOf {
				s.old[headOf] = nil // no read is as stale as that
			}
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
	if s.x.variant.shows {
		s.x.checkTold(to.world)
	}
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

// checkTold requires that a failover to a world loses nothing of which a call has told
// a success.
func (x *explorer) checkTold(to *world) {
	now := x.ghost.world
	for _, c := range x.calls {
		if c.result == made && slices.Contains(now.calls, c) && !slices.Contains(to.calls, c) {
			x.violated("%v was acknowledged, and is lost", c)
		}
	}
	for id := range x.told {
		if x.ghost.where(now, id) != "" && x.ghost.where(to, id) == "" {
			x.violated("%s was called a duplicate, and is lost", id)
		}
	}
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
	if last := r.writes[len(r.writes)-1]; err == nil && last.Key == headOf && last.Delete {
		s.expiredLate = true
	}
	if err == nil {
		s.x.count["landed"]++
	}
}

// sign notes the mark of the head that was written.
func (s *faultyStore) sign(h *sight) {
	e := s.entries[headOf]
	e.mark = mark{h.Seq, h.Ops, h.Epoch, h.Deleted != ""}
	s.entries[headOf] = e
	s.marks[e.revision] = e.mark
}

// isBehind reports whether an actor whose process has seen another head writes
// under a condition that does not follow it. What it has read last may be
// behind; what its process remembers is only older.
func (s *faultyStore) isBehind(a *actor, cond store.Condition) bool {
	for rev, m := range s.marks {
		if cond != store.Always && cond.Holds(rev, true) && m != a.read {
			return m.isOlder(a.process.seen)
		}
	}
	return a.isBehind()
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

var _ store.Store = port{}

// Get reads several entries one after the other. They are no snapshot.
func (p port) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		var err error
		if entries[i], err = p.get(ctx, key); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (p port) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if err := p.write(ctx, writes); err != nil {
		return nil, err
	}
	revisions := make([]store.Revision, len(writes))
	for i, w := range writes {
		revisions[i] = p.entries[w.Key].revision // "" for a deletion
	}
	return revisions, nil
}

// get returns an entry without a revision for a key that does not exist.
func (p port) get(ctx context.Context, key string) (store.Entry, error) {
	p.x.running.point()
	if ctx.Err() != nil {
		return store.Entry{}, context.Cause(ctx)
	}
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
		e.mark = absent
	}
	if a := p.x.running; key == headOf {
		a.read, a.before = e.mark, a.process.seen
		if !a.accepting && !p.x.variant.shows { // else it does not count until it is acknowledged
			a.process.sees(e)
		}
	}
	if !found {
		return store.Entry{Key: key}, nil
	}
	return store.Entry{Key: key, Value: slices.Clone(e.value), Revision: e.revision}, nil
}

// maxStale is the number of stale reads of an actor between two writes. A ledger
// reads missing data again a few times only, and that of a head which is
// replaced meanwhile is missing, too.
const maxStale = maxRereads - 1

// staleRead returns an earlier value of a key.
func (p port) staleRead(key string, found bool) (revised, bool) {
	old := p.old[key]
	if p.x.variant.failover || isHolderKey(key) || len(old) == 0 || !p.x.chance(p.x.rates.stale) {
		return revised{}, false
	}
	if p.x.running.stale == maxStale {
		return revised{}, false
	}
	p.x.running.stale++
	if key == headOf && slices.ContainsFunc(p.x.actors, (*actor).expires) {
		return revised{}, false // no read is as stale as that
	}
	if key == headOf {
		return old[max(0, len(old)-1-p.x.rng.IntN(8))], true
	}
	last := old[len(old)-1]
	return last, !found || last.step > p.x.step-15
}

func (p port) write(ctx context.Context, writes []store.Write) error {
	x, a := p.x, p.x.running
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.stale = 0
	r := request{slices.Clone(writes), a.call, a.ending, a.read}
	for i := range r.writes {
		r.writes[i].Value = slices.Clone(r.writes[i].Value)
	}
	for _, w := range r.writes {
		if w.Key != headOf {
			continue
		}
		if !a.accepting && p.isBehind(a, w.Cond) {
			x.violated("%v replaces a head although it has seen a later one", a)
		}
		a.checkTurn(r.call)
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
			if w.Key == headOf && x.variant.shows { // what was written before is acknowledged by that
				for _, before := range p.past {
					for _, id := range x.ghost.heldBy(before.world) {
						x.kept[id] = true
					}
				}
				p.past = p.past[len(p.past)-1:]
			}
			switch {
			case w.Key == headOf && w.Delete:
				a.process.seen = mark{}
			case w.Key == headOf && p.entries[w.Key].mark.epoch > a.process.seen.epoch:
				a.process.seen = p.entries[w.Key].mark // also a write that a failover has let through
			case w.Key == headOf:
				a.process.sees(p.entries[w.Key])
			}
			if w.Key == headOf && x.variant.shows { // a deletion that it was shown since does not count
				a.process.seen.deleted = true
			}
		}
	}
	return err
}

// mayMiss reports whether a list may miss entries, as one by a process that was
// cut off long ago does. Expire relies on its lists.
func (a *actor) mayMiss() bool { return a.call == nil || a.call.kind != "expire" }

func (p port) List(_ context.Context, prefix, after string, _ bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for _, key := range p.names() {
			if !strings.HasPrefix(key, prefix) || key <= after || p.x.running.mayMiss() && p.x.chance(p.x.rates.missed) {
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
	switch {
	case key == headOf:
		return "head"
	case isHolderKey(key):
		return "holder"
	case strings.HasPrefix(key, "agent:busy:"):
		return strings.TrimPrefix(key, "agent:")
	}
	name := strings.TrimPrefix(key, blobsOf)
	return "blob " + name[min(len(name), 12):min(len(name), 21)]
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
