package engine

import (
	"slices"
	"sync/atomic"

	"github.com/agentstate/state/internal/persist"
)

// Tree holds the cells of one version of a branch: single cells on pages by
// slot number, and cells with a key in a map. Reading takes no lock. A writer
// changes in place what bears the owner number of its tree and copies
// everything else: giving a branch a new owner number makes what it has a
// snapshot.
type Tree struct {
	owner uint64
	pages []atomic.Pointer[page]
	keys  persist.Map[Cell]

	// The rest is for holders of the branch's lock, and of a frozen branch for
	// everyone.
	classes []classCount
	mixed   []mixedCount

	// Most trees have one page and one class.
	onePage  [1]atomic.Pointer[page]
	oneClass [1]classCount
}

const pageLen = 32

type page struct {
	owner uint64
	cells [pageLen]atomic.Pointer[Cell]
}

// classCount counts what happened to the addresses of one visibility class. A
// reader is shown sums over the classes that it sees, so that no count reveals
// what happened elsewhere.
type classCount struct {
	versions uint64 // versions that changed only addresses of this class
	set      int    // addresses that are set
	changes  uint64 // how often an address was set or unset
	journal  journal
}

// mixedCount counts the versions that changed addresses of several classes.
type mixedCount struct {
	classes  Bits
	versions uint64
}

var emptyPage page

func newTree(layout *Layout) *Tree {
	t := &Tree{
		pages:   make([]atomic.Pointer[page], (len(layout.Slots)+pageLen-1)/pageLen),
		classes: make([]classCount, layout.Classes),
	}
	for i := range t.pages {
		t.pages[i].Store(&emptyPage)
	}
	return t
}

// clone returns a tree with the same cells for a new owner.
func (t *Tree) clone() *Tree {
	c := &Tree{owner: persist.NewOwner(), mixed: t.mixed}
	c.pages, c.classes = c.onePage[:], c.oneClass[:0]
	if len(t.pages) != 1 {
		c.pages = make([]atomic.Pointer[page], len(t.pages))
	}
	c.classes = append(c.classes, t.classes...)
	for i := range t.pages {
		c.pages[i].Store(t.pages[i].Load())
	}
	t.keys.Share(&c.keys)
	return c
}

// slot returns the cell of a slot that is not keyed, or nil.
func (t *Tree) slot(number int) *Cell {
	return t.pages[number/pageLen].Load().cells[number%pageLen].Load()
}

// Get returns the cell at an address, or nil.
func (t *Tree) Get(a Address) *Cell {
	if a.Slot.Keyed {
		return t.keys.Get(a.Key)
	}
	return t.slot(a.Slot.Number)
}

// put stores a cell, or unsets the address if c is nil. Only one writer may be
// at work.
func (t *Tree) put(a Address, c *Cell) {
	switch {
	case !a.Slot.Keyed:
		number := a.Slot.Number
		at := &t.pages[number/pageLen]
		p := at.Load()
		if p.owner != t.owner {
			p = p.clone(t.owner)
			p.cells[number%pageLen].Store(c)
			at.Store(p)
			return
		}
		p.cells[number%pageLen].Store(c)
	case c == nil:
		t.keys.Delete(t.owner, a.Key)
	default:
		t.keys.Set(t.owner, a.Key, c)
	}
}

func (p *page) clone(owner uint64) *page {
	c := &page{owner: owner}
	for i := range p.cells {
		if cell := p.cells[i].Load(); cell != nil {
			c.cells[i].Store(cell)
		}
	}
	return c
}

// countSet returns the number of set addresses that a view sees.
func (t *Tree) countSet(v View) int {
	n := 0
	for class := range t.classes {
		if v.Sees(class) {
			n += t.classes[class].set
		}
	}
	return n
}

// noteSet notes that a cell was replaced, which may set or unset its address.
func (t *Tree) noteSet(s *Slot, from, to *Cell) {
	if !s.Counted || (from == nil) == (to == nil) {
		return
	}
	c := &t.classes[s.Class]
	c.changes++
	if from == nil {
		c.set++
	} else {
		c.set--
	}
}

// sameSet reports whether the same addresses are set as in the tree that this
// one comes from, as far as a view sees them.
func (t *Tree) sameSet(base *Tree, v View) bool {
	for class := range t.classes {
		if v.Sees(class) && t.classes[class].changes != base.classes[class].changes {
			return false
		}
	}
	return true
}

// countVersions adds n to the count of versions that changed the given classes
// and no others.
func (t *Tree) countVersions(touched Bits, n int) {
	for class := range t.classes {
		only := make(Bits, len(touched))
		only.Add(class)
		if slices.Equal(only, touched) {
			t.classes[class].versions += uint64(n)
			return
		}
	}
	t.mixed = slices.Clone(t.mixed)
	for i := range t.mixed {
		if slices.Equal(t.mixed[i].classes, touched) {
			t.mixed[i].versions += uint64(n)
			return
		}
	}
	t.mixed = append(t.mixed, mixedCount{classes: slices.Clone(touched), versions: uint64(n)})
}

// versions returns the number of versions in which a view sees a change.
func (t *Tree) versions(v View) uint64 {
	var n uint64
	for class := range t.classes {
		if v.Sees(class) {
			n += t.classes[class].versions
		}
	}
	for i := range t.mixed {
		for class := range t.classes {
			if t.mixed[i].classes.Has(class) && v.Sees(class) {
				n += t.mixed[i].versions
				break
			}
		}
	}
	return n
}
