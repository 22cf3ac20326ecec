package state

import (
	"slices"
	"sync/atomic"

	"github.com/agentstate/state/internal/persist"
)

// entry is the value of a field as one write left it. It is immutable and
// shared by all trees that hold it.
type entry struct {
	value    any    // in stored form; see spec.go
	version  uint64 // of the write
	born     uint64 // of the write since which the field is set
	over     uint64 // of the last write that did not merge with what was there
	computed uint64 // of the last that did not merge and was computed from a read
	size     int    // of the value
}

// tree holds the entries of one branch: declared fields by slot, on pages, and
// undeclared keys by name. Reading takes no lock. A writer changes in place what
// bears the branch's owner number and copies all else, so that a snapshot is
// made by giving the branch a new owner number.
type tree struct {
	owner uint64
	pages []atomic.Pointer[page]
	keys  persist.Map[entry]

	// What follows is for writers and others who hold the branch's lock, and of
	// a frozen branch for all.
	classes []class
	mixed   []mixed

	// Most trees have one page and one class.
	onePage  [1]atomic.Pointer[page]
	oneClass [1]class
}

const pageLen = 32

type page struct {
	owner uint64
	slots [pageLen]atomic.Pointer[entry]
}

// class is what is counted for the fields that have the same readers, so that
// nobody can tell from a count what happened to fields he cannot read.
type class struct {
	versions uint64 // versions that changed only fields of this class
	set      int    // fields that have a value
	members  uint64 // how often a field became set or unset
	journal  journal
}

// mixed counts the versions that changed fields of several classes.
type mixed struct {
	classes  bits
	versions uint64
}

var emptyPage page

// lastOwner is the source of owner numbers.
var lastOwner atomic.Uint64

func newTree(schema *Schema) *tree {
	t := &tree{
		pages:   make([]atomic.Pointer[page], (len(schema.specs)+pageLen-1)/pageLen),
		classes: make([]class, len(schema.classes)),
	}
	for i := range t.pages {
		t.pages[i].Store(&emptyPage)
	}
	return t
}

// clone returns a tree with the same entries for a new owner.
func (t *tree) clone() *tree {
	c := &tree{owner: lastOwner.Add(1), mixed: t.mixed}
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

func (t *tree) slot(i int) *entry {
	return t.pages[i/pageLen].Load().slots[i%pageLen].Load()
}

// get returns the entry of a field, or nil.
func (t *tree) get(sp *spec, key string) *entry {
	if sp.slot < 0 {
		return t.keys.Get(key)
	}
	return t.slot(sp.slot)
}

// put stores an entry, or none if e is nil. One writer at a time.
func (t *tree) put(sp *spec, key string, e *entry) {
	switch {
	case sp.slot >= 0:
		at := &t.pages[sp.slot/pageLen]
		p := at.Load()
		if p.owner != t.owner {
			p = p.clone(t.owner)
			p.slots[sp.slot%pageLen].Store(e)
			at.Store(p)
			return
		}
		p.slots[sp.slot%pageLen].Store(e)
	case e == nil:
		t.keys.Delete(t.owner, key)
	default:
		t.keys.Set(t.owner, key, e)
	}
}

func (p *page) clone(owner uint64) *page {
	c := &page{owner: owner}
	for i := range p.slots {
		if e := p.slots[i].Load(); e != nil {
			c.slots[i].Store(e)
		}
	}
	return c
}

// set counts the fields that have a value and that the handle may read.
func (t *tree) set(h *handle) int {
	n := 0
	for class := range t.classes {
		if h.sees(class) {
			n += t.classes[class].set
		}
	}
	return n
}

// member notes that a field became set or unset.
func (t *tree) member(sp *spec, from, to *entry) {
	if sp.slot == historySlot || (from == nil) == (to == nil) {
		return
	}
	c := &t.classes[sp.class]
	c.members++
	if from == nil {
		c.set++
	} else {
		c.set--
	}
}

// count notes n versions that changed fields of the touched classes.
func (t *tree) count(touched bits, n int) {
	for class := range t.classes {
		if slices.Equal(make(bits, len(touched)).with(class), touched) {
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
	t.mixed = append(t.mixed, mixed{classes: slices.Clone(touched), versions: uint64(n)})
}
