package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
)

// contentReader reads what heads of one workspace refer to: snapshots, records,
// messages and outcomes. It is safe for concurrent use.
type contentReader struct {
	blobStore
	contents *contentCache
	// lists holds the lists of the records of segments, which Collect reads after
	// each compaction. The cache of all blobs has others by then.
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
	if c.scanPays(h) {
		scanning := *c
		c = &scanning
		if err := c.scanBlobs(ctx, h); err != nil {
			return nil, err
		}
	}
	doc, err := c.readSnapshot(ctx, h.Snapshot)
	if err != nil {
		return nil, err
	}
	return c.replay(ctx, h, contentAt{h.start(), doc}, at)
}

// scanFrom is the number of records from which they are read at once, by a scan.
// It is a variable so that tests reach it with few.
var scanFrom uint64 = 16

// scanPays reports whether the content at a head is read faster by a scan of
// blobs than blob by blob. A scan also reads messages that wait.
func (c *contentReader) scanPays(h *Head) bool {
	return c.scans && h.Records.len() >= scanFrom && h.QueueBytes <= h.RecordBytes+h.snapshotBytes()
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

// commitFitting is commitRun for a transition that calls checkFits. It returns
// the error of Options.Fits if the content does not fit.
func (l *Ledger) commitFitting(ctx context.Context, apply transitionFunc) (*Head, error) {
	var checked *Position
	for {
		h, err := l.commitRun(ctx, func(t *transition) error {
			t.reader.checked = checked
			return apply(t)
		})
		var unchecked *uncheckedError
		if !errors.As(err, &unchecked) || errors.Is(err, store.ErrUnknownOutcome) {
			return h, err
		}
		if err := l.contents.fits(unchecked.doc); err != nil {
			return nil, err
		}
		checked = &unchecked.Position
		l.contents.noteFitting(*checked)
	}
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
	var parts [][]byte
	for n, err := range s.Parts.walk(ctx, 0, c.fetchBlob) {
		if err != nil {
			return nil, err
		}
		if n.level > 0 {
			continue
		}
		text, err := c.fetchBlob(ctx, n.text)
		if err != nil {
			return nil, err
		}
		parts = append(parts, text)
	}
	return document.Decode(bytes.Join(parts, nil))
}

// replay applies the records from one position to another, and caches the
// content.
func (c *contentReader) replay(
	ctx context.Context, h *Head, from contentAt, at Position,
) (*document.Document, error) {
	if err := c.applyRecords(ctx, h, from, at); err != nil {
		return nil, err
	}
	c.CacheContent(at, from.doc.Clone())
	return from.doc, nil
}

// applyRecords changes a document by the records from one position to another.
func (c *contentReader) applyRecords(ctx context.Context, h *Head, from contentAt, at Position) error {
	end := from.Position
	for r, err := range c.Records(ctx, h, from.Position) {
		if err != nil {
			return err
		}
		if r.Version > at.Version {
			break
		}
		if err := from.doc.Apply(r.Effects); err != nil {
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

// Records yields the records of a head after a position, and checks that the
// head authenticates them.
func (c *contentReader) Records(ctx context.Context, h *Head, after Position) iter.Seq2[*Record, error] {
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
		if end != h.Position() {
			yield(nil, c.errBrokenChain())
		}
	}
}

// storedRecords yields the records after a version without decoding them.
func (c *contentReader) storedRecords(
	ctx context.Context, h *Head, after uint64,
) iter.Seq2[*storedRecord, error] {
	return func(yield func(*storedRecord, error) bool) {
		lists := []iter.Seq2[listNode, error]{h.Records.walk(ctx, after, c.fetchBlob)}
		if after < h.start().Version {
			lists = slices.Insert(lists, 0, c.pastEntries(ctx, h, after))
		}
		for _, list := range lists {
			for n, err := range list {
				if err == nil && n.level > 0 {
					continue
				}
				var s *storedRecord
				if err == nil {
					s, err = c.fetchRecord(ctx, n)
				}
				if !yield(s, err) || err != nil {
					return
				}
			}
		}
	}
}

// fetchRecord reads the record of an entry.
func (c *contentReader) fetchRecord(ctx context.Context, n listNode) (*storedRecord, error) {
	names, err := c.recordBlobs(ctx, n)
	if err != nil {
		return nil, err
	}
	var text []byte
	for i, name := range names {
		part, err := c.fetchBlob(ctx, name)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			text = slices.Clip(part)
		} else {
			text = append(text, part...)
		}
	}
	s, err := newStoredRecord(n.to, text)
	if err != nil {
		return nil, corrupt(c.blobKey(names[0]), err.Error())
	}
	return s, nil
}

// The entry of a record is the name of its blob and the length of the record. A
// long record is cut into several blobs; its entry has the name of a blob with
// their names.
const cutRecord = "*"

func recordEntry(name string, length int) string { return name + ":" + strconv.Itoa(length) }

// recordLength returns the length of the record of an entry.
func recordLength(entry string) int {
	_, text, _ := strings.Cut(entry, ":")
	n, _ := strconv.Atoi(text)
	return n
}

// recordBlobs returns the names of the blobs with the text of a record.
func (c *contentReader) recordBlobs(ctx context.Context, n listNode) ([]string, error) {
	name, _, _ := strings.Cut(n.text, ":")
	name, long := strings.CutPrefix(name, cutRecord)
	if !long {
		return []string{name}, nil
	}
	list, err := c.fetchBlob(ctx, name)
	return strings.Split(string(list), listSeparator), err
}

// allRecordBlobs returns the names of all blobs of a record.
func (c *contentReader) allRecordBlobs(ctx context.Context, n listNode) ([]string, error) {
	names, err := c.recordBlobs(ctx, n)
	if list, long := strings.CutPrefix(n.text, cutRecord); long {
		name, _, _ := strings.Cut(list, ":")
		names = append(names, name)
	}
	return names, err
}

// PositionAt returns the position of a version.
func (c *contentReader) PositionAt(ctx context.Context, h *Head, version uint64) (Position, error) {
	switch {
	case version > h.Version:
		return Position{}, fmt.Errorf("%w: there is no version %d yet", ErrInvalid, version)
	case version < h.Oldest():
		return Position{}, fmt.Errorf("version %d: %w", version, state.ErrCompacted)
	case version == h.start().Version:
		return h.start(), nil
	case version == h.Oldest():
		return c.oldest(ctx, h)
	}
	for s, err := range c.storedRecords(ctx, h, version-1) {
		if err != nil {
			return Position{}, err
		}
		return s.position(), nil // replay checks that it is authentic
	}
	return Position{}, c.errBrokenChain()
}

// isMissing reports whether err says that a blob is missing.
func isMissing(err error) bool { return errors.As(err, new(*missingBlobError)) }
