package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// past refers to what compaction has kept of the time before the snapshot. The
// present is loaded without it. The zero past has nothing.
//
//	Oldest            Snapshot      Version
//	  |---segment---|---segment---|---records---|
//
// Each segment begins with an older snapshot, and has the records from it to the
// next segment, the last one to the snapshot of the head.
type past struct {
	Oldest uint64 `json:"oldest"` // the version of the first segment
	Bytes  int    `json:"bytes"`  // of its snapshots and records
	Blob   string `json:"blob"`   // has the segments, the oldest first
}

// segment is a part of the past.
type segment struct {
	Snapshot snapshot `json:"snapshot"`
	// Records has the names of blobs that list the entries of the records, the
	// oldest first. That of the first record has the version after the snapshot.
	Records     blobList `json:"records,omitzero"`
	RecordBytes int      `json:"record_bytes"`
}

// segmentPart is the number of entries of records in one blob. It is a variable
// so that tests reach it with few.
var segmentPart = 2048

// minSegments is the least number of segments in which a long past is cut, so
// that what is dropped at once is a small part of it.
const minSegments = 8

// segmentsAtOnce is the number of blobs with entries that are read at once.
const segmentsAtOnce = 16

// Oldest returns the oldest version whose content can be read.
func (h *Head) Oldest() uint64 {
	if h.Past != (past{}) {
		return h.Past.Oldest
	}
	return h.start().Version
}

// segments returns the segments of the past.
func (c *contentReader) segments(ctx context.Context, h *Head) ([]segment, error) {
	if h.Past == (past{}) {
		return nil, nil
	}
	list, err := fetchBlobJSON[[]segment](ctx, &c.blobStore, h.Past.Blob)
	if err == nil && (len(list) == 0 || list[0].Snapshot.Version != h.Past.Oldest) {
		err = corrupt(c.blobKey(h.Past.Blob), "it does not begin with the oldest version")
	}
	return list, err
}

// segmentAt returns the last segment that begins at a version or before. The
// past must have one.
func (c *contentReader) segmentAt(ctx context.Context, h *Head, version uint64) (segment, error) {
	list, err := c.segments(ctx, h)
	if err != nil {
		return segment{}, err
	}
	for _, s := range slices.Backward(list) {
		if s.Snapshot.Version <= version {
			return s, nil
		}
	}
	return segment{}, c.errBrokenChain()
}

// oldest returns the position after which there are records.
func (c *contentReader) oldest(ctx context.Context, h *Head) (Position, error) {
	if h.Past == (past{}) {
		return h.start(), nil
	}
	s, err := c.segmentAt(ctx, h, h.Past.Oldest)
	return s.Snapshot.Position, err
}

// pastContent returns the content at a position before the snapshot. It caches
// nothing, since the next content to be read is most likely the present one.
func (c *contentReader) pastContent(ctx context.Context, h *Head, at Position) (*document.Document, error) {
	if at.Version < h.Oldest() {
		return nil, fmt.Errorf("version %d: %w", at.Version, state.ErrCompacted)
	}
	s, err := c.segmentAt(ctx, h, at.Version)
	if err != nil {
		return nil, err
	}
	doc, err := c.readSnapshot(ctx, &s.Snapshot)
	if err != nil {
		return nil, err
	}
	return doc, c.applyRecords(ctx, h, contentAt{s.Snapshot.Position, doc}, at)
}

// pastEntries yields the entries of the records of the past after a version and
// up to another, with the versions.
func (c *contentReader) pastEntries(ctx context.Context, h *Head, after, to uint64) iter.Seq2[listNode, error] {
	return func(yield func(listNode, error) bool) {
		segments, err := c.segments(ctx, h)
		if err != nil {
			yield(listNode{}, err)
			return
		}
		for i, s := range segments {
			end := h.start().Version
			if i+1 < len(segments) {
				end = segments[i+1].Snapshot.Version
			}
			if end <= after {
				continue
			}
			version := s.Snapshot.Version
			for entry, err := range c.segmentEntries(ctx, &s) {
				if version >= to {
					return
				}
				if version++; err == nil && version <= after {
					continue
				}
				if !yield(listNode{text: entry, from: version - 1, to: version}, err) || err != nil {
					return
				}
			}
			if version != end {
				yield(listNode{}, c.errBrokenChain())
				return
			}
		}
	}
}

