package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// The methods in this file change a workspace without holding its run.

// ErrContentChanged is returned for effects that fit an earlier content.
var ErrContentChanged = fault.Final("workspace: content has changed")

// Update adds a record of a kind, without a run. The change fits the content of a
// head, and is not made in another epoch. What it does to the user part, which may
// be nil, takes effect together with that.
func (l *Ledger) Update(ctx context.Context, kind work.Kind, of *Head, c Change, shared *SharedChange) (*Head, error) {
	return l.commitShared(ctx, shared, nil, func(t *transition) error {
		if t.Run != nil {
			return work.ErrBusy
		}
		if t.Position() != of.Position() || t.Epoch != of.Epoch {
			return ErrContentChanged
		}
		if err := t.addRecord(work.Record{Kind: kind, Time: c.Time, Effects: c.Effects}); err != nil {
			return err
		}
		t.noteChange(c)
		return nil
	})
}

// Retry puts the message of a dead letter at the end of the queue, with no
// attempts counted. Without a run, its run begins with a vacant lease.
func (l *Ledger) Retry(ctx context.Context, id string, lease Lease) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		d, err := t.takeDeadLetter(id)
		if err != nil {
			return err
		}
		if d == nil {
			return fmt.Errorf("%w: no dead letter %s", work.ErrNotFound, quoteID(id))
		}
		m := d.Message
		if t.Run == nil {
			t.beginRun(m, lease.Vacant())
			return nil
		}
		if m.Blob != "" { // of the message before its run
			if m.Body, _, err = t.reader.ReadBody(t.ctx, m); err != nil {
				return err
			}
			t.dropBlob(m.Blob)
		}
		t.enqueue(t.storeMessage(m))
		return nil
	})
}

// Discard drops a dead letter or a queued message.
func (l *Ledger) Discard(ctx context.Context, id string) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		d, err := t.takeDeadLetter(id)
		if err != nil {
			return err
		}
		m := Message{ID: id}
		if d != nil {
			m = d.Message
		} else if found, err := t.removeQueued(id); err != nil {
			return err
		} else if !found {
			return fmt.Errorf("%w: no dead letter and no queued message %s", work.ErrNotFound, quoteID(id))
		}
		return t.endOther(m, work.EndingDiscarded, "")
	})
}

// Withdraw removes a ticket from the queue, or ends its run if the lease is
// vacant. It reports whether it found the ticket.
func (l *Ledger) Withdraw(ctx context.Context, id string, lease Lease) (*Head, bool, error) {
	found := false
	h, err := l.commitHead(ctx, func(t *transition) error {
		found = true
		if t.Run != nil && t.Run.Message.ID == id && t.Run.Vacant() {
			effects, err := t.answerPendingCalls()
			if err != nil {
				return err
			}
			if err := t.endMessage(t.runRecord(KindInterrupt, lease.began, effects)); err != nil {
				return err
			}
			return t.beginNextRun(lease)
		}
		removed, err := t.removeQueued(id)
		if err == nil && !removed {
			found = false
			return errNoChange
		}
		return err
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return h, found, err
}

// Cancel ends a run. The next run begins with the lease, if a message waits.
func (l *Ledger) Cancel(ctx context.Context, runID, reason string, next Lease) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if t.Run == nil || t.Run.RunID != runID {
			return fmt.Errorf("%w: run %s is not under way", work.ErrNotFound, quoteID(runID))
		}
		if err := t.endRun(KindCancel, work.EndingCancelled, t.cancelPendingCalls, reason, next.began); err != nil {
			return err
		}
		return t.beginNextRun(next)
	})
}

// Reset empties the workspace and returns the ids of the messages that it
// dropped. The head of a workspace that does not exist is nil.
func (l *Ledger) Reset(ctx context.Context) (*Head, []string, error) {
	var ids []string
	h, err := l.commitHead(ctx, func(t *transition) error {
		if !t.Exists() {
			return errNoChange
		}
		dropped, err := t.reset()
		if err == nil { // else an earlier attempt may turn out to have taken effect
			ids = dropped
		}
		return err
	})
	if isDamage(err) {
		h, err = l.commitDamaged(ctx, func(t *transition) error {
			dropped, err := t.resetDamaged()
			if err == nil {
				ids = dropped
			}
			return err
		})
	}
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return h, ids, err
}

func (t *transition) reset() (ids []string, err error) {
	// As long as the head knows the messages, they are duplicates.
	outcomes, err := t.reader.Outcomes(t.ctx, t.Head)
	if err != nil {
		return nil, err
	}
	if ids, err = t.dropMessages(); err != nil {
		return nil, err
	}
	if err := t.dropContent(); err != nil {
		return nil, err
	}
	return ids, t.empty(ids, outcomes)
}

