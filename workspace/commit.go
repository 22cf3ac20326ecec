package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
)

// commitHead replaces the head by the result of apply, exactly once. It is the
// only way to write a head. An error means that nothing was changed, unless it
// is store.ErrUnknownOutcome.
func (l *ledger) commitHead(ctx context.Context, apply transitionFunc) (*head, error) {
	c := commit{ledger: l, op: newID(), prepared: map[string]preparedBlob{}, delay: newBackoff()}
	for {
		h, err := c.attempt(ctx, apply)
		if err != nil {
			return nil, c.inDoubt(err)
		}
		if h != nil {
			return h, nil
		}
	}
}

// commit is one operation with all its attempts.
type commit struct {
	*ledger
	op       string // its id, by which an attempt finds out that an earlier one took effect
	prepared map[string]preparedBlob
	missing  missingBlobs
	delay    backoff.Backoff

	conflicts int
	unknown   int      // the number of attempts of unknown outcome
	openSeqs  []uint64 // the heads that these attempts replace, as long as they may take effect
}

// attempt reads the head and tries to replace it. It returns the head that the
// operation has written, or neither a head nor an error if it is to be tried
// again.
func (c *commit) attempt(ctx context.Context, apply transitionFunc) (*head, error) {
	h, cond, err := c.readHead(ctx)
	if err != nil {
		return nil, err
	}
	if h.hasOp(c.op) {
		return h, nil
	}
	if err := c.closeAttempts(h); err != nil {
		return nil, err
	}
	t := &transition{
		head: h, ctx: ctx, reader: &c.contentReader,
		base: h.position(), baseSeq: h.Seq, prepared: c.prepared,
	}
	if err := apply(t); err != nil {
		if c.missing.retry(err, h) {
			return nil, c.wait(ctx)
		}
		return nil, err
	}
	if c.batch == nil && len(t.newBlobs) > 0 {
		return nil, c.prepareBlobs(ctx, t)
	}
	if c.seenMark().Seq > t.baseSeq { // another goroutine has seen a newer head
		return nil, c.wait(ctx)
	}
	h.Seq++
	h.Nonce = newID()
	h.Ops = append(h.Ops, appliedOp{c.op, h.Seq})
	h.Ops = h.Ops[max(0, len(h.Ops)-maxOps):]
	rev, err := c.replaceHead(ctx, t, cond)
	switch {
	case err == nil:
		c.cacheHead(h, rev)
		c.headWritten(ctx, t)
		return h, nil
	case errors.Is(err, store.ErrConflict):
		if c.conflicts++; c.conflicts < 3 { // a few conflicts are no contention
			return nil, nil
		}
	case errors.Is(err, store.ErrUnknownOutcome):
		c.openSeqs = append(c.openSeqs, t.baseSeq)
		if c.unknown++; c.unknown == maxUnknown {
			return nil, err
		}
	default:
		return nil, err
	}
	return nil, c.wait(ctx)
}

// closeAttempts forgets the attempts that can no longer take effect because the
// head that they replace is gone. They did not take effect, since h does not
// have the operation, if h would still know it.
func (c *commit) closeAttempts(h *head) error {
	var open []uint64
	for _, seq := range c.openSeqs {
		switch {
		case seq == h.Seq:
			open = append(open, seq)
		case !h.hasOpsSince(seq + 1):
			return fmt.Errorf("%w: %s: too many other writes since", store.ErrUnknownOutcome, c.key)
		}
	}
	c.openSeqs = open
	return nil
}

// inDoubt returns err, as store.ErrUnknownOutcome if an attempt may still take
// effect.
func (c *commit) inDoubt(err error) error {
	if len(c.openSeqs) == 0 || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

func (c *commit) wait(ctx context.Context) error { return c.pause(ctx, c.delay.Delay()) }

// prepareBlobs writes the blobs of a transition, for the next attempt.
func (c *commit) prepareBlobs(ctx context.Context, t *transition) error {
	if err := c.putBlobs(ctx, t.newBlobs); err != nil {
		return err
	}
	for _, b := range t.newBlobs {
		r := b.ref()
		c.prepared[r.Hash] = preparedBlob{r, t.baseSeq + blobLead, t.base.Chain}
	}
	return nil
}

// replaceHead writes the head of a transition. If the store is a Batcher, the
// blobs are written and deleted with it.
func (l *ledger) replaceHead(
	ctx context.Context, t *transition, cond store.Condition,
) (store.Revision, error) {
	data, err := t.encode()
	if err != nil {
		return "", err
	}
	data = l.sealer.seal(l.key, l.key, data)
	if l.batch == nil {
		return l.db.Put(ctx, l.key, data, cond)
	}
	var writes []store.Write
	for _, b := range t.newBlobs {
		key := l.blobKey(b.name)
		sealed := l.sealer.seal(l.key, key, b.data)
		writes = append(writes, store.Write{Key: key, Value: sealed, Cond: store.IfAbsent})
	}
	writes = append(writes, store.Write{Key: l.key, Value: data, Cond: cond})
	for _, name := range t.droppedBlobs {
		writes = append(writes, store.Write{Key: l.blobKey(name), Delete: true})
	}
	revs, err := l.batch.Batch(ctx, writes)
	if err != nil {
		return "", err
	}
	return revs[len(t.newBlobs)], nil
}

// headWritten does what follows the write of a head. Its errors do not matter:
// the write has taken effect.
func (l *ledger) headWritten(ctx context.Context, t *transition) {
	l.noteSeen(t.head, Mark{})
	if l.batch == nil {
		for _, name := range t.droppedBlobs {
			_ = l.db.Delete(ctx, l.blobKey(name), store.Always) // collect finds the rest
		}
	}
	if l.anchor != nil {
		_ = l.anchor.Advance(ctx, l.user, Mark{t.Seq, t.Nonce}) // the next write advances it
	}
}
