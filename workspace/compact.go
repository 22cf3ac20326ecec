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
	_, err := l.transact(ctx, func(d *draft) error {
		limit := d.settled()
		if d.Seq == 0 || !force && (limit.Version <= d.start().Version || !d.due(l.history)) {
			return errNothing
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
		if d.Snap != nil {
			for _, part := range d.Snap.Parts {
				d.drop(part)
			}
		}
		d.Snap = &snap{point: limit}
		for part := range slices.Chunk(doc.Encode(), partBytes) {
			d.Snap.Parts = append(d.Snap.Parts, d.blob(part))
		}
		old := 0
		for old < len(d.Segs) && d.Segs[old].To <= limit.Version {
			old++
		}
		if err := d.dropRecords(d.Segs[:old]); err != nil {
			return err
		}
		d.Segs = slices.Clone(d.Segs[old:])
		d.Tail = slices.DeleteFunc(d.Tail, func(e entry) bool { return e.version <= limit.Version })
		if d.Purge <= limit.Version {
			d.Purge = 0
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// rewriteBodies writes the messages that lie in blobs to new ones.
func (d *draft) rewriteBodies() error {
	items := make([]*item, 0, 1+len(d.Queue)+len(d.Dead))
	if d.Run != nil {
		items = append(items, &d.Run.Item)
	}
	for i := range d.Queue {
		items = append(items, &d.Queue[i])
	}
	for i := range d.Dead {
		items = append(items, &d.Dead[i].Item)
	}
	for _, i := range items {
		if i.Body == nil {
			continue
		}
		data, err := d.ledger.fetch(d.ctx, *i.Body)
		if err != nil {
			return err
		}
		d.drop(*i.Body)
		body := d.blob(data)
		i.Body = &body
	}
	return nil
}

// due reports whether the head is to be compacted, which it is not, but to get rid
// of a secret, before there are so many bytes of records.
func (h *head) due(history int) bool {
	if h.Purge != 0 && h.Purge <= h.settled().Version {
		return true
	}
	records, whole := 0, 0
	for _, r := range h.Segs {
		records += r.Bytes
	}
	if h.Snap != nil {
		whole = h.Snap.bytes()
	}
	return len(h.Segs) > 0 && records >= max(whole, history)
}

// collect deletes blobs to which no head refers, and none will: what was written
// for heads that lost, and what crashes left behind.
func (l *ledger) collect(ctx context.Context) error {
	if l.batch == nil {
		var garbage []string
		_, err := l.look(ctx, func(h *head) (err error) {
			garbage, err = l.garbage(ctx, h)
			return err
		})
		for _, name := range garbage {
			err = errors.Join(err, l.db.Delete(ctx, l.blobKey(name), store.Always))
		}
		return err
	}
	_, err := l.transact(ctx, func(d *draft) error {
		garbage, err := l.garbage(ctx, d.head)
		if err != nil {
			return err
		}
		if len(garbage) == 0 {
			return errNothing
		}
		d.dropped = garbage
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// garbage returns the blobs that a head does not refer to and that are too old for
// another to begin to.
func (l *ledger) garbage(ctx context.Context, h *head) ([]string, error) {
	live := map[string]bool{}
	for _, r := range h.refs() {
		live[r.Name] = true
	}
	for r, err := range l.below(ctx, h.Segs, 0) {
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
		if exp, ok := expiry(name); ok && exp <= h.Seq && !live[name] {
			names = append(names, name)
		}
	}
	return names, nil
}
