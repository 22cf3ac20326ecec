package state

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// branch is one line of versions: the state itself, a fork, a transaction, or,
// frozen, a snapshot. Handles share it.
type branch struct {
	schema *Schema
	tree   atomic.Pointer[tree]

	mu      sync.Mutex // guards what follows, and all writing to the tree
	version atomic.Uint64
	owned   bool         // the tree may be changed in place
	urgent  atomic.Int32 // how many have been overtaken too often
	joining bool         // a Join is at work on it
	ended   error
	wake    chan struct{} // closed by the next commit; nil while nobody waits

	origin time.Time // times in the journal count from here

	forked uint64 // the version it began with; the journal begins after it

	// Of a fork or a transaction:
	parent *branch
	base   *tree // of the parent, when it was forked
	nets   nets
	// reads notes what a transaction has read, also through forks of it.
	reads *readSet
}

// fieldKey identifies a field within a branch: a slot, or -1 and a name.
type fieldKey struct {
	slot int
	key  string
}

func newBranch(schema *Schema) *branch {
	b := &branch{schema: schema, origin: time.Now()}
	b.tree.Store(newTree(schema))
	return b
}

// freeze returns a frozen branch with the present content. It costs the same
// however much that is.
func (b *branch) freeze() *branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == ErrReadOnly && b.parent == nil {
		return b
	}
	f := &branch{schema: b.schema, origin: b.origin, ended: ErrReadOnly, forked: b.forked, reads: b.reads}
	f.tree.Store(b.tree.Load())
	f.version.Store(b.version.Load())
	b.owned = false
	return f
}

// fork returns a branch that begins with the present content.
func (b *branch) fork() *branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tree.Load()
	b.owned = false
	f := &branch{
		schema: b.schema,
		origin: b.origin,
		parent: b,
		base:   t,
		forked: b.version.Load(),
		reads:  b.reads,
	}
	f.tree.Store(t)
	f.version.Store(f.forked)
	return f
}

// end makes every later write fail with err.
func (b *branch) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.joining = err, false
	b.wakeAll()
}

// load returns the entry of a declared field, or nil.
func (b *branch) load(slot int) *entry {
	if b.reads != nil {
		b.reads.add(fieldKey{slot: slot})
	}
	return b.tree.Load().slot(slot)
}

// get returns the entry of a field, or nil.
func (b *branch) get(sp *spec, key string) *entry {
	if b.reads != nil {
		b.reads.add(fieldKey{sp.slot, key})
	}
	return b.tree.Load().get(sp, key)
}

// edit is what a commit does to one field: replace the entry from by a result,
// or by nothing if there is none, as the ops say. Without ops it only requires
// that the entry is still from.
type edit struct {
	spec *spec
	key  string
	from *entry
	to   *result
	ops  []op
	effect
}

// effect is what an edit means for others.
type effect struct {
	over     bool  // the result takes no account of what was there
	computed bool  // it was computed from a read
	classes  []int // further read classes to which the edit shows
}

// put commits an op that writes a value of the field's type.
func (h *handle) put(o op, v any) error {
	sp := o.spec
	// A list is not copied before its elements are assigned to the state's own.
	o.borrowed = sp.list != nil && (o.handler.overwrites() || o.handler.kind == appends) && !sp.methods && !o.runsUserCode()
	stored, size, err := sp.take(v, h.schema.limits.value(), o.borrowed)
	if err != nil {
		return err
	}
	o.value, o.size = sp.hide(stored), size
	return h.write(o)
}

// write commits one op.
func (h *handle) write(o op) error {
	if reentered() {
		return errReentered
	}
	b := h.branch
	o.by = h.signature
	if !o.runsUserCode() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t := b.tree.Load()
		cur := t.get(o.spec, o.key)
		r, err := o.step(cur, h.schema.limits.value())
		if err != nil {
			return err
		}
		return b.commitOne(h, &o, cur, &r)
	}
	return b.attempt(func() (bool, error) {
		cur := b.tree.Load().get(o.spec, o.key)
		r, err := o.step(cur, h.schema.limits.value())
		if err == nil {
			err = o.spec.check(r)
		}
		if err != nil {
			return false, err
		}
		return b.commitIf(h, &o, cur, &r)
	})
}