// segmentEntries yields the entries of the records of a segment.
func (c *contentReader) segmentEntries(ctx context.Context, s *segment) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		for n, err := range s.Records.all(ctx, c.readLists) {
			if err != nil {
				yield("", err)
				return
			}
			if n.level == 0 {
				names = append(names, n.text)
			}
		}
		for some := range slices.Chunk(names, segmentsAtOnce) {
			lists, err := c.fetchLists(ctx, some)
			for _, list := range lists {
				for entry := range strings.SplitSeq(string(list), listSeparator) {
					if !yield(entry, nil) {
						return
					}
				}
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// pastBlobs yields the names of all blobs of the past.
func (c *contentReader) pastBlobs(ctx context.Context, h *Head) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if h.Past == (past{}) {
			return
		}
		segments, err := c.segments(ctx, h)
		if !yield(h.Past.Blob, err) || err != nil {
			return
		}
		for i := range segments {
			for name, err := range c.segmentBlobs(ctx, &segments[i]) {
				if !yield(name, err) || err != nil {
					return
				}
			}
		}
	}
}

// segmentBlobs yields the names of all blobs of a segment.
func (c *contentReader) segmentBlobs(ctx context.Context, s *segment) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, list := range []blobList{s.Snapshot.Parts, s.Records} {
			for n, err := range list.all(ctx, c.readLists) {
				if !yield(n.text, err) || err != nil {
					return
				}
			}
		}
		for entry, err := range c.segmentEntries(ctx, s) {
			var names []string
			if err == nil {
				names, err = c.recordBlobs(ctx, entry)
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
		}
	}
}

// A past is also kept by a compaction that moves the snapshot and the records
// before its position to the past, instead of dropping them, and drops the
// oldest segments until the rest has at most history bytes of records.

// keep moves the snapshot, and the records up to a version, to the past, which
// then has at most history bytes of records, unless there are more since the
// last compaction. limit is the position of the next snapshot.
func (t *transition) keep(limit Position, history int) error {
	segments, err := t.reader.segments(t.ctx, t.Head)
	if err != nil {
		return err
	}
	newest := segment{Snapshot: snapshot{Position: t.start()}}
	if t.Snapshot != nil {
		newest.Snapshot = *t.Snapshot
	}
	entries, err := t.takeRecords(limit.Version)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		newest.RecordBytes += recordLength(entry)
	}
	total := newest.RecordBytes
	for _, s := range segments {
		total += s.RecordBytes
	}
	for total > history && len(segments) > 0 {
		total -= segments[0].RecordBytes
		if err := t.dropSegment(&segments[0]); err != nil {
			return err
		}
		segments = segments[1:]
	}
	if n := len(segments); n > 0 && segments[n-1].RecordBytes+newest.RecordBytes <= history/minSegments {
		if err := t.dropParts(newest.Snapshot.Parts); err != nil {
			return err
		}
		newest.Snapshot, newest.Records = segments[n-1].Snapshot, segments[n-1].Records
		newest.RecordBytes += segments[n-1].RecordBytes
		segments = segments[:n-1]
	}
	for part := range slices.Chunk(entries, segmentPart) {
		newest.Records.push(t.addBlob([]byte(strings.Join(part, listSeparator))), t.addBlob)
	}
	return t.setPast(append(segments, newest))
}

// setPast replaces the segments of the past.
func (t *transition) setPast(segments []segment) error {
	if t.Past != (past{}) {
		t.dropBlob(t.Past.Blob)
	}
	data, err := jsontext.Marshal(segments)
	if err != nil {
		return err
	}
	t.Past = past{Oldest: segments[0].Snapshot.Version, Blob: t.addBlob(data)}
	for _, s := range segments {
		t.Past.Bytes += s.Snapshot.Bytes + s.RecordBytes
	}
	return nil
}

// dropPast drops the past. With damaged, damaged blobs do not matter:
// dropStray drops what they refer to. A missing blob does, since the read may be stale,
// and what it refers to has to go at once.
func (t *transition) dropPast(damaged bool) error {
	for name, err := range t.reader.pastBlobs(t.ctx, t.Head) {
		switch {
		case err == nil:
			t.dropBlob(name)
		case !damaged || !errors.Is(err, work.ErrCorrupt) || isMissing(err):
			return err
		}
	}
	t.Past = past{}
	return nil
}

func (t *transition) dropSegment(s *segment) error {
	for name, err := range t.reader.segmentBlobs(t.ctx, s) {
		if err != nil {
			return err
		}
		t.dropBlob(name)
	}
	return nil
}
