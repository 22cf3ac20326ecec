package engine

import (
	"fmt"
	"time"

	"github.com/agentstate/state/internal/persist"
)

// FullError reports a write that would set more addresses than
// [Layout].MaxKeys, as far as the writer sees them.
type FullError struct{ Limit, Got int }

func (e *FullError) Error() string {
	return fmt.Sprintf("state: %d addresses are more than %d", e.Got, e.Limit)
}

// Write commits one op as the next version. It takes over a borrowed update.
func (b *Branch) Write(v View, o *Op) error {
	if o.Callback {
		return b.writeInTurn(v, *o, nil, nil)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.yield(nil, o.Address)
	current := b.tree.Load().Get(o.Address)
	m, err := o.Apply(current)
	if err != nil {
		return err
	}
	o.own(&m)
	return b.commitOne(v, o, current, &m, nil)
}

// Rewrite commits an op whose update is computed from the current cell, which
// is nil if the address is not set. compute runs without the lock, and again if
// the cell changes meanwhile.
func (b *Branch) Rewrite(v View, o Op, compute func(current *Cell) (Update, error)) error {
	return b.writeInTurn(v, o, compute, nil)
}

// RewriteKept is Rewrite for a slot that is kept. It may retain compute.
func (b *Branch) RewriteKept(v View, o Op, compute func(current *Cell) (Update, error)) error {
	return b.writeInTurn(v, o, compute, compute)
}

// writeInTurn commits an op that calls code of the user. The code runs without
// the lock; the turn of the address keeps other code for it away.
func (b *Branch) writeInTurn(v View, o Op, compute, again func(current *Cell) (Update, error)) error {
	if err := b.takeTurn(o.Address, o.Merger, true); err != nil {
		return err
	}
	defer b.releaseTurn(o.Address)
	try := func(self *contender) (attempt, error) {
		var result attempt
		current := b.Peek(o.Address)
		if compute != nil {
			err := b.Alive()
			if err != nil {
				return result, err
			}
			current = b.Get(o.Address)
			if o.Update, err = compute(current); err != nil {
				return result, err
			}
		}
		m, err := o.Apply(current)
		if err == nil {
			err = o.Slot.Form.Check(m)
		}
		if err == nil {
			result.done, err = b.commitIf(v, self, &o, current, &m, again)
		}
		if !result.done {
			result.at = []Address{o.Address}
		}
		return result, err
	}
	if result, err := try(nil); result.done || err != nil {
		return err // most writes, which need no contender
	}
	return b.retry(try)
}

// Delete commits a deletion, if the address is set, and reports whether it was.
func (b *Branch) Delete(v View, o *Op) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refusal(); err != nil {
		return false, err
	}
	b.yield(nil, o.Address)
	current := b.Get(o.Address)
	if current == nil {
		return false, nil
	}
	return true, b.commitOne(v, o, current, nil, nil)
}

// commitIf is commitOne if the cell is still current, and reports whether it
// is.
func (b *Branch) commitIf(
	v View, self *contender, o *Op, current *Cell, to *Merged, again func(*Cell) (Update, error),
) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.yield(self, o.Address)
	if b.tree.Load().Get(o.Address) != current {
		return false, b.refusal()
	}
	return true, b.commitOne(v, o, current, to, again)
}

// commitOne commits one op, in place if it can. The branch is locked. again is
// kept with the op if its slot is.
func (b *Branch) commitOne(v View, o *Op, current *Cell, to *Merged, again func(*Cell) (Update, error)) error {
	if err := b.refusal(); err != nil {
		return err
	}
	if current == nil {
		if err := b.room(v, 1); err != nil {
			return err
		}
	}
	t := b.tree.Load()
	if !b.owned {
		t = t.clone()
	}
	c := committer{branch: b, tree: t, version: b.version + 1, single: true}
	now := c.put(o.Address, current, to, o.Overwrites, o.Computed)
	c.note(o, current, now)
	if b.keeps && o.Slot.Kept {
		c.keepOp(o, current, now, again)
	}
	b.publish(t, c.version)
	return nil
}

// commit makes edits the next version, unless a cell that they build on is no
// longer there: that is where it was overtaken. The branch is locked.
func (b *Branch) commit(v View, edits []Edit) (attempt, error) {
	if err := b.refusal(); err != nil {
		return attempt{}, err
	}
	old := b.tree.Load()
	writes, created := 0, 0
	for i := range edits {
		e := &edits[i]
		if old.Get(e.Address) != e.From {
			return attempt{at: []Address{e.Address}}, nil
		}
		if len(e.Ops) == 0 {
			continue
		}
		writes++
		if gate := e.Slot.Gate; gate != nil {
			if err := gate.Admit(v, e.From, e.To); err != nil {
				return attempt{}, err
			}
		}
		if e.Slot.Counted && e.From == nil && e.To != nil {
			created++
		}
	}
	if writes == 0 {
		return attempt{done: true}, nil
	}
	if err := b.room(v, created); err != nil {
		return attempt{}, err
	}
	// Readers take no lock. The commit edits a copy of the tree, so that they
	// see all edits or none.
	c := committer{branch: b, tree: old.clone(), version: b.version + 1}
	if b.keeps {
		c.keep(edits)
	}
	for i := range edits {
		if len(edits[i].Ops) > 0 {
			c.single = edits[i].Single
			c.edit(&edits[i])
		}
	}
	b.publish(c.tree, c.version)
	return attempt{done: true}, nil
}

