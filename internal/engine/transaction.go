package engine

import (
	"errors"
	"time"
)

// Update calls fn with a transaction: a branch that notes what is read from it.
// The writes of fn are committed as one version, unless fn returns an error. If
// a cell that fn has read or overwritten changes meanwhile, fn runs again.
func (b *Branch) Update(v View, fn func(tx *Branch) error) error {
	return b.retry(func(self *contender) (attempt, error) {
		if err := b.Alive(); err != nil {
			return attempt{}, err
		}
		tx := b.Fork()
		tx.transaction, tx.reads = true, newReadSet(b.reads)
		if err := tx.run(fn); err != nil {
			return attempt{}, err
		}
		return b.finish(v, self, tx)
	})
}

// run calls fn with the transaction, which has ended when run returns.
func (b *Branch) run(fn func(tx *Branch) error) error {
	defer b.end(ErrFrozen)
	return fn(b)
}

// finish commits an ended transaction, unless something that it depends on has
// changed.
func (b *Branch) finish(v View, self *contender, tx *Branch) (attempt, error) {
	if len(tx.nets.list) == 0 {
		return attempt{done: true}, nil // a transaction that has only read
	}
	r := newRebase(tx)
	releaseTurns, err := b.TakeTurns(r.callbacks())
	if err != nil {
		return attempt{}, err
	}
	defer releaseTurns()
	for {
		began := time.Now()
		edits, err := r.edits(b.tree.Load())
		if overtaken := (*OverlapError)(nil); errors.As(err, &overtaken) {
			return attempt{at: overtaken.Addresses}, nil
		}
		if err != nil {
			return attempt{}, err
		}
		result, err := b.commitRebased(v, self, r, edits)
		if result.done || err != nil || len(result.at) == 0 {
			return result, err
		}
		// If only cells have changed that tx merges into, it can be rebased
		// again.
		if err := self.again(result.at, began); err != nil {
			return attempt{}, err
		}
	}
}

// commitRebased commits the edits of a rebase, unless one of the cells that
// they build on, the set addresses if the transaction has listed them, or the
// version if it has asked for it, has changed.
func (b *Branch) commitRebased(v View, self *contender, r *rebase, edits []Edit) (attempt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.yieldEdits(self, edits)
	if r.listed && b.tree.Load().changes != r.tx.base.changes || r.versions && b.version != r.tx.forked {
		return attempt{}, nil
	}
	return b.commit(v, edits)
}

// rebase does what a transaction has done again on newer trees of its parent.
type rebase struct {
	tx       *Branch
	reads    map[Address]bool
	listed   bool // the transaction listed the set addresses
	versions bool // it asked for the version
}

func newRebase(tx *Branch) *rebase {
	r := &rebase{tx: tx}
	r.reads, r.listed, r.versions = tx.reads.all()
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
// has done, or an [OverlapError] if the transaction must run again.
func (r *rebase) edits(t *Tree) ([]Edit, error) {
	tx := r.tx
	var edits []Edit
	var overlap OverlapError
	for _, n := range tx.nets.sorted() {
		e := Edit{Address: n.Address, From: t.Get(n.Address), Overwrites: n.Overwrites, Computed: n.Computed}
		e.Ops, e.Read = n.Ops, r.reads[n.Address]
		switch {
		case e.From == tx.base.Get(n.Address):
			e.To = tx.tree.Load().Get(n.Address).merged()
		case n.Overwrites || r.reads[n.Address]:
			overlap.Addresses = append(overlap.Addresses, n.Address)
		case len(overlap.Addresses) > 0: // there is no need to replay
		default:
			m := mergeCell{Address: n.Address, now: e.From, parent: &writer{}, sides: []writer{{ops: n.Ops}}}
			var err error
			if e.To, err = m.replay(); errors.Is(err, ErrOverlap) {
				overlap.Addresses = append(overlap.Addresses, n.Address)
			} else if err != nil {
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
			overlap.Addresses = append(overlap.Addresses, a)
		}
		edits = append(edits, e)
	}
	if len(overlap.Addresses) > 0 {
		return nil, &overlap
	}
	return edits, nil
}
