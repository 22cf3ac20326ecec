package ledger

import (
	"context"

	"github.com/agentstate/state/store"
)

// The batch that makes a thread, or makes it again after it was deleted, replaces
// the head of the user part as well. So when that head says that the user was
// deleted, no thread is made any more: whoever is about to make one has a
// condition that does not hold. Other writes of a thread do not touch it.

// touched is the head of the user part that is replaced with that of a thread.
type touched struct {
	ledger *Ledger
	head   *Head
	cond   store.Condition
}

// touchUserPart returns ErrUserDeleted if the transition makes a workspace of a
// user who was deleted. If it makes a thread, the head of the user part is to be
// replaced by one that says the same.
func (c *commit) touchUserPart(ctx context.Context, was *Head, t *transition) error {
	if was.Exists() && !c.replace || !t.Deleted.IsZero() {
		return nil
	}
	if was.Closed {
		return ErrUserDeleted
	}
	if c.userPart == nil {
		return nil
	}
	l, err := c.userPart()
	if err != nil {
		return err
	}
	h, cond, err := l.readHead(ctx)
	switch {
	case err != nil:
		return err
	case h.Closed:
		return ErrUserDeleted
	}
	h = h.clone()
	h.sign(c.op + attemptText(c.attempts))
	t.userPart = &touched{l, h, cond}
	return nil
}

func (u *touched) write() store.Write {
	l := u.ledger
	value := l.sealer.seal(l.key, l.key, u.head.encode())
	u.head.keyID = l.sealer.keyID()
	return store.Write{Key: l.key, Value: value, Cond: u.cond}
}

// written notes that the head was written.
func (u *touched) written(rev store.Revision) {
	u.ledger.cacheHead(u.head, rev)
	u.ledger.seen.note(u.head, writeMark{})
	u.ledger.observe(u.head, nil)
}

// closing says what the head of a workspace that is deleted keeps: see Head.
type closing struct{ closed, sweeping bool }

// Close deletes the workspace for good: until Expire, those who would make it
// again get ErrUserDeleted. In the user part, sweeping lists the user in Running
// until Swept, and no thread of the user is made from now on.
func (l *Ledger) Close(ctx context.Context, sweeping bool) (*Head, error) {
	return l.delete(ctx, closing{closed: true, sweeping: sweeping}, func(h *Head) bool {
		return h.Closed && (h.Sweeping || !sweeping)
	})
}

// Swept says that the user who was deleted has no threads any more.
func (l *Ledger) Swept(ctx context.Context) error {
	_, err := l.commitHead(ctx, func(t *transition) error {
		t.Sweeping = false
		return nil
	})
	return err
}
