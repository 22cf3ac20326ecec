package ledger

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

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

// recordBlob returns the name of the blob in the entry of a record, and whether
// the blob has the names of others, with the parts of the record.
func recordBlob(entry string) (name string, cut bool) {
	name, _, _ = strings.Cut(entry, ":")
	return strings.CutPrefix(name, cutRecord)
}

// recordBlobs returns the names of all blobs of a record.
func (c *contentReader) recordBlobs(ctx context.Context, entry string) ([]string, error) {
	name, cut := recordBlob(entry)
	if !cut {
		return []string{name}, nil
	}
	list, err := c.fetchBlob(ctx, name)
	return append(strings.Split(string(list), listSeparator), name), err
}

// RecordsBetween yields the records of a head after a version and up to another.
// If that is the version of the head, it checks that the head authenticates them.
func (c *contentReader) RecordsBetween(ctx context.Context, h *Head, after, to uint64) iter.Seq2[*work.Record, error] {
	return func(yield func(*work.Record, error) bool) {
		at, err := c.knownPosition(ctx, h, after)
		if err != nil {
			yield(nil, err)
			return
		}
		for r, err := range c.records(ctx, h, at, to) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// records is RecordsBetween for those after a position. If that has no chain, the
// record of its version is read with them.
func (c *contentReader) records(ctx context.Context, h *Head, at Position, to uint64) iter.Seq2[*work.Record, error] {
	return func(yield func(*work.Record, error) bool) {
		from := at.Version
		if at.Chain == "" && from > 0 {
			from--
		}
		for s, err := range c.storedRecords(ctx, h, from, to) {
			if err == nil && s.version == at.Version {
				at = s.position()
				continue
			}
			var r *work.Record
			if err == nil {
				r, err = s.decode(c.key, at)
			}
			if !yield(r, err) || err != nil {
				return
			}
			at = s.position()
		}
		if to >= h.Version && at != h.Position() {
			yield(nil, c.errBrokenChain())
		}
	}
}

// PositionAt returns the position of a version. If it is from the record of the
// version, only what follows shows that it is authentic.
func (c *contentReader) PositionAt(ctx context.Context, h *Head, version uint64) (Position, error) {
	at, err := c.knownPosition(ctx, h, version)
	if err != nil || at.Chain != "" || version == 0 {
		return at, err
	}
	s, err := c.recordAt(ctx, h, version)
	if err != nil {
		return Position{}, err
	}
	return s.position(), nil
}

// knownPosition is PositionAt without the chain if only the record of the version
// has it.
func (c *contentReader) knownPosition(ctx context.Context, h *Head, version uint64) (Position, error) {
	switch {
	case version > h.Version:
		return Position{}, fmt.Errorf("%w: there is no version %d yet", work.ErrInvalid, version)
	case version < h.Oldest():
		return Position{}, fmt.Errorf("version %d: %w", version, state.ErrCompacted)
	case version == h.Version:
		return h.Position(), nil
	case version == h.start().Version:
		return h.start(), nil
	case version == h.Oldest():
		return c.oldest(ctx, h)
	}
	return Position{Version: version}, nil
}

// ContentAt returns the content at a version, and its position. The caller may
// change the document.
func (c *contentReader) ContentAt(ctx context.Context, h *Head, version uint64) (Position, *document.Document, error) {
	at, err := c.PositionAt(ctx, h, version)
	if err != nil {
		return at, nil, err
	}
	doc, err := c.Content(ctx, h, at)
	return at, doc, err
}

// recordAt returns the record with a version, without decoding it.
func (c *contentReader) recordAt(ctx context.Context, h *Head, version uint64) (*storedRecord, error) {
	for s, err := range c.storedRecords(ctx, h, version-1, version) {
		return s, err
	}
	return nil, c.errBrokenChain()
}

// firstRecords is the number of records that are read at first. A loop that goes
// on reads more at once. It is a variable so that tests go on with few.
var firstRecords = 64

const (
	// recordsAtOnce is the maximum number of records that are read at once.
	recordsAtOnce = 1024
	// recordBytesAtOnce is the maximum number of their bytes. Those of a record
	// that is cut are read alone.
	recordBytesAtOnce = 1 << 20
)

// storedRecords yields the records after a version and up to another without
// decoding them. It reads several at once.
func (c *contentReader) storedRecords(ctx context.Context, h *Head, after, to uint64) iter.Seq2[*storedRecord, error] {
	return func(yield func(*storedRecord, error) bool) {
		var group []listNode
		size, most := 0, firstRecords
		flush := func() bool {
			list := group
			group, size = nil, 0
			return c.fetchRecords(ctx, list, yield)
		}
		for n, err := range c.recordEntries(ctx, h, after, to) {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			length := min(recordLength(n.text), recordPartBytes) // the parts of a cut one are read later
			if size+length > recordBytesAtOnce && !flush() {
				return
			}
			group, size = append(group, n), size+length
			if len(group) == most {
				if !flush() {
					return
				}
				most = min(4*most, recordsAtOnce)
			}
		}
		flush()
	}
}

// recordEntries yields the entries of the records after a version and up to
// another, with their versions.
func (c *contentReader) recordEntries(ctx context.Context, h *Head, after, to uint64) iter.Seq2[listNode, error] {
	return func(yield func(listNode, error) bool) {
		if after < h.start().Version {
			for n, err := range c.pastEntries(ctx, h, after, to) {
				if !yield(n, err) || err != nil {
					return
				}
			}
		}
		for n, err := range h.Records.walk(ctx, after, to, c.readLists) {
			if (err != nil || n.level == 0) && !yield(n, err) {
				return
			}
		}
	}
}

// fetchRecords yields the records of entries, and reports whether the loop goes
// on.
func (c *contentReader) fetchRecords(
	ctx context.Context, entries []listNode, yield func(*storedRecord, error) bool,
) bool {
	names := make([]string, len(entries))
	for i, n := range entries {
		names[i], _ = recordBlob(n.text)
	}
	blobs, failed := c.fetchBlobs(ctx, names)
	for i, blob := range blobs {
		s, err := c.joinRecord(ctx, entries[i], blob)
		if !yield(s, err) || err != nil {
			return false
		}
	}
	if failed != nil {
		yield(nil, failed)
	}
	return failed == nil
}

// joinRecord returns the record of an entry, whose blob was read.
func (c *contentReader) joinRecord(ctx context.Context, n listNode, blob []byte) (*storedRecord, error) {
	name, cut := recordBlob(n.text)
	if cut {
		parts, err := c.fetchBlobs(ctx, strings.Split(string(blob), listSeparator))
		if err != nil {
			return nil, err
		}
		blob = bytes.Join(parts, nil)
	}
	s, err := newStoredRecord(n.to, blob)
	if err != nil {
		return nil, corrupt(c.blobKey(name), err.Error())
	}
	return s, nil
}

// listsAtOnce is the number of list blobs that are read at once.
const listsAtOnce = 256

// readLists reads list blobs. Those of the upper levels, through which all
// others are found, stay in a cache of their own.
func (c *contentReader) readLists(ctx context.Context, level int, names []string) ([][]byte, error) {
	names = names[:min(len(names), listsAtOnce)]
	if level == 1 {
		return c.fetchBlobs(ctx, names)
	}
	return c.fetchLists(ctx, names)
}

// fetchLists is fetchBlobs with the cache of lists.
func (c *contentReader) fetchLists(ctx context.Context, names []string) ([][]byte, error) {
	lists := make([][]byte, len(names))
	var unknown []string
	for i, name := range names {
		if lists[i] = c.lists.get(name); lists[i] == nil {
			unknown = append(unknown, name)
		}
	}
	blobs, err := c.fetchBlobs(ctx, unknown)
	for i, name := range names {
		if lists[i] != nil {
			continue
		}
		if len(blobs) == 0 {
			return lists[:i], err
		}
		lists[i], blobs = blobs[0], blobs[1:]
		c.lists.add(name, lists[i])
	}
	return lists, nil
}
