package workspace

import (
	"bytes"
	"context"
	"iter"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/document"
)

// cached is the content at a point.
type cached struct {
	point
	doc *document.Document
}

// content returns the content at a point that the head reaches, which is not
// before its snapshot. It is the caller's own.
func (l *ledger) content(ctx context.Context, h *head, at point) (*document.Document, error) {
	from := l.kept()
	if from.doc != nil && from.Version >= h.start().Version && from.Version <= at.Version {
		doc, err := l.replay(ctx, h, from, at)
		if err == nil {
			return doc, nil
		}
		// The content may be of a line that was never acknowledged.
	}
	doc, err := l.snapshot(ctx, h)
	if err != nil {
		return nil, err
	}
	return l.replay(ctx, h, cached{h.start(), doc}, at)
}

// look reads the head and what fn wants from what it refers to. If that is gone,
// since another head has replaced it, it begins again.
func (l *ledger) look(ctx context.Context, fn func(*head) error) (*head, error) {
	var gone absence
	for {
		h, _, err := l.read(ctx)
		if err != nil {
			return nil, err
		}
		if err = fn(h); err == nil || !gone.moved(err, h) {
			return h, err
		}
		if err := l.pause(ctx, backoff(gone.times)); err != nil {
			return nil, err
		}
	}
}

// present returns the head and the content at it.
func (l *ledger) present(ctx context.Context) (*head, *document.Document, error) {
	var doc *document.Document
	h, err := l.look(ctx, func(h *head) (err error) {
		doc, err = l.content(ctx, h, h.now())
		return err
	})
	return h, doc, err
}

// kept returns a copy of the content that was remembered, without a document if
// there is none.
func (l *ledger) kept() cached {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cache
	if c.doc != nil {
		c.doc = c.doc.Clone()
	}
	return c
}

// keep remembers the content at a point, and has it for itself from now on.
func (l *ledger) keep(at point, doc *document.Document) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache = cached{at, doc}
}

// forget gives the memory back that only saves time.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache, l.last = cached{}, nil
}

// snapshot returns the content at the head's start.
func (l *ledger) snapshot(ctx context.Context, h *head) (*document.Document, error) {
	if h.Snap == nil || len(h.Snap.Parts) == 0 {
		return document.New(), nil
	}
	var data bytes.Buffer
	for _, part := range h.Snap.Parts {
		text, err := l.fetch(ctx, part)
		if err != nil {
			return nil, err
		}
		data.Write(text)
	}
	return document.Decode(data.Bytes())
}

// replay returns the content at a point, which comes after, or is, that of from.
func (l *ledger) replay(ctx context.Context, h *head, from cached, at point) (*document.Document, error) {
	doc, end := from.doc, from.point
	for r, err := range l.records(ctx, h, from.point) {
		if err != nil {
			return nil, err
		}
		if r.Version > at.Version {
			break
		}
		if err := doc.Apply(r.Effects); err != nil {
			return nil, err
		}
		end = point{r.Version, r.Chain}
	}
	if end != at {
		return nil, corrupt(l.key, "records do not lead to the head")
	}
	l.keep(at, doc.Clone())
	return doc, nil
}

// records yields the records of a head after a point, and checks that they are
// the ones that the head vouches for.
func (l *ledger) records(ctx context.Context, h *head, after point) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		end := after
		for e, err := range l.entries(ctx, h, after.Version) {
			var r *Record
			if err == nil {
				r, err = e.record(l.key, end)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			end = e.point()
			r.Chain = e.chain
			if !yield(r, nil) {
				return
			}
		}
		if end != h.now() {
			yield(nil, corrupt(l.key, "records do not lead to the head"))
		}
	}
}

// entries yields the records after a version as they are stored.
func (l *ledger) entries(ctx context.Context, h *head, after uint64) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for r, err := range l.segments(ctx, h.Segs, after) {
			var list []entry
			if err == nil {
				list, err = fetchJSON[[]entry](ctx, l, r)
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
func (l *ledger) segments(ctx context.Context, refs []ref, after uint64) iter.Seq2[ref, error] {
	return func(yield func(ref, error) bool) {
		for r, err := range l.below(ctx, refs, after) {
			if (err != nil || r.Level == 0) && !yield(r, err) {
				return
			}
		}
	}
}

// below yields refs to records after a version, and all refs below them, each
// after those below it.
func (l *ledger) below(ctx context.Context, refs []ref, after uint64) iter.Seq2[ref, error] {
	return func(yield func(ref, error) bool) {
		for _, r := range refs {
			if r.To <= after {
				continue
			}
			if r.Level > 0 {
				list, err := fetchJSON[[]ref](ctx, l, r)
				if err != nil {
					yield(ref{}, err)
					return
				}
				for r, err := range l.below(ctx, list, after) {
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
	tailBytes = 4 << 10   // more than this of records moves from the head to a segment
	fanout    = 4         // as many segments, or lists of them, are listed in a blob
	partBytes = 256 << 10 // the length of a snapshot's parts
	bodyBytes = 1 << 10   // a longer message is a blob
)

// append adds a record to the head.
func (d *draft) append(e entry) error {
	d.Tail = append(d.Tail, e)
	d.Version, d.Chain = e.version, e.chain
	n := 0
	for _, e := range d.Tail {
		n += len(e.text)
	}
	if n <= tailBytes {
		return nil
	}
	data, err := jsontext.Marshal(d.Tail)
	if err != nil {
		return err
	}
	r := d.blob(data)
	r.From, r.To = d.Tail[0].version, e.version
	d.Tail = nil
	d.Segs = append(d.Segs, r)
	// So that the head does not grow with a run.
	for {
		first := len(d.Segs) - fanout
		if first < 0 || d.Segs[first].Level != d.Segs[len(d.Segs)-1].Level {
			return nil
		}
		list := d.Segs[first:]
		data, err := jsontext.Marshal(list)
		if err != nil {
			return err
		}
		r := d.blob(data)
		r.Level, r.From, r.To, r.Bytes = list[0].Level+1, list[0].From, list[len(list)-1].To, 0
		for _, part := range list {
			r.Bytes += part.Bytes
		}
		d.Segs = append(d.Segs[:first:first], r)
	}
}

// dropRecords drops refs to records, with all that is below them.
func (d *draft) dropRecords(refs []ref) error {
	for r, err := range d.ledger.below(d.ctx, refs, 0) {
		if err != nil {
			return err
		}
		d.drop(r)
	}
	return nil
}
