package ledger

import "context"

// The batch that makes a thread, or makes it again after it was deleted, replaces
// the head of the user part as well. So when that head says that the user was
// deleted, no thread is made any more: whoever is about to make one has a
// condition that does not hold. Other writes of a thread do not touch it.

// touchUserPart lets the operation replace the head of the user part, if need be by
// one that says the same, if its transition makes a thread.
func (c *commit) touchUserPart(t *transition) error {
	c.touches = c.userPart != nil && t.makes && t.Deleted.IsZero()
	if !c.touches || c.other != nil {
		return nil
	}
	l, err := c.userPart()
	if err == nil {
		c.pairWith(l, func(*transition) error { return errNoChange })
	}
	return err
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
