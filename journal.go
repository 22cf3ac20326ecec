package state

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Op names what a write does.
type Op string

// The ops of [Change].
const (
	OpSet     Op = "set"     // combined by a handler, or without one replaced
	OpReplace Op = "replace" // Replace and Patch
	OpUpdate  Op = "update"  // Field.Update
	OpDelete  Op = "delete"  // Delete, Patch with nil, EndRun
	OpAppend  Op = "append"  // a result was appended to the history
	OpPop     Op = "pop"     // the last result was removed
	OpReset   Op = "reset"   // the results were replaced
	OpRevert  Op = "revert"  // Revert
)

// Change is one write to one field. A version that wrote several fields has as
// many changes, with one Version.
type Change struct {
	Version uint64
	Time    time.Time
	Agent   string // who wrote; empty for the host
	Cause   string // as given to WithCause
	Op      Op
	Field   string // empty for the history
	// Value is a copy of what was written, before it was merged: the update, an
	// [InferenceResult], or [Masked] if the field is secret. It is nil where
	// something was deleted.
	Value any
}

// record is a change as the journal keeps it.
type record struct {
	version  uint64
	seq      int           // within the version
	at       time.Duration // since the branch's origin
	op       op
	old, new *entry
}

func (r *record) before(o *record) bool {
	return r.version < o.version || r.version == o.version && r.seq < o.seq
}

// journal keeps the latest changes to the fields of one read class, oldest
// first. Copies of the header share records; each reads only up to its own end.
type journal struct {
	full  []journalPart
	tail  journalPart
	len   int
	bytes int
	start uint64 // changes of versions up to this one are no longer held
}

type journalPart struct {
	records []record
	bytes   int
}

const (
	journalBytes     = 8 << 20  // of values that one journal keeps alive
	journalPartBytes = 64 << 10 // after which a part is closed
	journalPartLen   = 128
)

// add appends a record and forgets the oldest, some at a time, beyond most.
func (j *journal) add(r record, most int) {
	if n := len(j.tail.records); n > 0 && j.tail.records[n-1].version != r.version &&
		(n == cap(j.tail.records) || j.tail.bytes >= journalPartBytes) {
		j.full = append(j.full[:len(j.full):len(j.full)], j.tail)
		j.tail = journalPart{records: make([]record, 0, min(2*n, journalPartLen))}
		for len(j.full) > 0 && (most > 0 && j.len-len(j.full[0].records) >= most || j.bytes > journalBytes) {
			old := j.full[0]
			j.start = old.records[len(old.records)-1].version
			j.len -= len(old.records)
			j.bytes -= old.bytes
			j.full = j.full[1:]
		}
	}
	if j.tail.records == nil {
		j.tail.records = make([]record, 0, 2)
	}
	size := r.op.size
	if r.old != nil && !r.op.handler.shares() {
		size += r.old.size
	}
	j.tail.records = append(j.tail.records, r)
	j.tail.bytes += size
	j.bytes += size
	j.len++
}

// records yields the records from a version on.
func (j *journal) records(after uint64) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for _, part := range append(slices.Clip(j.full), j.tail) {
			if n := len(part.records); n == 0 || part.records[n-1].version <= after {
				continue
			}
			for i := range part.records {
				if r := &part.records[i]; r.version > after && !yield(r) {
					return
				}
			}
		}
	}
}

// changes is what a handle can see of a branch's journals at one moment.
type changes struct {
	h        *handle
	version  uint64 // the handle's version
	last     uint64 // the branch's version
	start    uint64 // branch versions up to this one are not held
	journals []journal
}

// look returns what the handle can see of the journals. The branch is locked.
func (h *handle) look() changes {
	t := h.branch.tree.Load()
	c := changes{h: h, version: h.version(t), last: h.branch.version.Load()}
	c.start = h.branch.forked
	for class := range t.classes {
		if h.sees(class) {
			j := t.classes[class].journal
			c.journals = append(c.journals, j)
			c.start = max(c.start, j.start)
		}
	}
	return c
}