// Commit commits the edits that plan returns for the present tree. plan is
// called under the lock: it must be quick and must not call code of the user.
func (b *Branch) Commit(v View, plan func(*Tree) ([]Edit, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		edits, err := plan(b.tree.Load())
		if err != nil {
			return err
		}
		// It is overtaken only while it yields, which it does not do for long.
		b.yieldEdits(nil, edits)
		result, err := b.commit(v, edits)
		if result.done || err != nil {
			return err
		}
	}
}

// Transact is Commit for a plan that takes time or calls code of the user,
// which is done in the turns of the given addresses. plan is called without the
// lock, and again if a cell that it builds on changes meanwhile.
func (b *Branch) Transact(v View, callbacks []Address, plan func(*Tree) ([]Edit, error)) error {
	releaseTurns, err := b.TakeTurns(callbacks)
	if err != nil {
		return err
	}
	defer releaseTurns()
	return b.retry(func(self *contender) (attempt, error) {
		if err := b.Alive(); err != nil {
			return attempt{}, err
		}
		edits, err := plan(b.tree.Load())
		if err != nil {
			return attempt{}, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.yieldEdits(self, edits)
		return b.commit(v, edits)
	})
}

// room returns an error if n more set addresses would exceed the limit. The
// branch is locked.
func (b *Branch) room(v View, n int) error {
	limit := b.layout.MaxKeys
	if n == 0 || limit == 0 {
		return nil
	}
	if set := b.tree.Load().countSet(b.layout, v); set+n > limit {
		return &FullError{Limit: limit, Got: set + n}
	}
	return nil
}

// committer makes one version in a tree that its branch owns.
type committer struct {
	branch  *Branch
	tree    *Tree
	version uint64
	single  bool          // the cell is the result of one op: what it overwrites or appends, the cell has
	at      time.Duration // since the origin of the branch; 0 until the first op is noted
}

// edit puts the result of an edit into the tree and notes its ops.
func (c *committer) edit(e *Edit) {
	now := c.put(e.Address, e.From, e.To, e.Overwrites, e.Computed)
	for i := range e.Ops {
		c.note(&e.Ops[i], e.From, now)
	}
}

// put replaces a cell and returns the new one, or nil if the cell is now unset.
func (c *committer) put(a Address, from *Cell, to *Merged, overwrites, computed bool) *Cell {
	var now *Cell
	if to != nil {
		now = &Cell{Value: to.Value, Size: to.Size, born: c.version}
		if from != nil {
			now.born, now.overwritten, now.computed = from.born, from.overwritten, from.computed
		}
		if overwrites {
			now.overwritten, now.computed = c.version, 0
			if computed {
				now.computed = c.version
			}
		}
	}
	c.tree.put(a, now)
	c.tree.noteSet(a.Slot, from, now)
	return now
}

// note adds an op to the journal. In a fork it is kept for the join.
func (c *committer) note(o *Op, from, now *Cell) {
	b := c.branch
	if c.at == 0 {
		c.at = time.Since(b.origin)
	}
	if gate := o.Slot.Gate; gate != nil && o.Overwrites && o.Classes == nil {
		o.Classes = gate.Classes(from, now)
	}
	c.record(o, from, now).at = c.at
	if b.recorded() {
		kept := *o
		// The value that a transaction writes may depend on anything that it
		// has read.
		kept.Computed = o.Computed || o.Overwrites && b.transaction
		b.nets.note(kept)
	}
}

// record adds a record of an op to the journal.
func (c *committer) record(o *Op, from, now *Cell) *Record {
	size := 0
	if !o.Slot.Secret {
		size = o.Size
		if from != nil && !o.Shares {
			size += from.Size
		}
	}
	j := &c.tree.journal
	if j.last() <= c.branch.forked {
		*j = journal{} // it is the parent's, and only the parent may append to it
	}
	r := j.next(&c.branch.bounds, c.version, size)
	r.Address, r.Author, r.Kind, r.Overwrites, r.classes = o.Address, o.Author, o.Kind, o.Overwrites, o.Classes
	if !o.Slot.Secret {
		r.Old, r.New, r.tail = from, now, o.Tail
		inCell := now != nil && c.single && (o.Overwrites || o.Tail > 0)
		if !inCell && (now != nil || o.Value != nil) {
			v := o.Value
			r.written = &v
		}
	}
	return r
}

// Loader fills a new branch, which no other goroutine uses, with the content of
// a version.
type Loader struct {
	branch *Branch
	tree   *Tree
	keys   []persist.Entry[Cell]
	// Version is the version that the branch is to have. Its journal begins
	// after it.
	Version uint64
}

// NewLoader returns a loader for an empty branch.
func NewLoader(b *Branch, version uint64) *Loader {
	return &Loader{branch: b, tree: b.tree.Load().clone(), Version: version}
}

// Put sets an address. It reports false if the address is set already. Keys are
// collected for PutKeys.
func (l *Loader) Put(a Address, m Merged) bool {
	c := &Cell{Value: m.Value, Size: m.Size, born: l.Version}
	if a.Slot.Keyed {
		l.keys = append(l.keys, persist.Entry[Cell]{Key: a.Key, Value: c})
	} else if l.tree.Get(a) != nil {
		return false
	} else {
		l.tree.put(a, c)
	}
	l.tree.noteSet(a.Slot, nil, c)
	return true
}

// PutKeys sets the keys that Put has got. If it has got one twice, PutKeys
// returns that key and sets none.
func (l *Loader) PutKeys() (double string, ok bool) { return l.tree.keys.Fill(l.tree.owner, l.keys) }

// Done publishes what was loaded.
func (l *Loader) Done() {
	b := l.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forked = l.Version
	b.publish(l.tree, l.Version)
}
