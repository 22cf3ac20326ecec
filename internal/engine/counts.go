package engine

import "slices"

// Counts of versions and of set addresses are kept by visibility class, so that
// no count reveals what happened elsewhere. The version of a view is the number
// of versions in which it sees a change. Versions of one class are counted with
// the class. Of those that changed several classes, only the widest classes
// matter: a class is left out if all its readers read another one of them. What
// remains is counted for each reader that sees one of these classes, which is
// one number per reader, however many combinations occur.
//
// A view that several readers have in common has no number of its own. For it a
// version counts once for each of the widest classes that it sees. This too
// depends on nothing that is hidden from it, and is the number of versions
// unless one version changed classes of which none includes the other.

// classCount counts what happened to the addresses of one visibility class.
type classCount struct {
	alone   uint64 // versions of which this is the only widest class
	shared  uint64 // versions of which it is one of several
	set     int    // addresses that are set
	changes uint64 // how often an address was set or unset
}

// widest returns those of distinct classes that are not read by part of the
// readers of another one. It changes the slice.
func (l *Layout) widest(classes []int) []int {
	if len(classes) < 2 || l.ReadBy == nil {
		return classes
	}
	slices.SortFunc(classes, func(a, b int) int {
		if n := l.ReadBy[b].count() - l.ReadBy[a].count(); n != 0 {
			return n
		}
		return a - b
	})
	widest := classes[:0]
	for _, class := range classes {
		if !l.covered(class, widest) {
			widest = append(widest, class)
		}
	}
	return widest
}

// covered reports whether all readers of a class, and others, read one of the
// wider classes, which are sorted by their number of readers, most first.
func (l *Layout) covered(class int, wider []int) bool {
	readers := l.ReadBy[class]
	n := readers.count()
	for _, c := range wider {
		if l.ReadBy[c].count() == n {
			return false // no other class has the same readers
		}
		if readers.Within(l.ReadBy[c]) {
			return true
		}
	}
	return false
}

// countVersions adds n to the count of versions that changed the given classes,
// which may repeat, and no others. It changes the slice.
func (t *Tree) countVersions(l *Layout, touched []int, n int64) {
	slices.Sort(touched)
	widest := l.widest(slices.Compact(touched))
	if len(widest) == 1 {
		t.classes.own(t.tables, widest[0]).count.alone += uint64(n)
		return
	}
	var readers Bits
	for _, class := range widest {
		t.classes.own(t.tables, class).count.shared += uint64(n)
		if l.ReadBy != nil {
			readers = readers.or(l.ReadBy[class])
		}
	}
	for reader := range readers.All() {
		*t.mixed.own(t.tables, reader) += uint64(n)
	}
}

// versions returns the number of versions in which a view sees a change.
func (t *Tree) versions(v View) uint64 {
	var n uint64
	for class := range v.Classes.All() {
		c := &t.classes.at(class).count
		n += c.alone
		if v.Reader == 0 {
			n += c.shared
		}
	}
	if v.Reader > 0 {
		n += *t.mixed.at(v.Reader - 1)
	}
	return n
}

// steps returns what a version that touched classes, all of which the view
// sees, adds to the versions of the view.
func (l *Layout) steps(v View, touched []int) uint64 {
	if v.numbered() {
		return 1
	}
	return uint64(len(l.widest(touched)))
}

// countSet returns the number of set addresses that a view sees.
func (t *Tree) countSet(v View) int {
	if v.Classes == nil {
		return t.set
	}
	n := 0
	for class := range v.Classes.All() {
		n += t.classes.at(class).count.set
	}
	return n
}

// noteSet notes that a cell was replaced, which may set or unset its address.
func (t *Tree) noteSet(s *Slot, from, to *Cell) {
	if !s.Counted || (from == nil) == (to == nil) {
		return
	}
	c, n := &t.classes.own(t.tables, s.Class).count, 1
	if to == nil {
		n = -1
	}
	c.changes++
	c.set += n
	t.set += n
}

// sameSet reports whether the same addresses are set as in the tree that this
// one comes from, as far as a view sees them.
func (t *Tree) sameSet(l *Layout, base *Tree, v View) bool {
	for class := range l.seen(v) {
		if t.classes.at(class).count.changes != base.classes.at(class).count.changes {
			return false
		}
	}
	return true
}
