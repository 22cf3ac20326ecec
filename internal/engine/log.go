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
	view     View
	journals []classJournal // those with records
	origin   time.Time
	start    uint64 // versions of the branch up to this one are not held
	last     uint64 // the last version of the branch
	version  uint64 // the last version of the view
}

type classJournal struct {
	class int
	journal
}

// Log returns what a view sees of the journals.
func (b *Branch) Log(v View) Log {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lockedLog(v, 0)
}

// logSince returns what a view sees of the journals that may have something
// after a version of the view.
func (b *Branch) logSince(v View, version uint64) Log {
	if v.Classes != nil {
		version = 0 // of the branch, it may be any
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lockedLog(v, version)
}

// lockedLog is Log on a locked branch. It leaves out journals that have nothing
// after a version.
func (b *Branch) lockedLog(v View, after uint64) Log {
	b.reads.countVersions()
	l := Log{layout: b.layout, view: v, origin: b.origin, start: b.forked, last: b.version, version: b.seenVersion(v)}
	classes := &b.tree.Load().classes
	for class := range b.layout.seen(v) {
		j := &classes.at(class).journal
		l.start = max(l.start, j.start)
		if j.last() > after {
			l.journals = append(l.journals, classJournal{class, *j})
		}
	}
	return l
}

// After yields the records of versions of the branch after this one, in the
// order in which they were written.
func (l *Log) After(version uint64) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		h := journalHeap{less: (*Record).before}
		for i := range l.journals {
			j := &l.journals[i]
			if c := (journalCursor{class: j.class, journal: &j.journal}); j.last() > version && c.find(version) {
				h.cursors = append(h.cursors, c)
			}
		}
		h.init()
		var last *Record
		for len(h.cursors) > 0 {
			r := h.cursors[0].Record
			h.moved(h.cursors[0].next())
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

// back yields the versions of the branch after this one, the last one first,
// each with the visibility classes that it touched. The consumer may change the
// classes, and must not keep them.
func (l *Log) back(version uint64) iter.Seq2[uint64, []int] {
	return func(yield func(uint64, []int) bool) {
		h := journalHeap{less: (*Record).after}
		for i := range l.journals {
			j := &l.journals[i]
			if c := (journalCursor{class: j.class, journal: &j.journal}); j.last() > version && c.end() {
				h.cursors = append(h.cursors, c)
			}
		}
		h.init()
		var classes []int
		for len(h.cursors) > 0 && h.cursors[0].version > version {
			at := h.cursors[0].version
			classes = classes[:0]
			for len(h.cursors) > 0 && h.cursors[0].version == at {
				c := &h.cursors[0]
				classes = append(classes, c.class)
				more := c.previous()
				for more && c.version == at {
					more = c.previous()
				}
				h.moved(more)
			}
			if !yield(at, classes) {
				return
			}
		}
	}
}

// touched returns the visibility classes that a version touched.
func (l *Log) touched(version uint64) []int {
	var classes []int
	for i := range l.journals {
		j := &l.journals[i]
		if c := (journalCursor{journal: &j.journal}); c.find(version-1) && c.version == version {
			classes = append(classes, j.class)
		}
	}
	return classes
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
	if l.view.Classes == nil { // it sees all versions
		if version < l.start {
			return position{}, ErrCompacted
		}
		return position{version, version}, nil
	}
	at := position{l.last, l.version}
	for branch, touched := range l.back(l.start) {
		at = position{branch - 1, at.view - l.layout.steps(l.view, touched)}
		if at.view <= version {
			return at, nil
		}
	}
	return position{}, ErrCompacted
}

// walk yields the entries after a position, except those up to a version of the
// view, and returns the position after the last. It reports false if yield did.
func (l *Log) walk(at position, since uint64, yield func(Entry) bool) (position, bool) {
	for r := range l.After(at.branch) {
		if r.version != at.branch {
			at = position{r.version, at.view + l.stepsOf(r.version)}
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

// stepsOf returns what a version of the branch adds to the versions of the
// view.
func (l *Log) stepsOf(version uint64) uint64 {
	if l.view.numbered() {
		return 1
	}
	return l.layout.steps(l.view, l.touched(version))
}

// Entries calls yield for what was written after a version of the view, until
// yield returns false. It returns ErrCompacted, and calls nothing, if the
// journals do not reach back that far.
func (b *Branch) Entries(v View, since uint64, yield func(Entry) bool) error {
	l := b.logSince(v, since)
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
	l := b.logSince(v, since)
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
	if at.branch != b.version || b.ended != nil {
		return b.lockedLog(v, at.branch), nil
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
	l := b.lockedLog(View{}, 0)
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
	for r := range l.After(version) {
		if seen[r.Address] || r.Slot.Secret {
			continue
		}
		seen[r.Address] = true
		now := t.Get(r.Address)
		t.put(r.Address, r.Old)
		t.noteSet(r.Slot, now, r.Old)
	}
	for _, touched := range l.back(version) {
		t.countVersions(l.layout, touched, -1)
	}
	for i := range l.journals {
		t.classes.own(t.tables, l.journals[i].class).journal = journal{}
	}
}
