package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// net is what a branch has done to one field since it was forked. If over is
// set the result takes no account of the value at the fork, and ops begin with
// the write that made it so.
type net struct {
	spec     *spec
	key      string
	over     bool
	computed bool // that write was computed from a read
	ops      []op
	one      [1]op // most have one
}

// nets holds the nets of a branch, of which most have few.
type nets struct {
	list  []*net
	index map[fieldKey]*net // once there are many
}

const fewNets = 8

// get returns the net of a field, or nil.
func (ns *nets) get(sp *spec, key string) *net {
	if ns.index != nil {
		return ns.index[fieldKey{sp.slot, key}]
	}
	for _, n := range ns.list {
		if n.spec.slot == sp.slot && n.key == key {
			return n
		}
	}
	return nil
}

// add returns a new net for a field that has none.
func (ns *nets) add(sp *spec, key string) *net {
	n := &net{spec: sp, key: key}
	n.ops = n.one[:0]
	ns.list = append(ns.list, n)
	if ns.index == nil && len(ns.list) > fewNets {
		ns.index = map[fieldKey]*net{}
		for _, n := range ns.list {
			ns.index[fieldKey{n.spec.slot, n.key}] = n
		}
	} else if ns.index != nil {
		ns.index[fieldKey{sp.slot, key}] = n
	}
	return n
}

// note adds an op to the net of its field. The branch is locked.
func (b *branch) note(o *op) {
	n := b.nets.get(o.spec, o.key)
	if n == nil {
		n = b.nets.add(o.spec, o.key)
	}
	done := *o
	if o.handler.overwrites() {
		// Whatever a transaction overwrites may depend on what it has read.
		done.computed = o.computed || b.transaction()
		n.over, n.computed = true, done.computed
		clear(n.ops)
		n.ops = n.ops[:0]
	}
	n.ops = append(n.ops, done)
}

// Fork returns a branch: a state of its own that begins with this one's content
// and version. It costs the same however much that is. What is written to the
// branch shows here only when it is joined; what is written here never shows in
// the branch. A branch keeps its writes until then, so one that is never joined
// grows with them: to only look back, use Snapshot.
func (s *State) Fork() *State {
	h := *s.on()
	h.branch = h.branch.fork()
	return &State{handle: h}
}

// Join applies what branches of this state have done since they were forked, in
// the order of the arguments, as one version. The result depends on that order
// only, never on timing.
//
// Writes through handlers are merged: they are done again on the present value.
// A field that one side has overwritten (set without a handler, replaced,
// updated, deleted) while another side wrote it is a [ConflictError], unless
// the overwriting side left the value that it found, or all sides overwrote it
// with equal values and none computed it with Update, or the handler is
// FirstWins or LastWins. If there is any error nothing is applied, and every
// branch stays as usable as it was. A branch can be joined once, its own
// branches before it.
//
// A bound handle joins only branches that hold no more rights than its own and
// whose writes it could have made itself.
func (s *State) Join(branches ...*State) error {
	h := s.on()
	if reentered() {
		return errReentered
	}
	sides := make([]*branch, len(branches))
	for i, st := range branches {
		side, err := h.joinable(st)
		if err != nil {
			return within(fmt.Sprintf("join: branch %d", i), err)
		}
		if slices.Contains(sides[:i], side) {
			return within(fmt.Sprintf("join: branch %d", i), errors.New("given twice"))
		}
		sides[i] = side
	}
	// From here on nobody may write to the branches.
	for i, side := range sides {
		if err := side.join(); err != nil {
			for _, joined := range sides[:i] {
				joined.leave()
			}
			return within(fmt.Sprintf("join: branch %d", i), err)
		}
	}
	err := h.mayApply(sides)
	if err == nil {
		err = h.transact(true, func(t *tree) ([]edit, error) { return h.merge(t, sides) })
	}
	for _, side := range sides {
		if err != nil {
			side.leave()
		} else {
			side.end(ErrJoined)
		}
	}
	return err
}

// joinable returns the branch of a state that may be joined by this handle.
func (h *handle) joinable(st *State) (*branch, error) {
	o := st.on()
	switch {
	case o.branch.parent == nil || o.branch.transaction():
		return nil, errors.New("not a fork of this state")
	case o.branch.parent != h.branch:
		return nil, errors.New("a fork of another state")
	case !o.rights.within(h.rights):
		return nil, h.denied("join", "")
	}
	return o.branch, nil
}

// join keeps everybody from writing to a branch, until leave or end.
func (b *branch) join() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refusal(); err != nil {
		return err
	}
	b.joining = true
	return nil
}

// leave undoes join.
func (b *branch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joining = false
}

