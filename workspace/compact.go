package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
)

// compact puts the settled content into a snapshot and drops what it makes
// needless: where the records are more than the last snapshot, so that it costs a
// constant share of what was written, or where a secret is to go. With force it does
// so in any case, and writes the bodies of messages again too.
func (l *ledger) compact(ctx context.Context, force bool) error {
	_, err := l.commitHead(ctx, func(d *transition) error {
		limit := d.settledPosition()
		if d.Seq == 0 || !force && (limit.Version <= d.snapshotPosition().Version || !d.compactionDue(l.minHistory)) {
			return errNoChange
		}
		if force {
			if err := d.rewriteBodies(); err != nil {
				return err
			}
		}
		doc, err := l.content(ctx, d.head, limit)
		if err != nil {
			return err
		}
		if d.Snapshot != nil {
			for _, part := range d.Snapshot.Parts {
				d.dropBlob(part)
			}
		}
		d.Snapshot = &snapshot{position: limit}
		for part := range slices.Chunk(doc.Encode(), snapshotPartBytes) {
			d.Snapshot.Parts = append(d.Snapshot.Parts, d.addBlob(part))
		}
		old := 0
		for old < len(d.Segments) && d.Segments[old].To <= limit.Version {
			old++
		}
		if err := d.dropSegments(d.Segments[:old]); err != nil {
			return err
		}
		d.Segments = slices.Clone(d.Segments[old:])
		d.Tail = slices.DeleteFunc(d.Tail, func(e storedRecord) bool { return e.version <= limit.Version })
		if d.Purge <= limit.Version {
			d.Purge = 0
		}
		return nil
	})
	if errors.Is(err, errNoChange) {
		return nil
	}
	return err
}

// rewriteBodies writes the messages that lie in blobs to new ones.
func (d *transition) rewriteBodies() error {
	items := make([]*pendingMessage, 0, 1+len(d.Queue)+len(d.DeadLetters))
	if d.Run != nil {
		items = append(items, &d.Run.Message)
	}
	for i := range d.Queue {
		items = append(items, &d.Queue[i])
	}
	for i := range d.DeadLetters {
		items = append(items, &d.DeadLetters[i].Message)
	}
	for _, i := range items {
		if i.BodyBlob == nil {
			continue
		}
		data, err := d.ledger.fetchBlob(d.ctx, *i.BodyBlob)
		if err != nil {
			return err
		}
		d.dropBlob(*i.BodyBlob)
		body := d.addBlob(data)
		i.BodyBlob = &body
	}
	return nil
}

// due reports whether the head is to be compacted, which it is not, but to get rid
// of a secret, before there are so many bytes of records.
func (h *head) compactionDue(history int) bool {
	if h.Purge != 0 && h.Purge <= h.settledPosition().Version {
		return true
	}
	records, whole := 0, 0
	for _, r := range h.Segments {
		records += r.Bytes
	}
	if h.Snapshot != nil {
		whole = h.Snapshot.bytes()
	}
	return len(h.Segments) > 0 && records >= max(whole, history)
}

// collect deletes blobs to which no head refers, and none will: what was written
// for heads that lost, and what crashes left behind.
func (l *ledger) collect(ctx context.Context) error {
	if l.batch == nil {
		var garbage []string
		_, err := l.readStable(ctx, func(h *head) (err error) {
			garbage, err = l.findGarbage(ctx, h)
			return err
		})
		for _, name := range garbage {
			err = errors.Join(err, l.db.Delete(ctx, l.blobKey(name), store.Always))
		}
		return err
	}
	_, err := l.commitHead(ctx, func(d *transition) error {
		garbage, err := l.findGarbage(ctx, d.head)
		if err != nil {
			return err
		}
		if len(garbage) == 0 {
			return errNoChange
		}
		d.droppedBlobs = garbage
		return nil
	})
	if errors.Is(err, errNoChange) {
		return nil
	}
	return err
}

// garbage returns the blobs that a head does not refer to and that are too old for
// another to begin to.
func (l *ledger) findGarbage(ctx context.Context, h *head) ([]string, error) {
	live := map[string]bool{}
	for _, r := range h.blobRefs() {
		live[r.Name] = true
	}
	for r, err := range l.walkSegments(ctx, h.Segments, 0) {
		if err != nil {
			return nil, err
		}
		live[r.Name] = true
	}
	var names []string
	for e, err := range l.db.Scan(ctx, l.blobKey(""), "") {
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(e.Key, l.blobKey(""))
		if exp, ok := blobExpiry(name); ok && exp <= h.Seq && !live[name] {
			names = append(names, name)
		}
	}
	return names, nil
}
