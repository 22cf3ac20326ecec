package workspace

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// contentReader reads what heads of one workspace refer to: snapshots, segments
// and records. It caches the newest content that it has read. It is safe for
// concurrent use.
type contentReader struct {
	blobStore

	cacheMu sync.Mutex
	cache   contentAt
}

// contentAt is the content at a position.
type contentAt struct {
	position
	doc *document.Document
}

// content returns the content at a position that the head reaches, which is not
// before its snapshot. The caller may change the document.
func (c *contentReader) content(ctx context.Context, h *head, at position) (*document.Document, error) {
	from := c.cached()
	if from.doc != nil && from.Version >= h.oldest().Version && from.Version <= at.Version {
		if doc, err := c.replay(ctx, h, from, at); err == nil {
			return doc, nil
		}
		// The cached content may come from writes that a failover has lost.
	}
	doc, err := c.readSnapshot(ctx, h)
	if err != nil {
		return nil, err
	}
	return c.replay(ctx, h, contentAt{h.oldest(), doc}, at)
}

// cached returns a copy of the cached content, without a document if there is
// none.
func (c *contentReader) cached() contentAt {
	c.cacheMu.Lock()
	defer c.cacheMu.Unlock()
	copied := c.cache
	if copied.doc != nil {
		copied.doc = copied.doc.Clone()
	}
	return copied
}

// cacheContent caches the content at a position. The caller must not change doc
// any more.
func (c *contentReader) cacheContent(at position, doc *document.Document) {
	c.cacheMu.Lock()
	defer c.cacheMu.Unlock()
	c.cache = contentAt{at, doc}
}

// readSnapshot returns the content at the oldest position of the head.
func (c *contentReader) readSnapshot(ctx context.Context, h *head) (*document.Document, error) {
	if h.Snapshot == nil || len(h.Snapshot.Parts) == 0 {
		return document.New(), nil
	}
	var data bytes.Buffer
	for _, part := range h.Snapshot.Parts {
		text, err := c.fetchBlob(ctx, part)
		if err != nil {
			return nil, err
		}
		data.Write(text)
	}
	return document.Decode(data.Bytes())
}

// replay applies the records from one position to another.
func (c *contentReader) replay(
	ctx context.Context, h *head, from contentAt, at position,
) (*document.Document, error) {
	doc, end := from.doc, from.position
	for r, err := range c.records(ctx, h, from.position) {
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
		return nil, c.errBrokenChain()
	}
	c.cacheContent(at, doc.Clone())
	return doc, nil
}

func (c *contentReader) errBrokenChain() error {
	return corrupt(c.key, "the records do not lead to the head")
}

// records yields the records of a head after a position, and checks that the
// head authenticates them.
func (c *contentReader) records(ctx context.Context, h *head, after position) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		end := after
		for s, err := range c.storedRecords(ctx, h, after.Version) {
			var r *Record
			if err == nil {
				r, err = s.decode(c.key, end)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			end = s.position()
			if !yield(r, nil) {
				return
			}
		}
		if end != h.position() {
			yield(nil, c.errBrokenChain())
		}
	}
}

// storedRecords yields the records after a version without decoding them.
func (c *contentReader) storedRecords(
	ctx context.Context, h *head, after uint64,
) iter.Seq2[*storedRecord, error] {
	return func(yield func(*storedRecord, error) bool) {
		for r, err := range c.walkSegments(ctx, h.Segments, after) {
			if err == nil && r.Level > 0 {
				continue // its segments come by themselves
			}
			var list []storedRecord
			if err == nil {
				list, err = fetchBlobJSON[[]storedRecord](ctx, &c.blobStore, r)
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

// walkSegments yields the refs that have records after a version, and all refs
// below them. A ref comes after those below it.
func (c *contentReader) walkSegments(
	ctx context.Context, refs []blobRef, after uint64,
) iter.Seq2[blobRef, error] {
	return func(yield func(blobRef, error) bool) {
		for _, r := range refs {
			if r.To <= after {
				continue
			}
			if r.Level > 0 {
				below, err := fetchBlobJSON[[]blobRef](ctx, &c.blobStore, r)
				if err != nil {
					yield(blobRef{}, err)
					return
				}
				for r, err := range c.walkSegments(ctx, below, after) {
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

// positionAt returns the position of a version.
func (c *contentReader) positionAt(ctx context.Context, h *head, version uint64) (position, error) {
	switch oldest := h.oldest(); {
	case version > h.Version:
		return position{}, fmt.Errorf("%w: there is no version %d yet", ErrInvalid, version)
	case version < oldest.Version:
		return position{}, fmt.Errorf("version %d: %w", version, state.ErrCompacted)
	case version == oldest.Version:
		return oldest, nil
	}
	for s, err := range c.storedRecords(ctx, h, version-1) {
		if err != nil {
			return position{}, err
		}
		return s.position(), nil // replay checks that it is authentic
	}
	return position{}, c.errBrokenChain()
}