// rewrite commits an op whose value fn computes from the present one.
func (h *handle) rewrite(o op, fn func(current any, present bool) (any, error)) error {
	if reentered() {
		return errReentered
	}
	b := h.branch
	o.by = h.signature
	return b.attempt(func() (bool, error) {
		if err := b.alive(); err != nil {
			return false, err
		}
		cur := b.get(o.spec, o.key)
		var current any
		if cur != nil {
			current = o.spec.out(cur.value)
		}
		v, err := fn(current, cur != nil)
		if err != nil {
			return false, err
		}
		lim := h.schema.limits.value()
		if v, o.size, err = o.spec.take(v, lim, false); err != nil {
			return false, err
		}
		o.value = o.spec.hide(v)
		r, err := o.step(cur, lim)
		if err == nil {
			err = o.spec.check(r)
		}
		if err != nil {
			return false, err
		}
		return b.commitIf(h, &o, cur, &r)
	})
}

// delete commits a deletion, if there is something to delete.
func (h *handle) delete(sp *spec, key string) (bool, error) {
	if reentered() {
		return false, errReentered
	}
	b := h.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refusal(); err != nil {
		return false, err
	}
	cur := b.get(sp, key)
	if cur == nil {
		return false, nil
	}
	o := op{kind: OpDelete, spec: sp, key: key, by: h.signature}
	return true, b.commitOne(h, &o, cur, nil)
}

// alive returns the error that a write would get.
func (b *branch) alive() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal()
}

// refusal returns the error that a write gets, if it does. The branch is locked.
func (b *branch) refusal() error {
	if b.joining {
		return ErrJoined
	}
	return b.ended
}

// commitIf is commitOne, unless the entry is no longer cur.
func (b *branch) commitIf(h *handle, o *op, cur *entry, r *result) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tree.Load().get(o.spec, o.key) != cur {
		return false, b.refusal()
	}
	return true, b.commitOne(h, o, cur, r)
}

// commitOne writes one field as the next version. The branch is locked.
func (b *branch) commitOne(h *handle, o *op, cur *entry, r *result) error {
	if err := b.refusal(); err != nil {
		return err
	}
	if cur == nil {
		if err := b.room(h, 1); err != nil {
			return err
		}
	}
	t := b.tree.Load()
	if !b.owned {
		t = b.copyTree()
	}
	version := b.version.Load() + 1
	t.classes[o.readClass()].versions++
	how := effect{over: o.handler.overwrites(), computed: o.computed}
	b.install(t, o.spec, o.key, cur, r, []op{*o}, how, version, 0)
	b.publish(t, version)
	return nil
}

// commit makes edits as the next version, and reports whether all that they
// build on is still so. The branch is locked.
func (b *branch) commit(h *handle, edits []edit) (bool, error) {
	if err := b.refusal(); err != nil {
		return false, err
	}
	old := b.tree.Load()
	writes, created := 0, 0
	for i := range edits {
		e := &edits[i]
		if old.get(e.spec, e.key) != e.from {
			return false, nil
		}
		if len(e.ops) > 0 {
			writes++
			if e.spec.slot == historySlot {
				if err := b.roomForResults(h, e); err != nil {
					return false, err
				}
			} else if e.from == nil && e.to != nil {
				created++
			}
		}
	}
	if writes == 0 {
		return true, nil
	}
	if err := b.room(h, created); err != nil {
		return false, err
	}
	// Readers take no lock: they must see all of the edits or none.
	t := b.copyTree()
	version := b.version.Load() + 1
	touched := make(bits, len(t.classes)>>6+1)
	seq := 0
	for i := range edits {
		e := &edits[i]
		if len(e.ops) == 0 {
			continue
		}
		if e.over && e.spec.slot == historySlot {
			e.classes = h.schema.resultClasses(stackOf(e.from), e.to)
		}
		for _, class := range e.classes {
			touched.with(class)
		}
		for j := range e.ops {
			touched.with(e.ops[j].readClass())
		}
		seq = b.install(t, e.spec, e.key, e.from, e.to, e.ops, e.effect, version, seq)
	}
	t.count(touched, 1)
	b.publish(t, version)
	return true, nil
}

