package ledger

import (
	"context"
	"errors"

	"github.com/agentstate/state/store"
)

// Acknowledge returns when the store has acknowledged all that the head shows which
// was read last, or a later one. A store with Options.Confirm may take back what it
// only shows: a PostgreSQL whose commit has waited for its standbys in vain makes it
// visible all the same.
func (l *Ledger) Acknowledge(ctx context.Context) error {
	if !l.opts.Confirm || l.isAcknowledged(l.LastHead()) {
		return nil
	}
	leave, err := l.enterInTurn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	r := NewRetry(l.opts.Retry, l.opts.Failed, l.opts.Patience)
	r.pause = l.pause
	for again := true; again && err == nil; {
		err = r.Do(ctx, func(ctx context.Context) error {
			h, cond, err := l.readHead(ctx)
			if err == nil {
				again, err = l.acknowledge(ctx, h, cond)
			}
			return err
		})
		if again && err == nil {
			err = r.wait(ctx)
		}
	}
	return err
}

// acknowledge writes a head that was read once more, as it is, unless the store has
// acknowledged it: in the order of the log, that is behind the write that made it. It
// reports true if the head is to be read again.
func (l *Ledger) acknowledge(ctx context.Context, h *Head, cond store.Condition) (again bool, err error) {
	switch {
	case !l.opts.Confirm || h.Seq == 0 || l.isAcknowledged(h):
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
	l.noteAcknowledged(h)
	l.cacheHead(h, rev)
	return false, nil
}

func (l *Ledger) isAcknowledged(h *Head) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h != nil && l.acknowledged == h.mark()
}
