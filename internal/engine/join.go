package engine

import (
	"errors"
	"fmt"
	"slices"
)

// OverlapError reports writes of branches that do not combine.
type OverlapError struct{ Addresses []Address }

func (e *OverlapError) Error() string {
	return fmt.Sprintf("%v at %d addresses", ErrConflict, len(e.Addresses))
}

// ErrOverlap is an overlap at one address. A [Merger] returns it if the update
// does not combine with what another branch has written.
var ErrOverlap = errors.New("state: writes overlap")

// Join applies what branches have done since they were forked from b, as one
// version and in their order. allow is asked for every net write. If there is
// an error, nothing is applied; side is then the index of the branch that could
// not be joined, or -1.
func (b *Branch) Join(v View, branches []*Branch, allow func(*NetWrite) error) (side int, err error) {
	// Until they are released, no other goroutine may write to the branches.
	for i, branch := range branches {
		if err := branch.claim(); err != nil {
			release(branches[:i])
			return i, err
		}
	}
	joined := false
	defer func() {
		if !joined { // an error, or code of the user that panics or calls Goexit
			release(branches)
		}
	}()
	if err := b.join(v, branches, allow); err != nil {
		return -1, err
	}
	joined = true
	for _, branch := range branches {
		branch.end(ErrJoined)
	}
	return -1, nil
}

// claim lets every write to the branch fail, until the branch is released or
// ends.
func (b *Branch) claim() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refusal(); err != nil {
		return err
	}
	b.joining = true
	return nil
}

// release undoes claim.
func release(branches []*Branch) {
	for _, b := range branches {
		b.mu.Lock()
		b.joining = false
		b.mu.Unlock()
	}
}

// join commits what claimed branches have done.
func (b *Branch) join(v View, branches []*Branch, allow func(*NetWrite) error) error {
	var addresses, callbacks []Address
	writers := map[Address][]*Branch{}
	for _, branch := range branches {
		for _, n := range branch.nets.sorted() {
			if err := allow(n); err != nil {
				return err
			}
			if writers[n.Address] == nil {
				addresses = append(addresses, n.Address)
			}
			writers[n.Address] = append(writers[n.Address], branch)
			if n.callback() {
				callbacks = append(callbacks, n.Address)
			}
		}
	}
	slices.SortFunc(addresses, Address.compare)
	return b.Transact(v, callbacks, func(t *Tree) ([]Edit, error) {
		return b.mergeBranches(t, addresses, writers)
	})
}

// mergeBranches returns the edits that join branches into a tree of their
// parent. writers has the branches that have written to each address.
func (b *Branch) mergeBranches(t *Tree, addresses []Address, writers map[Address][]*Branch) ([]Edit, error) {
	var edits []Edit
	var overlap OverlapError
	for _, a := range addresses {
		m := mergeCell{Address: a, now: t.Get(a)}
		for _, branch := range writers[a] {
			m.add(branch)
		}
		if m.compared {
			b.reads.add(a)
		}
		e, err := m.edit()
		switch {
		case errors.Is(err, ErrOverlap):
			overlap.Addresses = append(overlap.Addresses, a)
		case err != nil:
			return nil, err
		default:
			edits = append(edits, e)
		}
	}
	if len(overlap.Addresses) > 0 {
		return nil, &overlap
	}
	return edits, nil
}

// mergeCell works out one cell of a join.
type mergeCell struct {
	Address
	now    *Cell   // in the parent
	parent *writer // what the parent has done since the forks, nil if nothing
	sides  []writer
	// compared is set if the result depends on what the cell was at a fork. In
	// a transaction that is a read.
	compared bool
}

// writer is what one line of versions has done to a cell.
type writer struct {
	cell       *Cell // the result
	overwrites bool
	computed   bool
	ops        []Op // of a branch
}

// add takes account of a branch, unless it has not written the cell.
func (m *mergeCell) add(branch *Branch) {
	n := branch.nets.get(m.Address)
	if n == nil {
		return
	}
	form, base := m.Slot.Form, branch.base.Get(m.Address)
	side := writer{cell: branch.tree.Load().Get(m.Address), overwrites: n.Overwrites, computed: n.Computed}
	m.compared = m.compared || side.overwrites
	if side.overwrites && form.Same(side.cell, base) {
		return // it left what it had found
	}
	side.ops = n.Ops
	m.sides = append(m.sides, side)
	wrote, ok := sinceFork(form, base, m.now, branch.forked)
	m.compared = m.compared || wrote.overwrites
	if ok {
		if m.parent == nil {
			m.parent = &writer{cell: m.now}
		}
		m.parent.overwrites = m.parent.overwrites || wrote.overwrites
		m.parent.computed = m.parent.computed || wrote.computed
	}
}

// sinceFork returns what the parent has done to a cell since the version at
// which it was base, if it has done anything.
func sinceFork(form Form, base, now *Cell, version uint64) (w writer, ok bool) {
	if base == now {
		return w, false
	}
	w = writer{cell: now, overwrites: true}
	if now != nil {
		bornSince := base != nil && now.born > version
		w.overwrites = bornSince || now.overwritten > version
		w.computed = now.computed > version
	}
	return w, !w.overwrites || !form.Same(base, now)
}

// edit returns the edit that joins what all have done.
func (m *mergeCell) edit() (Edit, error) {
	e := Edit{Address: m.Address, From: m.now}
	for _, side := range m.sides {
		e.Ops = append(e.Ops, side.ops...)
	}
	writers := m.writers()
	if !slices.ContainsFunc(writers, func(w writer) bool { return w.overwrites }) {
		var err error
		e.To, err = m.replay()
		return e, err
	}
	winner, err := m.pick(writers)
	if err != nil {
		return e, err
	}
	e.To = winner.cell.merged()
	// The cell counts as overwritten in this version, even if the parent had
	// the same value before.
	e.Overwrites = slices.ContainsFunc(e.Ops, func(o Op) bool { return o.Overwrites })
	e.Computed = e.Overwrites && winner.computed
	return e, nil
}

// writers returns the parent, if it has written, and the branches.
func (m *mergeCell) writers() []writer {
	if m.parent == nil {
		return m.sides
	}
	return append([]writer{*m.parent}, m.sides...)
}

// replay does the ops of the branches again on the present cell.
func (m *mergeCell) replay() (*Merged, error) {
	if len(m.sides) == 1 && m.parent == nil {
		return m.sides[0].cell.merged(), nil
	}
	current := m.now
	var result *Merged
	for _, side := range m.sides {
		for i := range side.ops {
			r, err := side.ops[i].Apply(current)
			if err != nil {
				return nil, err
			}
			result = &r
			current = &Cell{Value: r.Value, Size: r.Size}
		}
	}
	if result == nil {
		return m.now.merged(), nil
	}
	return result, m.Slot.Form.Check(*result)
}

// pick returns the writer whose value stands where some have overwritten the
// cell.
func (m *mergeCell) pick(writers []writer) (writer, error) {
	first, last := writers[0], writers[len(writers)-1]
	switch {
	case len(writers) == 1 || m.Slot.Policy == PolicyFirstWins:
		return first, nil
	case m.Slot.Policy == PolicyLastWins:
		return last, nil
	}
	for _, w := range writers {
		if !w.overwrites || w.computed || !m.Slot.Form.Same(w.cell, first.cell) {
			return first, ErrOverlap
		}
	}
	return first, nil
}