// version returns the number of versions that changed something the handle may
// read. The branch is locked, or frozen.
func (h *handle) version(t *tree) uint64 {
	if h.rights == nil {
		return h.branch.version.Load()
	}
	var n uint64
	for class := range t.classes {
		if h.sees(class) {
			n += t.classes[class].versions
		}
	}
	for i := range t.mixed {
		for class := range t.classes {
			if t.mixed[i].classes.has(class) && h.sees(class) {
				n += t.mixed[i].versions
				break
			}
		}
	}
	return n
}

// Version returns the number of the last version: how many there have been, or,
// on a bound handle, how many of them changed something it may read.
func (s *State) Version() uint64 {
	h := s.on()
	h.branch.mu.Lock()
	defer h.branch.mu.Unlock()
	return h.version(h.branch.tree.Load())
}

// after yields the records that the handle sees of branch versions after a
// number, in the order of their versions.
func (c *changes) after(version uint64) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		type source struct {
			next func() (*record, bool)
			head *record
		}
		var sources []source
		for i := range c.journals {
			next, stop := iter.Pull(c.journals[i].records(version))
			defer stop()
			if r, ok := next(); ok {
				sources = append(sources, source{next, r})
			}
		}
		var last *record
		for len(sources) > 0 {
			least := 0
			for i := range sources {
				if sources[i].head.before(sources[least].head) {
					least = i
				}
			}
			s := &sources[least]
			// What shows to several classes is in the journal of each.
			if last == nil || last.before(s.head) {
				last = s.head
				if !yield(last) {
					return
				}
			}
			r, ok := s.next()
			if !ok {
				sources = slices.Delete(sources, least, least+1)
				continue
			}
			s.head = r
		}
	}
}

// cursor is a position in the changes that a handle sees: after a version of
// the branch, which has a number for the handle.
type cursor struct{ branch, number uint64 }

// find returns the position after the handle's version since.
func (c *changes) find(since uint64) (cursor, error) {
	if since >= c.version {
		return cursor{c.last, c.version}, nil
	}
	var held []uint64 // the versions of the branch that the handle sees
	for r := range c.after(c.start) {
		if n := len(held); n == 0 || held[n-1] != r.version {
			held = append(held, r.version)
		}
	}
	first := c.version - uint64(len(held)) // the version before them
	switch {
	case since < first:
		return cursor{}, within("the journal", ErrCompacted)
	case since == first:
		return cursor{c.start, first}, nil
	}
	return cursor{held[since-first-1], since}, nil
}

// walk yields the changes after a position, but those up to the handle's version
// since, and returns the position after the last. names, if there are any,
// restricts it. It reports false if yield did.
func (c *changes) walk(at cursor, since uint64, names []string, yield func(Change) bool) (cursor, bool) {
	for r := range c.after(at.branch) {
		if r.version != at.branch {
			at = cursor{r.version, at.number + 1}
		}
		if at.number <= since || len(names) > 0 && !slices.Contains(names, r.op.field()) {
			continue
		}
		if !yield(c.h.change(r, at.number)) {
			return at, false
		}
	}
	return cursor{c.last, c.version}, true
}

// change returns a record as the handle's owner sees it.
func (h *handle) change(r *record, number uint64) Change {
	return Change{
		Version: number,
		Time:    h.branch.origin.Add(r.at).UTC().Round(0),
		Agent:   r.op.by.agent,
		Cause:   r.op.by.cause,
		Op:      r.op.kind,
		Field:   r.op.field(),
		Value:   h.written(&r.op),
	}
}

// Changes yields what was written after a version, oldest first, as of the time
// of the call. A bound handle sees the changes to what it may read, numbered
// without gaps. If the journal no longer reaches back that far, the only thing
// yielded is an error that is [ErrCompacted].
func (s *State) Changes(since uint64) iter.Seq2[Change, error] {
	h := *s.on()
	return func(yield func(Change, error) bool) {
		h.branch.mu.Lock()
		c := h.look()
		h.branch.mu.Unlock()
		at, err := c.find(since)
		if err != nil {
			yield(Change{}, err)
			return
		}
		c.walk(at, since, nil, func(c Change) bool { return yield(c, nil) })
	}
}

