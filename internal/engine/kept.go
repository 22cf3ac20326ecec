package engine

import "slices"

// Kept is a write to a slot that is kept, so that it can be done again on
// another cell, or what a transaction has read there before it wrote.
type Kept struct {
	Address
	From *Cell // the cell that was read or written
	To   *Cell // what was made of it, nil if it was unset
	// Op is what was done. It is nil if From was only read, or if To depends on
	// From in a way that no op has.
	Op   *Op
	Read bool // From was only read
	// Again computes the update of a Computed op from another cell. May be nil.
	Again func(current *Cell) (Update, error)
}

// keptWrite is the newest write that is kept, with those before.
type keptWrite struct {
	Kept
	before *keptWrite
	n      int // of all
}

// Keep lets the branch keep what is written to slots with Kept from now on. Its
// forks do not, but what they have done is kept when they are joined.
func (b *Branch) Keep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeps = true
}

// KeptWrites returns what a frozen branch has kept after the first ones, the
// oldest first.
func (b *Branch) KeptWrites(first int) []Kept {
	var writes []Kept
	for w := b.tree.Load().kept; w != nil && w.n > first; w = w.before {
		writes = append(writes, w.Kept)
	}
	slices.Reverse(writes)
	return writes
}

// add adds a write that is kept.
func (c *committer) add(k Kept) {
	w := &keptWrite{Kept: k, before: c.tree.kept, n: 1}
	if w.before != nil {
		w.n += w.before.n
	}
	c.tree.kept = w
}

// keep keeps what edits do, in front of the commit that does it. If they write a
// slot that is kept, what they have read of such slots counts too.
func (c *committer) keep(edits []Edit) {
	if !slices.ContainsFunc(edits, func(e Edit) bool { return e.Slot.Kept && len(e.Ops) > 0 }) {
		return
	}
	for i := range edits {
		e := &edits[i]
		if !e.Slot.Kept {
			continue
		}
		if len(e.Ops) == 0 || e.Read && !e.Overwrites {
			c.add(Kept{Address: e.Address, From: e.From, Read: true})
		}
		to := e.To.cell()
		computed := e.Computed || slices.ContainsFunc(e.Ops, func(o Op) bool { return o.Computed })
		switch {
		case len(e.Ops) == 0:
		case e.Overwrites && computed:
			c.add(Kept{Address: e.Address, From: e.From, To: to})
		case e.Overwrites:
			c.keepOp(&Op{Address: e.Address, Author: e.Ops[len(e.Ops)-1].Author, Overwrites: true}, e.From, to, nil)
		default:
			for j := range e.Ops {
				c.keepOp(&e.Ops[j], e.From, to, nil)
			}
		}
	}
}

// keepOp keeps an op, by which one cell became another.
func (c *committer) keepOp(o *Op, from, to *Cell, again func(*Cell) (Update, error)) {
	kept := *o
	c.add(Kept{Address: o.Address, From: from, To: to, Op: &kept, Again: again})
}

// cell returns a cell with the content.
func (m *Merged) cell() *Cell {
	if m == nil {
		return nil
	}
	return &Cell{Value: m.Value, Size: m.Size}
}
