package engine

import "errors"

// Update calls fn with a transaction: a branch that notes what is read from it.
// The writes of fn are committed as one version, unless fn returns an error. If
// a cell that fn has read or overwritten changes meanwhile, fn runs again.
func (b *Branch) Update(v View, fn func(tx *Branch) error) error {
	err := b.retry(0, func() (bool, error) {
		if err := b.Alive(); err != nil {
			return false, err
		}
		tx := b.Fork()
		tx.transaction, tx.reads = true, newReadSet(b.reads)
		if err := tx.run(fn); err != nil {
			return false, err
		}
		return b.finish(v, tx)
	})
	if err == errOvertaken {
		return ErrConflict
	}
	return err
}

// run calls fn with the transaction, which has ended when run returns.
func (b *Branch) run(fn func(tx *Branch) error) error {
	defer b.end(ErrReadOnly)
	return fn(b)
}

// finish commits an ended transaction, and reports whether nothing that it
// depends on has changed.
func (b *Branch) finish(v View, tx *Branch) (bool, error) {
	if len(tx.nets.list) == 0 {
		return true, nil // a transaction that has only read
	}
	r := newRebase(tx)
	releaseTurns, err := b.TakeTurns(r.callbacks())
	if err != nil {
		return false, err
	}
	defer releaseTurns()
	for {
		edits, err := r.edits(b.tree.Load())
		if errors.Is(err, ErrOverlap) {
			return false, nil
		}
		if err != nil {
			return true, err
		}
		done, overtaken, err := b.commitRebased(v, r, edits)
		if done || overtaken || err != nil {
			return done, err
		}
		// If only cells have changed that tx merges into, it can be rebased
		// again.
	}
}

// commitRebased commits the edits of a rebase, and reports whether the cells
// that they build on are still there. overtaken is set if the transaction must
// run again since it listed the set addresses and they have changed.
func (b *Branch) commitRebased(v View, r *rebase, edits []Edit) (done, overtaken bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.listed && !b.tree.Load().sameSet(b.layout, r.tx.base, v) {
		return false, true, nil
	}
	done, err = b.commit(v, edits)
	return done, false, err
}

// rebase does what a transaction has done again on newer trees of its parent.
type rebase struct {
	tx     *Branch
	reads  map[Address]bool
	listed bool // the transaction listed the set addresses
}

func newRebase(tx *Branch) *rebase {
	r := &rebase{tx: tx}
	r.reads, r.listed = tx.reads.all()
	return r
}

// callbacks returns the addresses for which code of the user may run again.
func (r *rebase) callbacks() []Address {
	var addresses []Address
	for _, n := range r.tx.nets.list {
		if n.callback() {
			addresses = append(addresses, n.Address)
		}
	}
	return addresses
}

// edits returns the edits that do in a tree of the parent what the transaction
// has done, or ErrOverlap if the transaction must run again.
func (r *rebase) edits(t *Tree) ([]Edit, error) {
	tx := r.tx
	var edits []Edit
	for _, n := range tx.nets.sorted() {
		e := Edit{Address: n.Address, From: t.Get(n.Address), Overwrites: n.Overwrites, Computed: n.Computed}
		e.Ops, e.Parts = n.shown()
		switch {
		case e.From == tx.base.Get(n.Address):
			e.To = tx.tree.Load().Get(n.Address).merged()
		case n.Overwrites || r.reads[n.Address]:
			return nil, ErrOverlap
		default:
			m := mergeCell{Address: n.Address, now: e.From, parent: &writer{}, sides: []writer{{ops: n.Ops}}}
			var err error
			if e.To, err = m.replay(); err != nil {
				return nil, err
			}
		}
		edits = append(edits, e)
	}
	for a := range r.reads {
		if tx.nets.get(a) != nil {
			continue
		}
		e := Edit{Address: a, From: tx.base.Get(a)}
		if t.Get(a) != e.From {
			return nil, ErrOverlap
		}
		edits = append(edits, e)
	}
	return edits, nil
}
