package ledger

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agentstate/state/workspace/work"
)

// isDamage reports whether err says that stored data is damaged. A damaged seal
// may look as one of another key.
func isDamage(err error) bool {
	return errors.Is(err, work.ErrCorrupt) || errors.Is(err, work.ErrInvalidKey)
}

// commitDamaged is commitHead for a workspace whose head, or whose blobs, are
// damaged. In place of a head that is missing or damaged, apply gets one that
// follows all that there may have been. The new head refers to
// no blob that exists now, and they are deleted with it.
func (l *Ledger) commitDamaged(ctx context.Context, apply transitionFunc) (*Head, error) {
	c := l.newCommit()
	c.basis = basisDamaged
	return c.perform(ctx, apply)
}

// newSubstitute returns a head in place of one that cannot be read because of
// damage. A sealed head may also be that of another key with the same id. So it
// returns damage itself unless the keys open another value of the workspace.
func (l *Ledger) newSubstitute(ctx context.Context, damage error) (*Head, error) {
	h, opens := l.newHead(), l.sealer == nil
	for e, err := range l.db.List(ctx, l.blobKey(""), "", true) {
		if err != nil {
			return nil, err
		}
		if seq, ok := blobSeq(strings.TrimPrefix(e.Key, l.blobKey(""))); ok {
			h.Seq = max(h.Seq, seq)
		}
		if !opens {
			_, err := l.sealer.open(l.key, e.Key, e.Value)
			opens = err == nil
		}
	}
	if !opens {
		return nil, damage
	}
	// There were fewer leases and versions than writes, about.
	h.Token, h.Version = h.Seq+acceptLead, h.Seq+acceptLead
	return h, nil
}

// deleteDamaged is the transition of Delete that reads no blob.
func deleteDamaged(now time.Time, c closing) transitionFunc {
	return func(t *transition) error {
		t.entomb(now, c)
		return t.dropStray()
	}
}

// resetDamaged is reset for a workspace in which blobs are missing or damaged.
// It returns the ids of the messages that can still be found.
func (t *transition) resetDamaged() (ids []string, err error) {
	outcomes, err := t.reader.Outcomes(t.ctx, t.Head)
	if err != nil && !isDamage(err) {
		return nil, err
	}
	if err != nil {
		outcomes = nil
	}
	if ids, err = t.findIDs(); err != nil {
		return nil, err
	}
	t.Run, t.Queue, t.QueueBytes, t.DeadLetters = nil, blobList{First: t.Queue.Next, Next: t.Queue.Next}, 0, deadLetters{}
	t.Notes = ""
	t.Endings, t.Outcomes, t.Records.Levels, t.RecordBytes, t.Purge, t.Suspended, t.Expires, t.Past = "", "", nil, 0, 0, 0, 0, past{}
	if err := t.empty(ids, outcomes); err != nil {
		return nil, err
	}
	return ids, t.dropStray()
}

// findIDs returns the ids of the messages of the run, the queue and the dead
// letters, as far as they can be read.
func (t *transition) findIDs() (ids []string, err error) {
	for m, err := range t.reader.allMessages(t.ctx, t.Head) {
		switch {
		case err == nil && !m.Ticket:
			ids = append(ids, m.ID)
		case err != nil && !isDamage(err):
			return nil, err
		}
	}
	return ids, nil
}

// dropStray drops all blobs to which the head does not refer, after damage.
// Otherwise there are none: blobs are written and deleted together with a head.
func (t *transition) dropStray() error {
	live := map[string]bool{}
	for name, err := range t.reader.liveBlobs(t.ctx, t.Head) {
		if err != nil {
			return err
		}
		live[name] = true
	}
	for _, name := range t.droppedBlobs { // a listing may be stale
		live[name] = true
	}
	for name, err := range t.reader.listBlobs(t.ctx) {
		if err != nil {
			return err
		}
		if !live[name] {
			t.droppedBlobs = append(t.droppedBlobs, name)
		}
	}
	return nil
}
