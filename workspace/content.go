package workspace

import (
	"bytes"
	"context"
	"iter"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/document"
)

// cached is the content at a point.
type contentAt struct {
	position
	doc *document.Document
}

// content returns the content at a point that the head reaches, which is not
// before its snapshot. It is the caller's own.
func (l *ledger) content(ctx context.Context, h *head, at position) (*document.Document, error) {
	from := l.cachedCopy()
	if from.doc != nil && from.Version >= h.snapshotPosition().Version && from.Version <= at.Version {
		doc, err := l.replay(ctx, h, from, at)
		if err == nil {
			return doc, nil
		}
		// The content may be of a line that was never acknowledged.
	}
	doc, err := l.readSnapshot(ctx, h)
	if err != nil {
		return nil, err
	}
	return l.replay(ctx, h, contentAt{h.snapshotPosition(), doc}, at)
}

// look reads the head and what fn wants from what it refers to. If that is gone,
// since another head has replaced it, it begins again.
func (l *ledger) readStable(ctx context.Context, fn func(*head) error) (*head, error) {
	var gone absentHead
	for {
		h, _, err := l.readHead(ctx)
		if err != nil {
			return nil, err
		}
		if err = fn(h); err == nil || !gone.changed(err, h) {
			return h, err
		}
		if err := l.pause(ctx, backoff(gone.times)); err != nil {
			return nil, err
		}
	}
}

// present returns the head and the content at it.
func (l *ledger) readPresent(ctx context.Context) (*head, *document.Document, error) {
	var doc *document.Document
	h, err := l.readStable(ctx, func(h *head) (err error) {
		doc, err = l.content(ctx, h, h.position())
		return err
	})
	return h, doc, err
}

// kept returns a copy of the content that was remembered, without a document if
// there is none.
func (l *ledger) cachedCopy() contentAt {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cachedContent
	if c.doc != nil {
		c.doc = c.doc.Clone()
	}
	return c
}

// keep remembers the content at a point, and has it for itself from now on.
func (l *ledger) cacheContent(at position, doc *document.Document) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cachedContent = contentAt{at, doc}
}

// forget gives the memory back that only saves time.
func (l *ledger) dropCaches() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cachedContent, l.lastHead = contentAt{}, nil
}

// snapshot returns the content at the head's start.
func (l *ledger) readSnapshot(ctx context.Context, h *head) (*document.Document, error) {
	if h.Snapshot == nil || len(h.Snapshot.Parts) == 0 {
		return document.New(), nil
	}
	var data bytes.Buffer
	for _, part := range h.Snapshot.Parts {
		text, err := l.fetchBlob(ctx, part)
		if err != nil {
			return nil, err
		}
		data.Write(text)
	}
	return document.Decode(data.Bytes())
}

// replay returns the content at a point, which comes after, or is, that of from.
func (l *ledger) replay(ctx context.Context, h *head, from contentAt, at position) (*document.Document, error) {
	doc, end := from.doc, from.position
	for r, err := range l.records(ctx, h, from.position) {
		if err != nil {
			return nil, err
		}
		if r.Version > at.Version {
			break
		}
		if err := doc.Apply(r.Effects); err != nil {
			return nil, err
		}
		end = position{r.Version, r.Chain}
	}
	if end != at {
		return nil, corrupt(l.key, "records do not lead to the head")
	}
	l.cacheContent(at, doc.Clone())
	return doc, nil
}

// records yields the records of a head after a point, and checks that they are
// the ones that the head vouches for.
func (l *ledger) records(ctx context.Context, h *head, after position) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		end := after
		for e, err := range l.entries(ctx, h, after.Version) {
			var r *Record
			if err == nil {
				r, err = e.decode(l.key, end)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			end = e.position()
			r.Chain = e.chain
			if !yield(r, nil) {
				return
			}
		}
		if end != h.position() {
			yield(nil, corrupt(l.key, "records do not lead to the head"))
		}
	}
}

// entries yields the records after a version as they are stored.
func (l *ledger) entries(ctx context.Context, h *head, after uint64) iter.Seq2[*storedRecord, error] {
	return func(yield func(*storedRecord, error) bool) {
		for r, err := range l.segments(ctx, h.Segments, after) {
			var list []storedRecord
			if err == nil {
				list, err = fetchBlobJSON[[]storedRecord](ctx, l, r)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range list {
				if list[i].version > after && !yield(&list[i], nil) {
					return
				}
			}
		}
		for i := range h.Tail {
			if h.Tail[i].version > after && !yield(&h.Tail[i], nil) {
				return
			}
		}
	}
}

// segments yields the segments below refs that have records after a version.
func (l *ledger) segments(ctx context.Context, refs []blobRef, after uint64) iter.Seq2[blobRef, error] {
	return func(yield func(blobRef, error) bool) {
		for r, err := range l.walkSegments(ctx, refs, after) {
			if (err != nil || r.Level == 0) && !yield(r, err) {
				return
			}
		}
	}
}

// below yields refs to records after a version, and all refs below them, each
// after those below it.
func (l *ledger) walkSegments(ctx context.Context, refs []blobRef, after uint64) iter.Seq2[blobRef, error] {
	return func(yield func(blobRef, error) bool) {
		for _, r := range refs {
			if r.To <= after {
				continue
			}
			if r.Level > 0 {
				list, err := fetchBlobJSON[[]blobRef](ctx, l, r)
				if err != nil {
					yield(blobRef{}, err)
					return
				}
				for r, err := range l.walkSegments(ctx, list, after) {
					if !yield(r, err) || err != nil {
						return
					}
				}
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

var (
	maxTailBytes      = 4 << 10   // more than this of records moves from the head to a segment
	segmentFanout     = 4         // as many segments, or lists of them, are listed in a blob
	snapshotPartBytes = 256 << 10 // the length of a snapshot's parts
	maxInlineBody     = 1 << 10   // a longer message is a blob
)

// append adds a record to the head.
func (d *transition) appendEntry(e storedRecord) error {
	d.Tail = append(d.Tail, e)
	d.Version, d.Chain = e.version, e.chain
	n := 0
	for _, e := range d.Tail {
		n += len(e.text)
	}
	if n <= maxTailBytes {
		return nil
	}
	data, err := jsontext.Marshal(d.Tail)
	if err != nil {
		return err
	}
	r := d.addBlob(data)
	r.From, r.To = d.Tail[0].version, e.version
	d.Tail = nil
	d.Segments = append(d.Segments, r)
	// So that the head does not grow with a run.
	for {
		first := len(d.Segments) - segmentFanout
		if first < 0 || d.Segments[first].Level != d.Segments[len(d.Segments)-1].Level {
			return nil
		}
		list := d.Segments[first:]
		data, err := jsontext.Marshal(list)
		if err != nil {
			return err
		}
		r := d.addBlob(data)
		r.Level, r.From, r.To, r.Bytes = list[0].Level+1, list[0].From, list[len(list)-1].To, 0
		for _, part := range list {
			r.Bytes += part.Bytes
		}
		d.Segments = append(d.Segments[:first:first], r)
	}
}

// dropRecords drops refs to records, with all that is below them.
func (d *transition) dropSegments(refs []blobRef) error {
	for r, err := range d.ledger.walkSegments(d.ctx, refs, 0) {
		if err != nil {
			return err
		}
		d.dropBlob(r)
	}
	return nil
}
