package engine

import (
	"sync/atomic"

	"github.com/agentstate/state/internal/persist"
)

// Tree holds the cells of one version of a branch: those of the first slots,
// those of the other slots on pages, and cells with a key in a map. Reading
// takes no lock. A writer changes in place its tree and what bears its owner
// number, and copies everything else: giving a branch a new owner number makes
// what it has a snapshot.
type Tree struct {
	owner uint64
	first [firstSlots]atomic.Pointer[Cell]
	pages []atomic.Pointer[page]
	keys  persist.Map[Cell]

	// The rest is for holders of the branch's lock, and of a frozen branch for
	// everyone.
	set     int    // addresses that are set
	keyed   int    // those of them that have a key
	changes uint64 // how often an address was set or unset
	journal journal
	kept    *keptWrite
}

const (
	firstSlots = 8 // most schemas have no more
	pageLen    = 32
)

type page struct {
	owner uint64
	cells [pageLen]atomic.Pointer[Cell]
}

var emptyPage page

func newTree(layout *Layout) *Tree {
	t := &Tree{}
	if n := len(layout.Slots) - firstSlots; n > 0 {
		t.pages = make([]atomic.Pointer[page], (n+pageLen-1)/pageLen)
		for i := range t.pages {
			t.pages[i].Store(&emptyPage)
		}
	}
	return t
}

// clone returns a tree with the same cells for a new owner.
func (t *Tree) clone() *Tree {
	c := &Tree{owner: persist.NewOwner(), set: t.set, keyed: t.keyed, changes: t.changes, journal: t.journal, kept: t.kept}
	// Plain loads and stores will do: no other goroutine changes t, nor has any
	// seen c.
	copy(c.first[:], t.first[:])
	if len(t.pages) > 0 {
		c.pages = make([]atomic.Pointer[page], len(t.pages))
		copy(c.pages, t.pages)
	}
	t.keys.Share(&c.keys)
	return c
}

// slot returns the cell of a slot that is not keyed, or nil.
func (t *Tree) slot(number int) *Cell {
	n := uint(number) // which is divided faster
	if n < firstSlots {
		return t.first[n].Load()
	}
	n -= firstSlots
	return t.pages[n/pageLen].Load().cells[n%pageLen].Load()
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
	case !a.Slot.Keyed && a.Slot.Number < firstSlots:
		t.first[a.Slot.Number].Store(c)
	case !a.Slot.Keyed:
		number := a.Slot.Number - firstSlots
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
func (t *Tree) countSet(l *Layout, v View) int {
	if v.Classes == nil {
		return t.set
	}
	n := 0
	for _, s := range l.Slots {
		if s.Counted && v.Sees(s.Class) && t.slot(s.Number) != nil {
			n++
		}
	}
	if v.Sees(l.Keys.Class) {
		n += t.keyed
	}
	return n
}

// noteSet notes that a cell was replaced, which may set or unset its address.
func (t *Tree) noteSet(s *Slot, from, to *Cell) {
	if !s.Counted || (from == nil) == (to == nil) {
		return
	}
	n := 1
	if to == nil {
		n = -1
	}
	t.changes++
	t.set += n
	if s.Keyed {
		t.keyed += n
	}
}
