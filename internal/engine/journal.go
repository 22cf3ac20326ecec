package engine

import (
	"sort"
	"time"
)

// Record is an op as the journal keeps it.
type Record struct {
	Op
	Old, New *Cell // nil if the slot is secret

	version uint64
	seq     int           // within the version
	at      time.Duration // since the origin of the branch
}

// before reports whether r was written before o.
func (r *Record) before(o *Record) bool {
	return r.version < o.version || r.version == o.version && r.seq < o.seq
}

// journal keeps the latest records of one visibility class, oldest first. Each
// class has a journal with separate limits: with a shared limit, the records
// that remain would reveal how much other classes wrote.
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

const (
	journalBytes = 8 << 20  // the most bytes of values that one journal keeps alive
	segmentBytes = 64 << 10 // a segment of more bytes is closed
	segmentLen   = 128      // the most records of a segment, unless one version has more
)

// add appends a record. If there are more than limit, it drops the oldest
// segments.
func (j *journal) add(r Record, limit int) {
	if n := len(j.open.records); n > 0 && j.open.last() != r.version &&
		(n == cap(j.open.records) || j.open.bytes >= segmentBytes) {
		j.closed = append(j.closed[:len(j.closed):len(j.closed)], j.open)
		j.open = journalSegment{records: make([]Record, 0, min(2*n, segmentLen))}
		j.trim(limit)
	}
	if j.open.records == nil {
		j.open.records = make([]Record, 0, 2)
	}
	size := r.Size
	if r.Old != nil && !r.Shares {
		size += r.Old.Size
	}
	j.open.records = append(j.open.records, r)
	j.open.bytes += size
	j.bytes += size
	j.len++
}

func (j *journal) trim(limit int) {
	for len(j.closed) > 0 && (limit > 0 && j.len-len(j.closed[0].records) >= limit || j.bytes > journalBytes) {
		oldest := &j.closed[0]
		j.start = oldest.last()
		j.len -= len(oldest.records)
		j.bytes -= oldest.bytes
		j.closed = j.closed[1:]
	}
}

// segment returns segment i; the open one is the last.
func (j *journal) segment(i int) *journalSegment {
	if i < len(j.closed) {
		return &j.closed[i]
	}
	return &j.open
}

// journalCursor is a place in a journal.
type journalCursor struct {
	journal *journal
	segment int
	record  int
}

// after returns a cursor at the first record of a version greater than this
// one.
func (j *journal) after(version uint64) journalCursor {
	c := journalCursor{journal: j}
	c.segment = sort.Search(len(j.closed), func(i int) bool { return j.closed[i].last() > version })
	records := j.segment(c.segment).records
	c.record = sort.Search(len(records), func(i int) bool { return records[i].version > version })
	return c
}

// head returns the record at the cursor, nil after the last one.
func (c *journalCursor) head() *Record {
	for ; c.segment <= len(c.journal.closed); c.segment, c.record = c.segment+1, 0 {
		if s := c.journal.segment(c.segment); c.record < len(s.records) {
			return &s.records[c.record]
		}
	}
	return nil
}
