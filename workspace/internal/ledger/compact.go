package ledger

import (
	"context"
	"errors"
	"slices"
)

// CompactionDue reports whether the head is to be compacted.
func (l *Ledger) CompactionDue(h *Head) bool { return h.compactionDue(l.minHistory) }

// Compact writes a snapshot of the content that cannot be rolled back, and
// keeps of what is before it what Options.RecordBytes says. If a secret was replaced
// or deleted, it keeps nothing. It does nothing unless compaction is due, or
// force is set. With force it keeps nothing either, and also writes the bodies
// of messages again.
func (l *Ledger) Compact(ctx context.Context, force bool) error {
	prepared := l.prepareSnapshot(ctx) // which takes long, and other operations need not wait for it
	_, err := l.commitHead(ctx, func(t *transition) error {
		if !t.Exists() || !force && !l.isDue(t.Head) {
			return errNoChange
		}
		if force {
			if err := t.rewrite(); err != nil {
				return err
			}
		}
		return t.compact(prepared, force, l.opts.RecordBytes)
	})
	if errors.Is(err, errNoChange) {
		return nil
	}
	return err
}

// isDue reports whether compaction is due and has something to do.
func (l *Ledger) isDue(h *Head) bool {
	return h.settled().Version > h.start().Version && h.compactionDue(l.minHistory)
}

// encodedContent is the content at a position.
type encodedContent struct {
	at   Position
	text []byte // nil if it is not known
}

// prepareSnapshot encodes the content of the head that the ledger remembers. The
// head that is replaced mostly has the same settled position.
func (l *Ledger) prepareSnapshot(ctx context.Context) (e encodedContent) {
	h := l.LastHead()
	if h == nil {
		return e
	}
	if doc, err := l.Content(ctx, h, h.settled()); err == nil {
		e = encodedContent{h.settled(), doc.Encode()}
	}
	return e
}

func (t *transition) compact(content encodedContent, force bool, history int) error {
	limit := t.settled()
	if content.text == nil || content.at != limit {
		doc, err := t.reader.Content(t.ctx, t.Head, limit)
		if err != nil {
			return err
		}
		content.text = doc.Encode()
	}
	if err := t.moveOutcomes(); err != nil { // their records may go
		return err
	}
	var err error
	if force || t.purges(limit) || history <= 0 {
		err = t.forget(limit, force)
	} else {
		err = t.keep(limit, history)
	}
	if err != nil {
		return err
	}
	s := t.addSnapshot(limit, content.text)
	t.Snapshot = &s
	if t.purges(limit) {
		t.Purge = 0
	}
	if force {
		return t.dropStray()
	}
	return nil
}

// forget drops all that is before the next snapshot.
func (t *transition) forget(limit Position, damaged bool) error {
	if err := t.dropPast(damaged); err != nil {
		return err
	}
	if err := t.dropSnapshot(); err != nil {
		return err
	}
	return t.dropRecords(limit.Version)
}

// rewrite writes the messages and outcomes to new blobs.
func (t *transition) rewrite() error {
	c, err := t.reader.copyMessages(t.ctx, t.Head)
	if err != nil {
		return err
	}
	run := t.Run
	if _, err := t.dropMessages(); err != nil {
		return err
	}
	if t.Run = run; run != nil {
		run.Message, c.Messages = t.shortMessage(c.Messages[0]), c.Messages[1:]
		run.Joined = slices.Clone(run.Joined) // the head read has them
		for i := range run.Joined {
			run.Joined[i].Message = t.storeMessage(c.Messages[i])
		}
		c.Messages = c.Messages[len(run.Joined):]
	}
	return t.restoreMessages(c)
}