// Watch yields what was written after a version and then waits for more, until
// ctx ends or the loop is left. names, if there are any, restricts it to these
// fields; the empty name stands for the history. It holds no lock while the body
// of the loop runs and keeps nothing in between but its position: a loop that
// falls behind the journal gets an error that is [ErrCompacted], and ends. On
// something that no longer changes, such as a snapshot, it ends after the last
// change.
func (s *State) Watch(ctx context.Context, since uint64, names ...string) iter.Seq2[Change, error] {
	h := *s.on()
	names = slices.Clone(names)
	return func(yield func(Change, error) bool) {
		var at cursor
		for placed := false; ctx.Err() == nil; {
			c, wake, ended := h.await(placed, at)
			if wake != nil {
				select {
				case <-wake:
				case <-ctx.Done():
				}
				continue
			}
			var err error
			if !placed {
				at, err = c.find(since)
				placed = true
			} else if c.start > at.branch {
				err = within("the journal", ErrCompacted)
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
			var more bool
			at, more = c.walk(at, since, names, func(c Change) bool { return ctx.Err() == nil && yield(c, nil) })
			if !more || ended {
				return
			}
		}
	}
}

// await returns what the handle sees of the journals, or, if a watch that is at
// a position has seen all of it, a channel that the next commit closes. It also
// reports whether there will be no more.
func (h *handle) await(placed bool, at cursor) (c changes, wake chan struct{}, ended bool) {
	b := h.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	if placed && at.branch == b.version.Load() && b.ended == nil {
		if b.wake == nil {
			b.wake = make(chan struct{})
		}
		return c, b.wake, false
	}
	return h.look(), nil, b.ended != nil
}

// At returns a frozen view of a past version, as far as the journal reaches. It
// is the host's, and costs as much as was changed since. Secret fields are in it
// as they are now, since the journal does not hold them. The view has no journal
// of its own.
func (s *State) At(version uint64) (*State, error) {
	h := *s.on()
	if h.rights != nil {
		return nil, h.denied("look at a past version", "")
	}
	b := h.branch
	b.mu.Lock()
	c := h.look()
	t := b.tree.Load()
	b.owned = false
	b.mu.Unlock()
	switch {
	case version > c.last:
		return nil, within(fmt.Sprintf("version %d", version), ErrNotFound)
	case version < c.start:
		return nil, within(fmt.Sprintf("version %d", version), ErrCompacted)
	}
	past := t.clone()
	past.rewind(h.schema, &c, version)
	f := &branch{schema: b.schema, origin: b.origin, ended: ErrReadOnly, forked: version, reads: b.reads}
	f.tree.Store(past)
	f.version.Store(version)
	h.branch = f
	return &State{handle: h}, nil
}

// rewind undoes, in a tree of its own, all that was done after a version.
func (t *tree) rewind(s *Schema, c *changes, version uint64) {
	seen := map[fieldKey]bool{}
	touched := make(bits, len(t.classes)>>6+1)
	var last uint64
	undo := func() {
		if last != 0 {
			t.count(touched, -1)
			clear(touched)
		}
	}
	for r := range c.after(version) {
		if r.version != last {
			undo()
			last = r.version
		}
		touched.with(r.op.readClass())
		if r.op.spec.slot == historySlot && r.op.handler.overwrites() {
			for _, class := range s.resultClasses(stackOf(r.old), resultOf(r.new)) {
				touched.with(class)
			}
		}
		k := fieldKey{r.op.spec.slot, r.op.key}
		if seen[k] || r.op.spec.secret {
			continue
		}
		seen[k] = true
		now := t.get(r.op.spec, r.op.key)
		t.put(r.op.spec, r.op.key, r.old)
		t.member(r.op.spec, now, r.old)
	}
	undo()
	for class := range t.classes {
		t.classes[class].journal = journal{}
	}
}
