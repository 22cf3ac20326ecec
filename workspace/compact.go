package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
)

var snapshotPartBytes = 256 << 10 // the maximum length of a part of a snapshot

// compact writes a snapshot of the content that cannot be rolled back, and
// drops the records up to it. It does nothing unless compaction is due, or
// force is set. With force it also writes the bodies of messages again.
func (l *ledger) compact(ctx context.Context, force bool) error {
	_, err := l.commitHead(ctx, func(t *transition) error {
		limit := t.settled()
		if t.Seq == 0 || !force && (limit.Version <= t.oldest().Version || !t.compactionDue(l.minHistory)) {
			return errNoChange
		}
		if force {
			if err := t.rewriteBodies(); err != nil {
				return err
			}
		}
		return t.compact(limit)
	})
	if errors.Is(err, errNoChange) {
		return nil
	}
	return err
}

func (t *transition) compact(limit position) error {
	doc, err := t.reader.content(t.ctx, t.head, limit)
	if err != nil {
		return err
	}
	if t.Snapshot != nil {
		for _, part := range t.Snapshot.Parts {
			t.dropBlob(part)
		}
	}
	t.Snapshot = &snapshot{position: limit}
	for part := range slices.Chunk(doc.Encode(), snapshotPartBytes) {
		t.Snapshot.Parts = append(t.Snapshot.Parts, t.addBlob(part))
	}
	// A segment that the limit cuts in two stays: its older records are
	// skipped.
	old := 0
	for old < len(t.Segments) && t.Segments[old].To <= limit.Version {
		old++
	}
	if err := t.dropSegments(t.Segments[:old]); err != nil {
		return err
	}
	t.Segments = slices.Clone(t.Segments[old:])
	t.Tail = slices.DeleteFunc(t.Tail, func(s storedRecord) bool { return s.version <= limit.Version })
	if t.Purge <= limit.Version {
		t.Purge = 0
	}
	return nil
}

// rewriteBodies writes the bodies of messages that are blobs to new blobs.
func (t *transition) rewriteBodies() error {
	for _, m := range t.pending() {
		if m.BodyBlob == nil {
			continue
		}
		data, err := t.reader.fetchBlob(t.ctx, *m.BodyBlob)
		if err != nil {
			return err
		}
		t.dropBlob(*m.BodyBlob)
		body := t.addBlob(data)
		m.BodyBlob = &body
	}
	return nil
}

// collect deletes blobs to which neither this nor any later head refers: those
// of writers that lost a race or crashed.
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
	// With a Batcher, a failover that loses the head restores the blobs too.
	_, err := l.commitHead(ctx, func(t *transition) (err error) {
		t.droppedBlobs, err = t.reader.findGarbage(ctx, t.head)
		if err == nil && len(t.droppedBlobs) == 0 {
			err = errNoChange
		}
		return err
	})
	if errors.Is(err, errNoChange) {
		return nil
	}
	return err
}

// findGarbage returns the blobs to which the head does not refer and whose
// expiry has passed, so that no later head may refer to them for the first
// time.
func (c *contentReader) findGarbage(ctx context.Context, h *head) ([]string, error) {
	live := map[string]bool{}
	for _, r := range h.blobRefs() {
		live[r.Name] = true
	}
	for r, err := range c.walkSegments(ctx, h.Segments, 0) {
		if err != nil {
			return nil, err
		}
		live[r.Name] = true
	}
	var names []string
	for e, err := range c.db.Scan(ctx, c.blobKey(""), "") {
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(e.Key, c.blobKey(""))
		if expiry, ok := blobExpiry(name); ok && expiry <= h.Seq && !live[name] {
			names = append(names, name)
		}
	}
	return names, nil
}
