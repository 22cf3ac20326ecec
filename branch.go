package state

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/list"
	"github.com/agentstate/state/internal/value"
)

// branch is one line of versions: the state itself, a fork, a transaction, or,
// frozen, a snapshot. Handles share it.
type branch struct {
	schema *Schema
	tree   atomic.Pointer[tree]

	mu      sync.Mutex // guards what follows, and all writing to the tree
	version atomic.Uint64
	owned   bool // the tree may be changed in place
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
	b.ended = err
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

// op is one write to one field.
type op struct {
	kind     Op
	spec     *spec
	key      string   // of an undeclared key
	handler  *handler // nil where the write does not merge
	value    any      // the update in stored form; for lists also a slice
	size     int      // of the update
	by       *signature
	tail     int32 // if > 0, the update is the last tail elements of the list value
	class    int16 // read class + 1, if not that of the field
	computed bool  // the value was computed from what was read
	borrowed bool  // value belongs to the caller: it must not be kept
}

// update returns what the op writes, without hidden.
func (o *op) update() any {
	v := bare(o.value)
	if o.tail > 0 {
		l := v.(*list.List)
		return span{l, l.Len() - int(o.tail), l.Len()}
	}
	return v
}

func (o *op) name() string {
	if o.spec.slot < 0 {
		return o.key
	}
	return o.spec.name
}

func (o *op) runsUserCode() bool {
	return o.spec.validate != nil || o.handler != nil && o.handler.user
}

// result is what an op makes of a field.
type result struct {
	value any
	size  int
}

// step returns what the op makes of the present entry. It does not validate.
func (o *op) step(cur *entry, lim value.Limits) (result, error) {
	sp := o.spec
	var r result
	var err error
	if o.handler.overwrites() {
		r.size = o.size
		r.value, err = sp.settle(o.update(), o.size, o.borrowed)
	} else {
		var current any
		if cur != nil {
			current = bare(cur.value)
		}
		r.value, r.size, err = o.handler.merge(sp, current, cur != nil, o.update(), o.size, o.borrowed, lim)
	}
	if err != nil {
		return r, err
	}
	if sp.maxBytes > 0 && r.size > sp.maxBytes {
		return r, &LimitError{Name: "MaxBytes", Field: o.name(), Limit: sp.maxBytes, Got: r.size}
	}
	if lim.Bytes > 0 && r.size > lim.Bytes {
		return r, &LimitError{Name: "ValueBytes", Field: o.name(), Limit: lim.Bytes, Got: r.size}
	}
	return r, nil
}

// check runs the field's validation on a result.
func (sp *spec) check(r result) (err error) {
	if sp.validate == nil {
		return nil
	}
	leave := enterUserCode()
	defer leave()
	defer func() {
		if p := recover(); p != nil {
			err = fieldError(sp.name, errors.New("state: validation panicked"))
		}
	}()
	if err := sp.validate(sp.out(r.value)); err != nil {
		if sp.secret {
			return fieldError(sp.name, errors.New("state: validation refused the value"))
		}
		return fieldError(sp.name, err)
	}
	return nil
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
	// over says that the result takes no account of from, and computed that it
	// was computed from a read.
	over, computed bool
}

// put commits an op that writes a value of the field's type.
func (h *handle) put(o op, v any) error {
	sp := o.spec
	// A list is not copied before its elements are assigned to the state's own.
	o.borrowed = sp.list != nil && (o.handler.overwrites() || o.handler.kind == appends) && !o.runsUserCode()
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
	if b.ended != nil {
		return false, b.ended
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
	return b.ended
}

// commitIf is commitOne, unless the entry is no longer cur.
func (b *branch) commitIf(h *handle, o *op, cur *entry, r *result) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tree.Load().get(o.spec, o.key) != cur {
		return false, b.ended
	}
	return true, b.commitOne(h, o, cur, r)
}

// commitOne writes one field as the next version. The branch is locked.
func (b *branch) commitOne(h *handle, o *op, cur *entry, r *result) error {
	if b.ended != nil {
		return b.ended
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
	class := o.readClass()
	t.classes[class].versions++
	b.install(t, o.spec, o.key, cur, r, version, o.handler.overwrites(), o.computed, []op{*o})
	b.publish(t, version)
	return nil
}

// commit makes edits as the next version, and reports whether all that they
// build on is still so. The branch is locked.
func (b *branch) commit(h *handle, edits []edit) (bool, error) {
	if b.ended != nil {
		return false, b.ended
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
			if e.from == nil && e.to != nil && e.spec.slot != historySlot {
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
	for i := range edits {
		e := &edits[i]
		if len(e.ops) == 0 {
			continue
		}
		for j := range e.ops {
			touched.with(e.ops[j].readClass())
		}
		b.install(t, e.spec, e.key, e.from, e.to, version, e.over, e.computed, e.ops)
	}
	t.count(touched, 1)
	b.publish(t, version)
	return true, nil
}

func (o *op) readClass() int {
	if o.class > 0 {
		return int(o.class) - 1
	}
	return o.spec.class
}

// install puts what was made of a field into a tree that the branch owns, and
// notes it in the journal.
func (b *branch) install(t *tree, sp *spec, key string, from *entry, to *result, version uint64, over, computed bool, ops []op) {
	var e *entry
	if to != nil {
		e = &entry{value: sp.hide(to.value), size: to.size, version: version, born: version}
		if from != nil {
			e.born, e.over, e.computed = from.born, from.over, from.computed
		}
		if over {
			e.over, e.computed = version, 0
			if computed {
				e.computed = version
			}
		}
	}
	t.put(sp, key, e)
	t.member(sp, from, e)
	for i := range ops {
		o := &ops[i]
		o.settle(e)
		t.classes[o.readClass()].journal.add(record{
			version: version,
			at:      time.Since(b.origin),
			op:      *o,
			old:     from,
			new:     e,
		}, b.schema.limits.Journal)
		if b.parent != nil {
			b.note(o)
		}
	}
}

// settle replaces a value that must not be kept by the part of the list, or the
// result, that it has become.
func (o *op) settle(to *entry) {
	switch {
	case !o.borrowed || to == nil:
		return
	case o.spec.slot == historySlot:
		st := to.value.(*stack)
		o.value = resultRef{st, st.at(st.results.Len() - 1)}
	default:
		if !o.handler.overwrites() {
			o.tail = int32(o.spec.slice(bare(o.value)).Len())
		}
		o.value = to.value
	}
	o.borrowed = false
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

// set counts the fields that have a value and that the handle may read.
func (t *tree) set(h *handle) int {
	n := 0
	for class := range t.classes {
		if h.sees(class) {
			n += t.classes[class].set
		}
	}
	return n
}

// member notes that a field became set or unset.
func (t *tree) member(sp *spec, from, to *entry) {
	if sp.slot == historySlot || (from == nil) == (to == nil) {
		return
	}
	c := &t.classes[sp.class]
	c.members++
	if from == nil {
		c.set++
	} else {
		c.set--
	}
}

// count notes n versions that changed fields of the touched classes.
func (t *tree) count(touched bits, n int) {
	for class := range t.classes {
		if slices.Equal(make(bits, len(touched)).with(class), touched) {
			t.classes[class].versions += uint64(n)
			return
		}
	}
	t.mixed = slices.Clone(t.mixed)
	for i := range t.mixed {
		if slices.Equal(t.mixed[i].classes, touched) {
			t.mixed[i].versions += uint64(n)
			return
		}
	}
	t.mixed = append(t.mixed, mixed{classes: slices.Clone(touched), versions: uint64(n)})
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

// attempts is how often a write is tried that others keep overtaking. Each time
// it fails another write has succeeded, so that among any number of writers that
// only contend it does not run out.
const attempts = 10_000

// attempt calls try until it is done or fails.
func (b *branch) attempt(try func() (done bool, err error)) error {
	for i := range attempts {
		if done, err := try(); done || err != nil {
			return err
		}
		pause(i)
	}
	return ErrConflict
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
