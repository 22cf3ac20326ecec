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
	Version uint64
	Time    time.Time
}

// log is what a view sees of the journal of a branch at one moment.
type log struct {
	view    View
	journal journal
	origin  time.Time
	start   uint64 // versions up to this one are not held
	last    uint64 // the last version
}

// log returns what a view sees of the journal.
func (b *Branch) log(v View) log {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lockedLog(v)
}

// lockedLog is log on a locked branch.
func (b *Branch) lockedLog(v View) log {
	b.reads.countVersions()
	j := b.tree.Load().journal
	if j.last() <= b.forked {
		j = journal{}
	}
	return log{view: v, journal: j, origin: b.origin, start: max(b.forked, j.start), last: b.version}
}

// after yields the records of versions after this one, in the order in which
// they were written.
func (l *log) after(version uint64) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		c := journalCursor{journal: &l.journal}
		for more := l.journal.last() > version && c.find(version); more; more = c.next() {
			if c.seenBy(l.view) && !yield(c.Record) {
				return
			}
		}
	}
}

// Authors returns the author of the last write of each address after a version.
// If the branch has not reached that version, it takes account of all records.
func (b *Branch) Authors(version uint64) map[Address]*Author {
	l := b.log(View{})
	if version >= l.last {
		version = 0
	}
	authors := map[Address]*Author{}
	for r := range l.after(version) {
		authors[r.Address] = r.Author
	}
	return authors
}

// entries yields the entries after a version, and reports false if yield did.
func (l *log) entries(version uint64, yield func(Entry) bool) bool {
	for r := range l.after(version) {
		if !yield(Entry{r, r.version, l.origin.Add(r.at).UTC().Round(0)}) {
			return false
		}
	}
	return true
}

// Entries calls yield for what was written after a version, until yield returns
// false. It returns ErrCompacted, and calls nothing, if the journal does not
// reach back that far.
func (b *Branch) Entries(v View, since uint64, yield func(Entry) bool) error {
	l := b.log(v)
	if since < l.start {
		return ErrCompacted
	}
	l.entries(since, yield)
	return nil
}

// Watch is Entries that then waits for more, until ctx ends, yield returns
// false or the branch ends. It returns ErrCompacted if it falls behind the
// journal.
func (b *Branch) Watch(ctx context.Context, v View, since uint64, yield func(Entry) bool) error {
	l := b.log(v)
	for at := since; ctx.Err() == nil; {
		if at < l.start {
			return ErrCompacted
		}
		if !l.entries(at, func(e Entry) bool { return ctx.Err() == nil && yield(e) }) {
			return nil
		}
		at = max(at, l.last)
		var wake chan struct{}
		for l, wake = b.await(v, at); wake != nil; l, wake = b.await(v, at) {
			select {
			case <-wake:
			case <-ctx.Done():
				return nil
			}
		}
		if l.last <= at {
			return nil // there will be no more
		}
	}
	return nil
}

// await returns what a view sees of the journal. If there is nothing after a
// version, and the branch has not ended, it returns a channel that the next
// commit closes.
func (b *Branch) await(v View, version uint64) (log, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if version < b.version || b.ended != nil {
		return b.lockedLog(v), nil
	}
	if b.wake == nil {
		b.wake = make(chan struct{})
	}
	return log{}, b.wake
}

// At returns a frozen branch with the content of a past version, as far as the
// journal reaches. Secret slots have their present content, which the journal
// does not hold. The branch has no journal.
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
func (t *Tree) rewind(l *log, version uint64) {
	seen := map[Address]bool{}
	for r := range l.after(version) {
		if seen[r.Address] || r.Slot.Secret {
			continue
		}
		seen[r.Address] = true
		now := t.Get(r.Address)
		t.put(r.Address, r.Old)
		t.noteSet(r.Slot, now, r.Old)
	}
	t.journal = journal{}
}
