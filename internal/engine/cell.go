package engine

import (
	"maps"
	"slices"
	"sync"
)

// Cell is the value at an address as one write left it. It is immutable, and
// every tree that holds it shares it.
type Cell struct {
	Value any // in the form of its slot
	Size  int // of the value, towards limits

	born        uint64 // the version since which the address is set
	overwritten uint64 // the last version that did not merge with what was there
	computed    uint64 // the same version, if its value was computed from a read
}

// merged returns the content of the cell, nil if there is no cell.
func (c *Cell) merged() *Merged {
	if c == nil {
		return nil
	}
	return &Merged{Value: c.Value, Size: c.Size}
}

// Update is the value that an op writes, before it is merged.
type Update struct {
	Value any // in the form of its slot
	Size  int
	// Tail is greater than 0 if the update is only the last Tail elements of
	// the list in Value.
	Tail int32
	// Borrowed is set while Value belongs to the caller.
	Borrowed bool
}

// Merged is the result of an op: the next content of a cell.
type Merged struct {
	Value any // in the form of its slot
	Size  int
	// Tail is greater than 0 if Value is a list whose last Tail elements are
	// copies of those of a borrowed update.
	Tail int32
}

// Op is one write to one address.
type Op struct {
	Address
	Update
	Merger Merger // nil in a deletion, which cannot be merged
	Author *Author
	Kind   uint8 // the caller's; the engine does not read it
	// Classes are the visibility classes that see this op, or nil for that of the
	// slot. In a slot with a [Gate], they are set when an op without any is
	// committed that overwrites the cell.
	Classes Bits

	// The properties of the Merger are noted when an op is made: a join needs
	// them under the lock, and for ops whose Merger is no longer the slot's.

	Overwrites bool // the result takes no account of the current cell
	Shares     bool // the result shares memory with the current cell
	Computed   bool // the update was computed from a read
	Callback   bool // merging or checking it calls code of the user
}

// Author signs ops. The engine carries it and does not read it.
type Author struct{ Agent, Cause string }

// Apply returns the result of the op on the current cell. It does not check the
// result.
func (o *Op) Apply(current *Cell) (Merged, error) {
	return o.Merger.Merge(o.Address, current, o.Update)
}

// own replaces a borrowed update by what its merger has made of it.
func (o *Op) own(m *Merged) {
	switch {
	case !o.Borrowed:
		return
	case o.Overwrites:
		o.Value = m.Value
	case m.Tail > 0:
		o.Value, o.Tail = m.Value, m.Tail
	}
	o.Borrowed = false
}

// Edit is what a commit does to one cell: replace From by To, as the ops say. A
// nil cell is an address that is not set. Without ops, an edit only requires
// that the cell is still From.
type Edit struct {
	Address
	From *Cell
	To   *Merged
	Ops  []Op

	Overwrites bool // To takes no account of From
	Computed   bool // To was computed from a read
	Single     bool // To is what the only one of Ops has made of From
	Read       bool // a transaction has read From
}

// NetWrite is what a branch has done to one cell since it was forked. If
// Overwrites is set, the result takes no account of the cell at the fork, and
// Ops begin with the op that made it so. In a slot with a [Gate], that holds for
// what each visibility class sees of them: an overwrite of hidden parts must not
// decide which ops a reader is shown.
type NetWrite struct {
	Address
	Overwrites bool
	Computed   bool // that op was computed from a read
	Ops        []Op

	oneOp [1]Op // the array of most Ops
}

// callback reports whether doing the ops again calls code of the user.
func (n *NetWrite) callback() bool {
	return slices.ContainsFunc(n.Ops, func(o Op) bool { return o.Callback })
}

// netWrites holds the net writes of a branch. Most branches have few, which are
// searched one by one.
type netWrites struct {
	list  []*NetWrite
	index map[Address]*NetWrite // nil while there are few
}

const fewNetWrites = 8

// get returns the net write of an address, or nil.
func (ns *netWrites) get(a Address) *NetWrite {
	if ns.index != nil {
		return ns.index[a]
	}
	for _, n := range ns.list {
		if n.Address == a {
			return n
		}
	}
	return nil
}

// note adds an op to the net write of its address.
func (ns *netWrites) note(o Op) {
	n := ns.get(o.Address)
	if n == nil {
		n = ns.add(o.Address)
	}
	if o.Overwrites {
		n.Overwrites, n.Computed = true, o.Computed
		n.overwrite(o.Classes)
	}
	n.Ops = append(n.Ops, o)
}

// overwrite drops the ops, or for an overwrite of what some classes see, those
// that no other class sees.
func (n *NetWrite) overwrite(classes Bits) {
	n.Ops = slices.DeleteFunc(n.Ops, func(o Op) bool { return classes == nil || o.Classes.Within(classes) })
	for i := range n.Ops {
		n.Ops[i].Classes = n.Ops[i].Classes.without(classes)
	}
}

func (ns *netWrites) add(a Address) *NetWrite {
	n := &NetWrite{Address: a}
	n.Ops = n.oneOp[:0]
	ns.list = append(ns.list, n)
	switch {
	case ns.index != nil:
		ns.index[a] = n
	case len(ns.list) > fewNetWrites:
		ns.index = map[Address]*NetWrite{}
		for _, n := range ns.list {
			ns.index[n.Address] = n
		}
	}
	return n
}

// sorted returns the net writes in the order of their addresses.
func (ns *netWrites) sorted() []*NetWrite {
	list := slices.Clone(ns.list)
	slices.SortFunc(list, func(x, y *NetWrite) int { return x.compare(y.Address) })
	return list
}

// readSet notes which addresses a transaction has read. Forks of a transaction
// note their reads in the same set.
type readSet struct {
	outer *readSet // of the transaction around it

	mu        sync.Mutex // guards what follows
	addresses map[Address]bool
	listed    bool // the transaction asked which addresses are set
	versions  bool // it asked how many versions there are
}

func newReadSet(outer *readSet) *readSet {
	return &readSet{outer: outer, addresses: map[Address]bool{}}
}

// add notes that a cell was read.
func (r *readSet) add(a Address) {
	for ; r != nil; r = r.outer {
		r.mu.Lock()
		r.addresses[a] = true
		r.mu.Unlock()
	}
}

// list notes that the set addresses were listed.
func (r *readSet) list() {
	for ; r != nil; r = r.outer {
		r.mu.Lock()
		r.listed = true
		r.mu.Unlock()
	}
}

// countVersions notes that the version was read.
func (r *readSet) countVersions() {
	for ; r != nil; r = r.outer {
		r.mu.Lock()
		r.versions = true
		r.mu.Unlock()
	}
}

// all returns the addresses that were read, whether they were listed, and
// whether the version was read.
func (r *readSet) all() (addresses map[Address]bool, listed, versions bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.addresses), r.listed, r.versions
}
