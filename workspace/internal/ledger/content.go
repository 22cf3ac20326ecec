package ledger

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/agentstate/state/workspace/internal/document"
)

// contentReader reads what heads of one workspace refer to: snapshots, records,
// messages and outcomes. It is safe for concurrent use.
type contentReader struct {
	blobStore
	contents *contentCache
	// lists holds the lists of the records of segments, which each change of the
	// past reads. The cache of all blobs has others by then.
	lists   *blobCache
	checked *Position // whose content fits, or nil
}

// contentCache holds the newest content that was read.
type contentCache struct {
	fits func(*document.Document) error // nil if all content fits

	mu      sync.Mutex
	newest  contentAt
	fitting Position // of content that fits; that of a new workspace does
	// outcomes are those in a blob, which are read for each message.
	outcomes     []Outcome
	outcomesName string // of the blob
}

// contentAt is the content at a position.
type contentAt struct {
	Position
	doc *document.Document
}

// Content returns the content at a position that the head reaches, which is not
// before the oldest one. The caller may change the document.
func (c *contentReader) Content(ctx context.Context, h *Head, at Position) (*document.Document, error) {
	if at.Version < h.start().Version {
		return c.pastContent(ctx, h, at)
	}
	from := c.cached()
	if from.doc != nil && from.Version >= h.start().Version && from.Version <= at.Version {
		if from.Position == at {
			return from.doc, nil
		}
		if doc, err := c.replay(ctx, h, from, at); err == nil {
			return doc, nil
		}
		// The cached content may come from writes that a failover has lost.
	}
	doc, err := c.readSnapshot(ctx, h.Snapshot)
	if err != nil {
		return nil, err
	}
	return c.replay(ctx, h, contentAt{h.start(), doc}, at)
}

// CachedContent is Content for a position whose content is cached; otherwise it
// returns nil.
func (c *contentReader) CachedContent(at Position) *document.Document {
	if newest := c.cached(); newest.Position == at {
		return newest.doc
	}
	return nil
}

// cached returns a copy of the cached content, without a document if there is
// none.
func (c *contentReader) cached() contentAt {
	c.contents.mu.Lock()
	defer c.contents.mu.Unlock()
	copied := c.contents.newest
	if copied.doc != nil {
		copied.doc = copied.doc.Clone()
	}
	return copied
}

// CacheContent caches the content at a position. The caller must not change doc
// any more.
func (c *contentReader) CacheContent(at Position, doc *document.Document) {
	c.contents.mu.Lock()
	defer c.contents.mu.Unlock()
	c.contents.newest = contentAt{at, doc}
}

// isOlder reports whether the content that is cached is older than a position.
func (c *contentCache) isOlder(at Position) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest.doc == nil || c.newest.Version < at.Version
}

// uncheckedError has content of which it is not known whether the Manager can
// use it. To find out, functions of users are called, so a transition does not.
type uncheckedError struct{ contentAt }

func (e *uncheckedError) Error() string { return "workspace: content is not checked" }

// checkFits returns an uncheckedError if it is not known that the Manager can
// use the content at the head.
func (c *contentReader) checkFits(ctx context.Context, h *Head) error {
	at := h.Position()
	if c.contents.fits == nil || c.checked != nil && at == *c.checked || c.contents.isFitting(at) {
		return nil
	}
	doc, err := c.Content(ctx, h, at)
	if err != nil {
		return err
	}
	return &uncheckedError{contentAt{at, doc}}
}

func (c *contentCache) isFitting(at Position) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fitting == at
}

// noteFitting notes that the content at a position fits: the Manager has loaded
// or made it.
func (c *contentCache) noteFitting(at Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fitting = at
}

// outcomesOf returns the outcomes in a blob, if they are cached.
func (c *contentCache) outcomesOf(name string) ([]Outcome, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcomes, c.outcomesName == name
}

// noteOutcomes caches the outcomes in a blob. The list must not be changed any
// more.
func (c *contentCache) noteOutcomes(name string, list []Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes, c.outcomesName = list, name
}

// readSnapshot returns the content of a snapshot. Without one, it is empty.
func (c *contentReader) readSnapshot(ctx context.Context, s *snapshot) (*document.Document, error) {
	if s == nil || s.Parts.len() == 0 {
		return document.New(), nil
	}
	var names []string
	for n, err := range s.Parts.all(ctx, c.readLists) {
		if err != nil {
			return nil, err
		}
		if n.level == 0 {
			names = append(names, n.text)
		}
	}
	parts, err := c.fetchBlobs(ctx, names)
	if err != nil {
		return nil, err
	}
	return document.Decode(bytes.Join(parts, nil))
}

// replay applies the records from one position to another, and caches the
// content, unless that would displace newer content of the same head.
func (c *contentReader) replay(
	ctx context.Context, h *Head, from contentAt, at Position,
) (*document.Document, error) {
	if err := c.applyRecords(ctx, h, from, at); err != nil {
		return nil, err
	}
	if at == h.Position() || c.contents.isOlder(at) {
		c.CacheContent(at, from.doc.Clone())
	}
	return from.doc, nil
}

// applyRecords changes a document by the records from one position to another.
func (c *contentReader) applyRecords(ctx context.Context, h *Head, from contentAt, at Position) error {
	end := from.Position
	for r, err := range c.records(ctx, h, end, at.Version) {
		if err == nil {
			err = from.doc.ApplyRecord(r.Effects, originOf(r))
		}
		if err != nil {
			return err
		}
		end = Position{r.Version, r.Chain}
	}
	if end != at {
		return c.errBrokenChain()
	}
	return nil
}

func (c *contentReader) errBrokenChain() error {
	return corrupt(c.key, "the records do not lead to the head")
}

// isMissing reports whether err says that a blob is missing.
func isMissing(err error) bool { return errors.As(err, new(*missingBlobError)) }
