package engine

import (
	"slices"
	"sort"
	"time"
)

// Record is an op as the journal keeps it.
type Record struct {
	Address
	Author   *Author
	Old, New *Cell // nil if the slot is secret

	written *any  // what was written, nil if New has it or the slot is secret
	tail    int32 // as in [Update]

	Kind       uint8 // of the op
	Overwrites bool

	classes Bits // the visibility classes that see it, or nil for that of the slot
	version uint64
	at      time.Duration // since the origin of the branch
}

// Written returns what the op wrote, without its size. It has no value if the
// slot is secret or the op was a deletion.
func (r *Record) Written() Update {
	switch {
	case r.written != nil:
		return Update{Value: *r.written, Tail: r.tail}
	case r.New != nil:
		return Update{Value: r.New.Value, Tail: r.tail}
	}
	return Update{}
}

// seenBy reports whether a view includes the record.
func (r *Record) seenBy(v View) bool {
	if r.classes == nil {
		return v.Sees(r.Slot.Class)
	}
	return v.seesAny(r.classes)
}

// journal keeps the latest records, oldest first.
//
// Copies of the header share records. Each copy reads only up to its own end.
type journal struct {
	closed []journalSegment
	open   journalSegment
	len    int
	bytes  int
	start  uint64 // records of versions up to this one are no longer held
}

type journalSegment struct {
	records []Record
	bytes   int
}

func (s *journalSegment) last() uint64 { return s.records[len(s.records)-1].version }

// journalBounds are the most records and bytes of the journal, beyond the
// segment that is open.
type journalBounds struct {
	records int // 0 is no limit
	bytes   int

	segmentLen   int // a segment of more records, or more bytes, is closed
	segmentBytes int
}

const maxBytes = 8 << 20 // of values that a journal keeps alive

// journalBounds returns the bounds of the journal.
func (l *Layout) journalBounds() journalBounds {
	b := journalBounds{records: l.Journal, bytes: maxBytes, segmentLen: 128}
	if b.records > 0 {
		b.segmentLen = min(max(b.records/8, 4), b.segmentLen)
	}
	b.segmentBytes = b.bytes / 128
	return b
}

// next adds a record of a version, which is zero otherwise, and returns it.
// size is what the record keeps alive. If there are too many records, next
// drops the oldest segments.
func (j *journal) next(bounds *journalBounds, version uint64, size int) *Record {
	n := len(j.open.records)
	if n == cap(j.open.records) || n >= bounds.segmentLen || j.open.bytes >= bounds.segmentBytes {
		j.grow(bounds, version)
	}
	n = len(j.open.records)
	j.open.records = j.open.records[:n+1]
	j.open.bytes += size
	j.bytes += size
	j.len++
	r := &j.open.records[n]
	r.version = version
	return r
}

// grow makes room for a record in the open segment, or begins another one. The
// records of a version stay together.
func (j *journal) grow(bounds *journalBounds, version uint64) {
	n := len(j.open.records)
	if n > 0 && j.open.last() == version {
		j.open.records = slices.Grow(j.open.records, 1)
		return
	}
	if n > 0 {
		// A new array each time: a common one would hold what trim drops.
		closed := make([]journalSegment, len(j.closed)+1)
		closed[copy(closed, j.closed)] = j.open
		j.closed = closed
		j.trim(bounds)
	}
	j.open = journalSegment{records: slices.Grow([]Record(nil), min(max(2*n, 1), bounds.segmentLen))}
}

func (j *journal) trim(bounds *journalBounds) {
	for len(j.closed) > 0 && (bounds.records > 0 && j.len-len(j.closed[0].records) >= bounds.records || j.bytes > bounds.bytes) {
		oldest := &j.closed[0]
		j.start = oldest.last()
		j.len -= len(oldest.records)
		j.bytes -= oldest.bytes
		j.closed = j.closed[1:]
	}
}

// last returns the version of the latest record, or 0.
func (j *journal) last() uint64 {
	switch {
	case len(j.open.records) > 0:
		return j.open.last()
	case len(j.closed) > 0:
		return j.closed[len(j.closed)-1].last()
	}
	return 0
}

// segment returns segment i; the open one is the last.
func (j *journal) segment(i int) *journalSegment {
	if i < len(j.closed) {
		return &j.closed[i]
	}
	return &j.open
}

// journalCursor is at a record of a journal.
type journalCursor struct {
	*Record
	journal *journal
	segment int
	index   int // in the segment
}

// find moves to the first record of a version greater than this one, and
// reports whether there is one.
func (c *journalCursor) find(version uint64) bool {
	j := c.journal
	c.segment = sort.Search(len(j.closed), func(i int) bool { return j.closed[i].last() > version })
	records := j.segment(c.segment).records
	c.index = sort.Search(len(records), func(i int) bool { return records[i].version > version }) - 1
	return c.next()
}

// next moves to the next record, if there is one.
func (c *journalCursor) next() bool {
	c.index++
	for ; c.segment <= len(c.journal.closed); c.segment, c.index = c.segment+1, 0 {
		if records := c.journal.segment(c.segment).records; c.index < len(records) {
			c.Record = &records[c.index]
			return true
		}
	}
	return false
}