// mayApply returns an error if the branches hold writes that the handle could
// not have made.
func (h *handle) mayApply(sides []*branch) error {
	for _, side := range sides {
		for _, n := range side.sorted() {
			if err := h.mayNet(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *handle) mayNet(n *net) error {
	switch {
	case h.rights == nil:
		return nil
	case n.spec.slot == historySlot:
		for i := range n.ops {
			if o := &n.ops[i]; o.kind != OpAppend && !h.mayWrite(messagesSlot) || o.kind == OpAppend && o.by.agent != h.agent {
				return h.denied("join", historyName)
			}
		}
	case n.spec.slot < 0:
		if !h.member() {
			return h.denied("join", n.key)
		}
	case !h.mayWrite(n.spec.slot):
		return h.denied("join", n.spec.name)
	}
	return nil
}

// sorted returns the nets of a branch in the order of the schema. The branch
// must have ended, or be locked.
func (b *branch) sorted() []*net {
	nets := slices.Clone(b.nets.list)
	slices.SortFunc(nets, func(x, y *net) int {
		return cmp.Or(cmp.Compare(order(x.spec.slot), order(y.spec.slot)), cmp.Compare(x.key, y.key))
	})
	return nets
}

// order puts undeclared keys after all declared fields.
func order(slot int) int {
	if slot < 0 {
		return int(^uint(0) >> 1)
	}
	return slot
}

// merge returns the edits that join branches into a tree of their parent.
func (h *handle) merge(t *tree, sides []*branch) ([]edit, error) {
	var edits []edit
	var conflicts []string
	done := map[fieldKey]bool{}
	var keys []*net
	for _, side := range sides {
		for _, n := range side.sorted() {
			if k := (fieldKey{n.spec.slot, n.key}); !done[k] {
				done[k] = true
				keys = append(keys, n)
			}
		}
	}
	slices.SortStableFunc(keys, func(x, y *net) int {
		return cmp.Or(cmp.Compare(order(x.spec.slot), order(y.spec.slot)), cmp.Compare(x.key, y.key))
	})
	for _, n := range keys {
		e, err := h.mergeField(t, n.spec, n.key, sides)
		switch {
		case errors.Is(err, errOverlap):
			conflicts = append(conflicts, n.label())
		case err != nil:
			return nil, err
		default:
			edits = append(edits, e)
		}
	}
	if len(conflicts) > 0 {
		return nil, &ConflictError{Fields: conflicts}
	}
	return edits, nil
}

func (n *net) label() string {
	switch {
	case n.spec.slot == historySlot:
		return historyName
	case n.spec.slot < 0:
		return n.key
	}
	return n.spec.name
}

var errOverlap = errors.New("state: writes overlap")

// writer is one side's part in a field: the parent's since the fork, or a
// branch's.
type writer struct {
	net      *net   // nil: the parent
	entry    *entry // the result, nil if unset
	over     bool
	computed bool
}

// mergeField returns the edit that joins the branches' nets of one field.
func (h *handle) mergeField(t *tree, sp *spec, key string, sides []*branch) (edit, error) {
	now := t.get(sp, key)
	e := edit{spec: sp, key: key, from: now}
	var parent writer
	var writers []writer
	anyOver := false
	for _, side := range sides {
		n := side.nets.get(sp, key)
		if n == nil {
			continue
		}
		base := side.base.get(sp, key)
		w := writer{net: n, entry: side.tree.Load().get(sp, key), over: n.over, computed: n.computed}
		if w.over && sameEntry(sp, w.entry, base) {
			continue // an echo of what it found
		}
		if p, wrote := since(sp, base, now, side.forked); wrote {
			parent.entry = now
			parent.over = parent.over || p.over
			parent.computed = parent.computed || p.computed
			anyOver = anyOver || p.over
			if len(writers) == 0 || writers[0].net != nil {
				writers = slices.Insert(writers, 0, parent)
			}
			writers[0] = parent
		}
		e.ops = append(e.ops, n.ops...)
		anyOver = anyOver || w.over
		writers = append(writers, w)
	}
	if !anyOver {
		return h.replay(e, writers)
	}
	win, err := settleOver(sp, writers)
	if err != nil {
		return e, err
	}
	e.to = resultOf(win.entry)
	// The field counts as overwritten in this version, also if the parent had the
	// same value before.
	e.over = slices.ContainsFunc(e.ops, func(o op) bool { return o.handler.overwrites() })
	e.computed = e.over && win.computed
	return e, nil
}

// since reports what the parent has done to a field since a version at which it
// was base.
func since(sp *spec, base, now *entry, version uint64) (w writer, wrote bool) {
	w.entry = now
	switch {
	case base == now:
		return w, false
	case now == nil || base != nil && now.born > version:
		w.over = true
	default:
		w.over = now.over > version
	}
	w.computed = now != nil && now.computed > version
	if w.over && sameEntry(sp, base, now) {
		return w, false
	}
	return w, true
}

func sameEntry(sp *spec, a, b *entry) bool {
	if sp.slot == historySlot {
		return stackOf(a).equal(stackOf(b))
	}
	if a == nil || b == nil {
		return a == b
	}
	return a == b || sp.equal(a.value, b.value)
}

func resultOf(e *entry) *result {
	if e == nil {
		return nil
	}
	return &result{bare(e.value), e.size}
}

// replay does the branches' handler writes again on the present value.
func (h *handle) replay(e edit, writers []writer) (edit, error) {
	cur := e.from
	if len(writers) == 1 && writers[0].net != nil {
		// The parent has not written: the branch's result stands.
		e.to = resultOf(writers[0].entry)
		return e, nil
	}
	for _, w := range writers {
		if w.net == nil {
			continue
		}
		for i := range w.net.ops {
			r, err := w.net.ops[i].step(cur, h.schema.limits.value())
			if err != nil {
				return e, err
			}
			e.to = &r
			cur = &entry{value: r.value, size: r.size}
		}
	}
	if e.to == nil {
		e.to = resultOf(e.from)
		return e, nil
	}
	return e, e.spec.check(*e.to)
}

// settleOver picks the one of several writers whose value stands although some
// have overwritten the field.
func settleOver(sp *spec, writers []writer) (writer, error) {
	first, last := writers[0], writers[len(writers)-1]
	switch {
	case len(writers) == 1:
		return first, nil
	case sp.handler.kind == firstWins:
		return first, nil
	case sp.handler.kind == lastWins:
		return last, nil
	}
	for _, w := range writers {
		if !w.over || w.computed || !sameEntry(sp, w.entry, first.entry) {
			return first, errOverlap
		}
	}
	return first, nil
}
