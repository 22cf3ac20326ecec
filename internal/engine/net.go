package engine

import "slices"

// NetWrite is what a branch has done to one cell since it was forked. If
// Overwrites is set, the result takes no account of the cell at the fork, and
// Ops begin with the op that made it so.
//
// In a slot with a [Gate], each visibility class has net ops of its own: those
// since the last overwrite of its part. With common ones, an overwrite of
// hidden parts would decide which ops the class is shown.
type NetWrite struct {
	Address
	Overwrites bool
	Computed   bool // that op was computed from a read
	Ops        []Op

	parts   [][]int // the classes that see each op; nil unless the slot has a gate
	compact int     // the number of ops at which parts are compacted
	oneOp   [1]Op   // the array of most Ops
}

const fewOps = 8

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

// note adds an op to the net write of its address. parts are the classes that
// see it, in a slot with a gate.
func (ns *netWrites) note(o Op, parts []int) {
	n := ns.get(o.Address)
	if n == nil {
		n = ns.add(o.Address)
	}
	if o.Overwrites {
		n.Overwrites, n.Computed = true, o.Computed
		if parts == nil {
			clear(n.Ops)
			n.Ops = n.Ops[:0]
		}
	}
	n.Ops = append(n.Ops, o)
	if parts == nil {
		return
	}
	n.parts = append(n.parts, parts)
	if n.Overwrites && len(n.Ops) > n.compact {
		n.Ops, n.parts = n.shown()
		n.compact = 2*len(n.Ops) + fewOps
	}
}

// shown returns the ops that the journal of a parent is to hold, and the
// classes that see each, nil unless the slot has a gate. An op is not shown to
// classes whose parts a later one has overwritten.
func (n *NetWrite) shown() (ops []Op, parts [][]int) {
	if n.parts == nil || !n.Overwrites {
		return n.Ops, n.parts
	}
	left := make([][]int, len(n.Ops))
	overwritten := map[int]bool{}
	for i := len(n.Ops) - 1; i >= 0; i-- {
		for _, class := range n.parts[i] {
			if !overwritten[class] {
				left[i] = append(left[i], class)
			}
		}
		for _, class := range left[i] {
			overwritten[class] = overwritten[class] || n.Ops[i].Overwrites
		}
	}
	for i, classes := range left {
		if len(classes) > 0 {
			ops, parts = append(ops, n.Ops[i]), append(parts, classes)
		}
	}
	return ops, parts
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
