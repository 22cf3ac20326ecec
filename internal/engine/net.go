package engine

import "slices"

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
