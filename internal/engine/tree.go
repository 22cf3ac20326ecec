package engine

import (
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
	// everyone. The tables have an owner number of their own: a tree that takes
	// the place of another takes over its tables.
	tables   uint64
	set      int               // addresses that are set
	counts   table[classCount] // by visibility class
	mixed    table[uint64]     // by reader: versions of several widest classes
	journals table[journal]    // by visibility class

	// Most trees have one page and one class.
	onePage    [1]atomic.Pointer[page]
	oneCount   tablePage[classCount]
	oneJournal tablePage[journal]
}

const pageLen = 32

type page struct {
	owner uint64
	cells [pageLen]atomic.Pointer[Cell]
}

var emptyPage page

func newTree(layout *Layout) *Tree {
	t := &Tree{
		pages:    make([]atomic.Pointer[page], (len(layout.Slots)+pageLen-1)/pageLen),
		counts:   newTable[classCount](layout.Classes),
		mixed:    newTable[uint64](layout.Readers),
		journals: newTable[journal](layout.Classes),
	}
	for i := range t.pages {
		t.pages[i].Store(&emptyPage)
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
	c.counts = t.counts.clone(tables, taken, &c.oneCount)
	c.journals = t.journals.clone(tables, taken, &c.oneJournal)
	c.mixed = t.mixed.clone(tables, taken, nil)
	c.pages = c.onePage[:]
	if len(t.pages) != 1 {
		c.pages = make([]atomic.Pointer[page], len(t.pages))
	}
	// Plain loads and stores will do: no other goroutine changes the pages of t,
	// nor has any seen those of c.
	copy(c.pages, t.pages)
	t.keys.Share(&c.keys)
	return c
}

// slot returns the cell of a slot that is not keyed, or nil.
func (t *Tree) slot(number int) *Cell {
	n := uint(number) // which is divided faster
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
