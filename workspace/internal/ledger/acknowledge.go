package ledger

import (
	"context"
	"errors"

	"github.com/agentstate/state/store"
)

// A store with Options.Confirm may take back what it only shows: a PostgreSQL whose
// commit has waited for its standbys in vain makes it visible all the same. What it has
// acknowledged it keeps, and so what was written before that.

// Confirm returns when the store has acknowledged what a head says of a message. It
// reports true if that is to be looked up again, in a head that comes behind or, if
// the store has taken this one back, in its place.
func (l *Ledger) Confirm(ctx context.Context, h *Head, f Fate) (again bool, err error) {
	if !l.opts.Confirm || l.seen.isKept(h) || h.keeps(f) {
		return false, nil
	}
	leave, err := l.enterInTurn(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	r := l.newRetry(l.opts.Retry)
	var now *Head
	for again := true; again && err == nil; {
		err = r.Do(ctx, func(ctx context.Context) error {
			read, cond, err := l.readHead(ctx)
			if now = read; err == nil {
				again, err = l.acknowledge(ctx, now, cond)
			}
			return err
		})
		if again && err == nil {
			err = r.wait(ctx)
		}
	}
	return err == nil && now.mark() != h.mark(), err
}

// acknowledge writes a head that was read once more, as it is, unless the store has
// acknowledged it: in the order of the log, that is behind the write that made it. It
// reports true if the head is to be read again.
func (l *Ledger) acknowledge(ctx context.Context, h *Head, cond store.Condition) (again bool, err error) {
	switch {
	case !l.opts.Confirm || h.Seq == 0 || l.seen.isKept(h):
		return false, nil
	case l.seen.isPast(h):
		return true, nil
	}
	rev, err := store.Put(ctx, l.db, l.key, l.sealer.seal(l.key, l.key, h.encode()), cond)
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrUnknownOutcome):
		return true, nil
	case err != nil:
		return false, err
	}
	l.seen.noteKept(h)
	l.cacheHead(h, rev)
	return false, nil
}

// keptWrite is what a ledger knows of the writes that the store has acknowledged.
type keptWrite struct {
	head Head // the newest one of this process, with what identifies it
	// epoch and version are those of the newest record, also of other processes.
	epoch, version uint64
}

// isKept reports whether the store has acknowledged to this process the write of a head,
// or one behind it.
func (s *seenHead) isKept(h *Head) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.Seq > 0 && s.kept.head.nonceAt(h.Seq) == h.nonce()
}

// noteKept notes that the store has acknowledged the write of a head.
func (s *seenHead) noteKept(h *Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.kept.head.Age().After(h.Age()) {
		s.kept.head = Head{Epoch: h.Epoch, Seq: h.Seq, Ops: h.Ops}
		s.noteVersion(h.Epoch, h.Version)
	}
}

// noteVersion notes that the store has acknowledged the records of an epoch up to a
// version. The caller holds mu.
func (s *seenHead) noteVersion(epoch, version uint64) {
	if k := &s.kept; epoch > k.epoch || epoch == k.epoch && version > k.version {
		k.epoch, k.version = epoch, version
	}
}

// takeBack makes a head the newest one that was seen, although it does not follow that,
// and reports true, if the store has only shown what is missing.
func (s *seenHead) takeBack(h *Head) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.kept
	if k.head.Age().After(h.Age()) || h.isFork(k.head.mark()) || h.Epoch < k.epoch ||
		h.Epoch == k.epoch && h.Version < k.version {
		return false
	}
	s.replace(h)
	return true
}

// maxBehind is the number of records behind the last acknowledged one up to which a
// head notes that.
const maxBehind = 998

// noteBase notes in the successor of a head up to which version the store has
// acknowledged the records.
func (t *transition) noteBase(of *Head) {
	version, known := of.keptVersion()
	if t.ledger.seen.isKept(of) {
		version, known = of.Version, true
	}
	t.Kept = 0
	if known && t.Epoch == of.Epoch && version <= t.Version && t.Version-version <= maxBehind {
		t.Kept = t.Version - version + 1
	}
}

// keptVersion returns the version up to which the store has acknowledged the records,
// as far as the head says so.
func (h *Head) keptVersion() (version uint64, known bool) { return h.Version + 1 - h.Kept, h.Kept > 0 }

// keeps reports whether the store has acknowledged what the head says of a message,
// as far as the head says so: there is an acknowledged record of its end, or of its
// run.
func (h *Head) keeps(f Fate) bool {
	version, known := h.keptVersion()
	switch {
	case !known:
		return false
	case f.Place == PlaceEnded:
		return f.Version > 0 && f.Version <= version
	default:
		return f.Place == PlaceRunning && h.Run != nil && h.Run.Message.ID == f.ID && h.Run.Base.Version < version
	}
}
