package state

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/exp/maps"
)

// readSet notes which fields a transaction has read.
type readSet struct {
	up *readSet // of the transaction around it

	mu     sync.Mutex // guards what follows
	fields map[fieldKey]bool
	listed bool // it asked which fields are set
}

func (r *readSet) add(k fieldKey) {
	for ; r != nil; r = r.up {
		r.mu.Lock()
		r.fields[k] = true
		r.mu.Unlock()
	}
}

func (r *readSet) list() {
	for ; r != nil; r = r.up {
		r.mu.Lock()
		r.listed = true
		r.mu.Unlock()
	}
}

// transaction reports whether the branch is a transaction: a branch that Update
// made. Forks of it note their reads in the same set but are plain branches.
func (b *branch) transaction() bool {
	return b.parent != nil && b.reads != nil && b.reads != b.parent.reads
}

// begin returns a branch for a transaction.
func (b *branch) begin() *branch {
	tx := b.fork()
	tx.reads = &readSet{up: b.reads, fields: map[fieldKey]bool{}}
	return tx
}

// Update commits all that fn writes to tx as one version, or none of it: if fn
// returns an error, that error is returned and nothing changes. fn reads one
// consistent state, and its own writes. If a field that it read or wrote has
// changed by the time it returns, or the set of keys if it listed them, fn runs
// again, so it must have no other effects. Writes through handlers, without
// reading, never conflict. fn runs without a lock; using s inside it is allowed
// and not part of the transaction.
//
// tx is no longer writable when fn has returned. Branches of tx are joined to
// tx, before that. Update on tx nests. [ErrConflict] is returned if fn was
// overtaken again and again, as by a fn that itself writes through s what it
// reads through tx.
func (s *State) Update(fn func(tx *State) error) error {
	h := s.on()
	if reentered() {
		return errReentered
	}
	return h.branch.attempt(func() (bool, error) {
		if err := h.branch.alive(); err != nil {
			return false, err
		}
		tx := h.branch.begin()
		if err := h.run(tx, fn); err != nil {
			return false, err
		}
		return h.finish(tx)
	})
}

// run calls fn with a handle on tx, which has ended when it returns.
func (h *handle) run(tx *branch, fn func(*State) error) error {
	defer tx.end(ErrReadOnly)
	inner := *h
	inner.branch = tx
	return fn(&State{handle: inner})
}

// finish commits an ended transaction, and reports whether nothing that it
// depends on has changed.
func (h *handle) finish(tx *branch) (bool, error) {
	b := h.branch
	reads, listed := tx.reads.all()
	for {
		edits, err := h.rebase(tx, reads, b.tree.Load())
		if errors.Is(err, errOverlap) {
			return false, nil
		}
		if err != nil || len(edits) == 0 {
			return true, err
		}
		b.mu.Lock()
		if listed && !h.sameMembers(b.tree.Load(), tx.base) {
			b.mu.Unlock()
			return false, nil
		}
		done, err := b.commit(h, edits)
		b.mu.Unlock()
		if done || err != nil {
			return done, err
		}
		// If what moved are only fields that tx merges into, it can still be done.
	}
}

// all returns the fields that were read and whether they were listed.
func (r *readSet) all() ([]fieldKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Keys(r.fields), r.listed
}

// sameMembers reports whether the same fields are set in two trees, as far as
// the handle can see.
func (h *handle) sameMembers(t, base *tree) bool {
	for class := range t.classes {
		if h.sees(class) && t.classes[class].members != base.classes[class].members {
			return false
		}
	}
	return true
}

// rebase returns the edits that do on a tree of the parent what tx has done on
// the one it began with. A transaction that has only read has none.
func (h *handle) rebase(tx *branch, reads []fieldKey, t *tree) ([]edit, error) {
	var edits []edit
	for _, n := range tx.sorted() {
		e := edit{spec: n.spec, key: n.key, from: t.get(n.spec, n.key), ops: n.ops, effect: effect{over: n.over, computed: n.computed}}
		switch {
		case e.from == tx.base.get(n.spec, n.key):
			e.to = resultOf(tx.tree.Load().get(n.spec, n.key))
		case n.over || slices.Contains(reads, fieldKey{n.spec.slot, n.key}):
			return nil, errOverlap
		default:
			var err error
			if e, err = h.replay(e, []writer{{}, {net: n}}); err != nil {
				return nil, err
			}
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return nil, nil
	}
	for _, k := range reads {
		sp := h.schema.spec(k.slot)
		if tx.nets.get(sp, k.key) != nil {
			continue
		}
		e := edit{spec: sp, key: k.key, from: tx.base.get(sp, k.key)}
		if t.get(sp, k.key) != e.from {
			return nil, errOverlap
		}
		edits = append(edits, e)
	}
	return edits, nil
}

// transact commits the edits that plan makes of the present tree. If planning
// runs code of the user it is done without the lock, and again if the tree has
// moved meanwhile.
func (h *handle) transact(user bool, plan func(*tree) ([]edit, error)) error {
	b := h.branch
	if !user {
		b.mu.Lock()
		defer b.mu.Unlock()
		edits, err := plan(b.tree.Load())
		if err != nil {
			return err
		}
		_, err = b.commit(h, edits)
		return err
	}
	return b.attempt(func() (bool, error) {
		if err := b.alive(); err != nil {
			return false, err
		}
		edits, err := plan(b.tree.Load())
		if err != nil {
			return false, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.commit(h, edits)
	})
}
