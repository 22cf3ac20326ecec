package engine

import (
	"context"
	"errors"
	"iter"
	"time"
)

// ErrNoVersion reports a version that does not exist yet.
var ErrNoVersion = errors.New("state: no such version")

// Entry is a record as a view sees it.
type Entry struct {
	*Record
	Version uint64 // among the versions that the view sees
	Time    time.Time
}

// Log is what a view sees of the journals of a branch at one moment.
type Log struct {
	layout   *Layout
	journals []journal
	origin   time.Time
	start    uint64 // versions of the branch up to this one are not held
	last     uint64 // the last version of the branch
	version  uint64 // the last version of the view
}

// Log returns what a view sees of the journals.
func (b *Branch) Log(v View) Log {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lockedLog(v)
}

func (b *Branch) lockedLog(v View) Log {
	l := Log{layout: b.layout, origin: b.origin, start: b.forked, last: b.version.Load(), version: b.seenVersion(v)}
	t := b.tree.Load()
	for class := range t.classes {
		if v.Sees(class) {
			j := t.classes[class].journal
			l.journals = append(l.journals, j)
			l.start = max(l.start, j.start)
		}
	}
	return l
}

// After yields the records of versions of the branch after this one, in the
// order in which they were written.
func (l *Log) After(version uint64) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		cursors := make([]journalCursor, len(l.journals))
		for i := range l.journals {
			cursors[i] = l.journals[i].after(version)
		}
		var last *Record
		for {
			earliest := earliestCursor(cursors)
			if earliest == nil {
				return
			}
			r := earliest.head()
			earliest.record++
			// A record that several classes see is in the journal of each.
			if last == nil || last.before(r) {
				last = r
				if !yield(r) {
					return
				}
			}
		}
	}
}

// earliestCursor returns the cursor whose record was written first, or nil.
func earliestCursor(cursors []journalCursor) *journalCursor {
	var earliest *journalCursor
	var first *Record
	for i := range cursors {
		if r := cursors[i].head(); r != nil && (first == nil || r.before(first)) {
			earliest, first = &cursors[i], r
		}
	}
	return earliest
}

// Authors returns the author of the last write of each address after a version.
// If the branch has not reached that version, it takes account of all records.
func (b *Branch) Authors(version uint64) map[Address]*Author {
	l := b.Log(View{})
	if version >= l.last {
		version = 0
	}
	authors := map[Address]*Author{}
	for r := range l.After(version) {
		authors[r.Address] = r.Author
	}
	return authors
}

// position is a place in a log: after a version of the branch, which has a
// number among the versions of the view.
type position struct{ branch, view uint64 }

// find returns the position after a version of the view.
func (l *Log) find(version uint64) (position, error) {
	if version >= l.version {
		return position{l.last, l.version}, nil
	}
	var held []uint64 // the versions of the branch that the view sees
	for r := range l.After(l.start) {
		if n := len(held); n == 0 || held[n-1] != r.version {
			held = append(held, r.version)
		}
	}
	first := l.version - uint64(len(held)) // the version before them
	switch {
	case version < first:
		return position{}, ErrCompacted
	case version == first:
		return position{l.start, first}, nil
	}
	return position{held[version-first-1], version}, nil
}

// walk yields the entries after a position, except those up to a version of the
// view, and returns the position after the last. It reports false if yield did.
func (l *Log) walk(at position, since uint64, yield func(Entry) bool) (position, bool) {
	for r := range l.After(at.branch) {
		if r.version != at.branch {
			at = position{r.version, at.view + 1}
		}
		if at.view <= since {
			continue
		}
		if !yield(Entry{r, at.view, l.origin.Add(r.at).UTC().Round(0)}) {
			return at, false
		}
	}
	return position{l.last, l.version}, true
}

// Entries calls yield for what was written after a version of the view, until
// yield returns false. It returns ErrCompacted, and calls nothing, if the
// journals do not reach back that far.
func (b *Branch) Entries(v View, since uint64, yield func(Entry) bool) error {
	l := b.Log(v)
	at, err := l.find(since)
	if err == nil {
		l.walk(at, since, yield)
	}
	return err
}

// Watch is Entries that then waits for more, until ctx ends, yield returns
// false or the branch ends. It returns ErrCompacted if it falls behind the
// journals.
func (b *Branch) Watch(ctx context.Context, v View, since uint64, yield func(Entry) bool) error {
	if ctx.Err() != nil {
		return nil
	}
	l := b.Log(v)
	at, err := l.find(since)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		more := false
		at, more = l.walk(at, since, func(e Entry) bool { return ctx.Err() == nil && yield(e) })
		if !more {
			return nil
		}
		var wake chan struct{}
		for l, wake = b.await(v, at); wake != nil; l, wake = b.await(v, at) {
			select {
			case <-wake:
			case <-ctx.Done():
				return nil
			}
		}
		switch {
		case l.last == at.branch:
			return nil // there will be no more
		case l.start > at.branch:
			return ErrCompacted
		}
	}
	return nil
}

// await returns what a view sees of the journals. If a watch that is at a
// position has seen all of it, and the branch has not ended, it returns a
// channel that the next commit closes.
func (b *Branch) await(v View, at position) (Log, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.branch != b.version.Load() || b.ended != nil {
		return b.lockedLog(v), nil
	}
	if b.wake == nil {
		b.wake = make(chan struct{})
	}
	return Log{}, b.wake
}

// At returns a frozen branch with the content of a past version, as far as the
// journals reach. Secret slots have their present content, which the journals
// do not hold. The branch has no journals.
func (b *Branch) At(version uint64) (*Branch, error) {
	b.mu.Lock()
	l := b.lockedLog(View{})
	t := b.tree.Load()
	b.owned = false
	b.mu.Unlock()
	switch {
	case version > l.last:
		return nil, ErrNoVersion
	case version < l.start:
		return nil, ErrCompacted
	}
	past := t.clone()
	past.rewind(&l, version)
	return b.frozenAt(past, version, version), nil
}

// rewind undoes what was done after a version. No other goroutine may use t.
func (t *Tree) rewind(l *Log, version uint64) {
	seen := map[Address]bool{}
	touched := NewBits(len(t.classes))
	var last uint64
	countBack := func() {
		if last != 0 {
			t.countVersions(touched, -1)
			clear(touched)
		}
	}
	for r := range l.After(version) {
		if r.version != last {
			countBack()
			last = r.version
		}
		touched.Add(r.Class())
		if gate := r.Slot.Gate; gate != nil && r.Overwrites {
			for _, class := range gate.Classes(r.Old, r.New) {
				touched.Add(class)
			}
		}
		if seen[r.Address] || r.Slot.Secret {
			continue
		}
		seen[r.Address] = true
		now := t.Get(r.Address)
		t.put(r.Address, r.Old)
		t.noteSet(r.Slot, now, r.Old)
	}
	countBack()
	for class := range t.classes {
		t.classes[class].journal = journal{}
	}
}