// empty makes the head that of an empty workspace, in which nothing refers to a
// blob. ids are those of the messages that were dropped.
func (t *transition) empty(ids []string, outcomes []Outcome) error {
	for i, o := range outcomes {
		outcomes[i] = Outcome{ID: o.ID, Ending: o.Ending, At: o.At}
	}
	for _, id := range ids {
		t.outcomes = append(t.outcomes, Outcome{ID: id, Ending: work.EndingReset})
	}
	for i := range t.outcomes {
		t.outcomes[i].At = t.now
	}
	outcomes = append(outcomes, t.outcomes...)
	t.Epoch = 0 // another one begins
	t.Token++
	t.Version++
	t.Chain = hash([]byte(t.Chain), []byte("reset"))
	t.Records.First, t.Records.Next = t.Version, t.Version
	t.Snapshot = &snapshot{Position: t.Position()}
	t.Ended, t.Title, t.Name = "", "", ""
	return t.setOutcomes(outcomes)
}

// dropMessages drops the run, the queue and the dead letters, and returns their
// ids. A ticket has none.
func (t *transition) dropMessages() (ids []string, err error) {
	for m, err := range t.reader.allMessages(t.ctx, t.Head) {
		if err != nil {
			return nil, err
		}
		if m.Blob != "" {
			t.dropBlob(m.Blob)
		}
		if !m.Ticket {
			ids = append(ids, m.ID)
		}
	}
	if err := t.dropQueued(t.Queue.Next); err != nil {
		return nil, err
	}
	t.Run = nil
	return ids, t.setDeadLetters(nil)
}

// dropContent drops the records, the snapshot and the past.
func (t *transition) dropContent() error {
	if err := t.dropPast(false); err != nil {
		return err
	}
	if err := t.dropRecords(t.Version); err != nil {
		return err
	}
	if err := t.dropSnapshot(); err != nil {
		return err
	}
	t.Snapshot, t.Purge, t.Suspended, t.Expires = nil, 0, 0, 0
	return t.setNotes(nil)
}

// Delete deletes the workspace. What is left is a head that says so, with what
// fences earlier writers, until Expire removes it.
func (l *Ledger) Delete(ctx context.Context) (*Head, error) {
	return l.delete(ctx, closing{}, func(h *Head) bool { return !h.Exists() })
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
		if !t.Sweeping {
			return errNoChange
		}
		t.Sweeping = false
		return nil
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return err
}

// delete deletes the workspace, unless its head says that this is done.
func (l *Ledger) delete(ctx context.Context, c closing, done func(*Head) bool) (*Head, error) {
	now := l.now()
	h, err := l.commitHead(ctx, func(t *transition) error {
		if done(t.Head) {
			return errNoChange
		}
		if _, err := t.dropMessages(); err != nil {
			return err
		}
		if err := t.dropContent(); err != nil {
			return err
		}
		t.dropOutcomes()
		t.entomb(now, c)
		return nil
	})
	if isDamage(err) {
		h, err = l.commitDamaged(ctx, deleteDamaged(now, c))
	}
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return h, err
}

// entomb makes the head that of a deleted workspace, in an epoch of its own.
func (t *transition) entomb(now time.Time, c closing) {
	*t.Head = Head{
		Format: headFormat, User: t.User, Seq: t.Seq, Token: t.Token + 1, Deleted: now, Closed: c.closed,
		Sweeping: c.sweeping,
	}
}

// Expire removes the head of a workspace that was deleted at a time or before. A
// creator of the workspace that was paused for longer than that may then bring
// it back.
func (l *Ledger) Expire(ctx context.Context, before time.Time) (removed bool, err error) {
	if h, err := l.ReadHead(ctx); err != nil || !h.Expired(before) {
		return false, err
	}
	h, cond, err := l.readHead(ctx)
	if err != nil || !h.Expired(before) || l.seen.mark().Seq > h.Seq { // another goroutine has seen a newer head
		return false, err
	}
	err = store.Delete(ctx, l.db, l.key, cond)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	if err == nil {
		l.forget()
	}
	return err == nil, err
}

// Accept accepts the head as it is, although a newer one was seen: for an
// operator who knows why, for example that a backup was restored.
func (l *Ledger) Accept(ctx context.Context) (*Head, error) {
	c := l.newCommit()
	c.basis = basisStored
	return c.perform(ctx, func(t *transition) error {
		if t.Seq == 0 && c.seen.mark().Seq == 0 {
			return fmt.Errorf("%w: the workspace does not exist", work.ErrNotFound)
		}
		return nil
	})
}
