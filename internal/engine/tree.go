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
	// everyone. The tables have an owner number of their own: a tree that takes
	// the place of another takes over its tables.
	tables  uint64
	set     int               // addresses that are set
	classes table[classState] // by visibility class
	mixed   table[uint64]     // by reader: versions of several widest classes

	oneClass tablePage[classState] // most trees have one
}

// classState is what happened to the addresses of one visibility class.
type classState struct {
	count   classCount
	journal journal
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
	t := &Tree{
		classes: newTable[classState](layout.Classes),
		mixed:   newTable[uint64](layout.Readers),
	}
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
	owner := persist.NewOwner()
	return t.cloneFor(owner, owner)
}

// successor is clone for a tree that takes the place of t: t is left to readers
// without the lock, who do not read its tables.
func (t *Tree) successor() *Tree { return t.cloneFor(persist.NewOwner(), t.tables) }

func (t *Tree) cloneFor(owner, tables uint64) *Tree {
	c := &Tree{owner: owner, tables: tables, set: t.set}
	taken := tables == t.tables
	c.classes = t.classes.clone(tables, taken, &c.oneClass)
	c.mixed = t.mixed.clone(tables, taken, nil)
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