// install puts what was made of a field into a tree that the branch owns, and
// notes it in the journal, where the ops of one version are numbered from seq.
func (b *branch) install(t *tree, sp *spec, key string, from *entry, to *result, ops []op, how effect, version uint64, seq int) int {
	var now *entry
	if to != nil {
		now = &entry{value: sp.hide(to.value), size: to.size, version: version, born: version}
		if from != nil {
			now.born, now.over, now.computed = from.born, from.over, from.computed
		}
		if how.over {
			now.over, now.computed = version, 0
			if how.computed {
				now.computed = version
			}
		}
	}
	t.put(sp, key, now)
	t.member(sp, from, now)
	for i := range ops {
		o := &ops[i]
		o.settle(now)
		r := record{version: version, seq: seq, at: time.Since(b.origin), op: *o}
		if sp.secret {
			r.op.value, r.op.size = nil, 0 // the journal holds no secrets
		} else {
			r.old, r.new = from, now
		}
		t.classes[o.readClass()].journal.add(r, b.schema.limits.Journal)
		for _, class := range how.classes {
			if class != o.readClass() && o.handler.overwrites() {
				t.classes[class].journal.add(r, b.schema.limits.Journal)
			}
		}
		if b.parent != nil {
			b.note(o)
		}
		seq++
	}
	return seq
}

// publish makes a tree the present one. The branch is locked.
func (b *branch) publish(t *tree, version uint64) {
	b.owned = true
	b.tree.Store(t)
	b.version.Store(version)
	b.wakeAll()
}

// wakeAll lets everybody who watches look again. The branch is locked.
func (b *branch) wakeAll() {
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// room returns an error if n more fields would be more than the limit, as far
// as the handle can see. The branch is locked.
func (b *branch) room(h *handle, n int) error {
	most := b.schema.limits.Keys
	if n == 0 || most == 0 {
		return nil
	}
	if set := b.tree.Load().set(h); set+n > most {
		return &LimitError{Name: "Keys", Limit: most, Got: set + n}
	}
	return nil
}

// copyTree returns a copy of the present tree for the branch to change.
func (b *branch) copyTree() *tree {
	old := b.tree.Load()
	t := old.clone()
	if old == b.base {
		// The journal's tail is the parent's to write.
		for class := range t.classes {
			t.classes[class].journal = journal{start: b.forked}
		}
	}
	return t
}

// roomForResults is room for the results of the history.
func (b *branch) roomForResults(h *handle, e *edit) error {
	most := b.schema.limits.Results
	if most == 0 || e.to == nil {
		return nil
	}
	n := e.to.value.(*stack).count(h)
	if n > most && n > stackOf(e.from).count(h) {
		return &LimitError{Name: "Results", Limit: most, Got: n}
	}
	return nil
}

const (
	// attempts is how often a write is tried that others keep overtaking. Each
	// time it fails another one has succeeded.
	attempts = 2000
	// patience is after how many of them others are asked to give way.
	patience = 64
	// courtesy is for how long they do. It ends, since the one who asks may be
	// waiting for them: fn may use the outer handle.
	courtesy = 100 * time.Millisecond
)

// attempt calls try until it is done or fails.
func (b *branch) attempt(try func() (done bool, err error)) error {
	for i := range attempts {
		switch {
		case i == patience:
			b.urgent.Add(1)
			defer b.urgent.Add(-1)
		case i < patience:
			b.giveWay()
		}
		if done, err := try(); done || err != nil {
			return err
		}
		pause(i)
	}
	return ErrConflict
}

// giveWay waits while there is one who has been overtaken too often, for a while.
func (b *branch) giveWay() {
	for start := time.Now(); b.urgent.Load() > 0 && time.Since(start) < courtesy; {
		time.Sleep(courtesy / 100)
	}
}

// pause lets others finish, longer from time to time.
func pause(attempt int) {
	if attempt < 4 {
		runtime.Gosched()
		return
	}
	longest := time.Microsecond << min(attempt, 10)
	time.Sleep(rand.N(longest))
}
