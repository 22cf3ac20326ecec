package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state/internal/engine"
)

// Update commits everything that fn writes to tx as one version. If fn returns
// an error, Update returns it and nothing changes. fn reads one consistent
// state and its own writes. If a field that it has read or overwritten changes
// before it returns, or the set of keys if it has listed them, fn runs again,
// so it must have no other effects. Writes through handlers, without reading,
// never conflict. fn runs without a lock. It may use s, which is not part of
// the transaction.
//
// tx is no longer writable when fn has returned. Branches of tx must be joined
// to tx before that. Update on tx nests. A transaction that has written nothing
// is a consistent read and does not run again.
//
// If others change again and again what a transaction has read, they then wait
// while it runs once more. If the change comes all the same, fn itself makes
// it, through another handle than tx. Update then returns a [ConflictError]
// that names the fields, within about a second or a few runs of a slow fn. It
// names none if fn has asked for the version or listed the keys.
func (s *State) Update(fn func(tx *State) error) error {
	if fn == nil {
		return invalidArgument("update", "the function is nil")
	}
	h := s.on()
	err := h.branch.Update(h.view(), func(tx *engine.Branch) error { return fn(s.with(tx)) })
	return h.explain(err)
}

// Patch assigns values by name, all as one version. Names that are absent are
// left alone, nil deletes, and no handler is called. Values are converted if
// nothing is lost. If any value is refused, nothing changes and Patch returns
// the joined errors of all bad fields, in the order of the schema and then by
// name.
func (s *State) Patch(values map[string]any) error {
	h := s.on()
	if err := h.branch.Alive(); err != nil {
		return err
	}
	releaseTurns, err := h.branch.TakeTurns(h.validated(values))
	if err != nil {
		return h.explain(err)
	}
	defer releaseTurns()
	var errs []error
	var ops []engine.Op
	for _, name := range h.sortedNames(values) {
		o, err := h.assignment("patch", name, values[name])
		if err != nil {
			errs = append(errs, err)
		}
		ops = append(ops, o)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return h.overwriteAll(ops)
}

// validated returns the addresses of the values that have a validation.
func (h *handle) validated(values map[string]any) []engine.Address {
	var addresses []engine.Address
	for name, v := range values {
		sp, at, err := h.toWrite("patch", name)
		if err == nil && v != nil && sp.validate != nil {
			addresses = append(addresses, at)
		}
	}
	return addresses
}

// assignment returns the op that assigns a value to a name, validated.
func (h *handle) assignment(op, name string, v any) (engine.Op, error) {
	sp, at, err := h.toWrite(op, name)
	if err == nil && sp.slot.Keyed {
		err = checkName(name, h.schema.limits.NameBytes)
	}
	if err != nil {
		return engine.Op{}, err
	}
	o := sp.onReplace
	if v == nil {
		o = sp.newOp(OpDelete, nil)
	}
	o.Address, o.Author = at, h.author
	if v == nil {
		return o, nil
	}
	if o.Update, err = h.store(sp, at, v, false); err != nil {
		return o, err
	}
	m, err := o.Apply(nil)
	if err != nil {
		return o, err
	}
	o.Value = m.Value
	return o, sp.Check(m)
}

// overwriteAll commits ops that do not depend on the current values, as one
// version. Deletions of what is not set are left out.
func (h *handle) overwriteAll(ops []engine.Op) error {
	err := h.branch.Commit(h.view(), func(t *engine.Tree) ([]engine.Edit, error) {
		edits := make([]engine.Edit, 0, len(ops))
		for _, o := range ops {
			e := engine.Edit{Address: o.Address, From: t.Get(o.Address), Ops: []engine.Op{o}, Overwrites: true}
			if o.Merger != nil {
				e.To = &engine.Merged{Value: o.Value, Size: o.Size}
			} else if h.branch.Get(o.Address) == nil {
				continue // which counts as a read
			}
			edits = append(edits, e)
		}
		return edits, nil
	})
	return h.explain(err)
}

// EndRun ends a run: it deletes all Ephemeral fields, as one version.
func (s *State) EndRun() error {
	h := s.on()
	if err := h.branch.Alive(); err != nil {
		return err
	}
	var ops []engine.Op
	for _, sp := range h.schema.stored {
		if !sp.ephemeral {
			continue
		}
		if !h.mayWrite(sp) {
			return h.denied("end run", sp.name)
		}
		if err := h.given(sp, sp.address()); err != nil {
			return err
		}
		o := sp.newOp(OpDelete, nil)
		o.Author = h.author
		ops = append(ops, o)
	}
	return h.overwriteAll(ops)
}

// Revert makes the content of a snapshot of this state, or of another frozen
// state that comes from it by As, Fork or At, the next version. A nil state and
// those of other calls of [New] and [Import] are [ErrInvalid]: they may hold the
// data of another user. Earlier versions stay as they are, and so do Secret
// fields. Only the host may call it.
func (s *State) Revert(to *State) error {
	h, past := s.on(), to.on()
	switch {
	case h.rights != nil:
		return h.denied("revert", "")
	case past.rights != nil:
		return past.denied("revert", "")
	case past.family != h.family || h.isNil():
		return foreign("revert", "not to a snapshot of this state")
	case past.branch.Alive() == nil:
		return invalidArgument("revert", "not to a snapshot")
	}
	// Comparing takes time and may call methods of the fields' types.
	err := h.branch.Transact(h.view(), nil, func(*engine.Tree) ([]engine.Edit, error) {
		return h.reverting(h.branch.Scan(), past.branch), nil
	})
	return h.explain(err)
}

// reverting returns the edits that turn a frozen branch into another one.
func (h *handle) reverting(now, past *engine.Branch) []engine.Edit {
	var edits []engine.Edit
	for _, at := range h.schema.addresses(now, past) {
		from, old := now.Get(at), past.Peek(at)
		if at.Slot.Secret || at.Slot.Form.Same(from, old) {
			continue
		}
		o := engine.Op{Address: at, Author: h.author, Kind: OpRevert.kind(), Overwrites: true}
		e := engine.Edit{Address: at, From: from, Overwrites: true}
		if old != nil {
			o.Value, o.Size = old.Value, old.Size
			e.To = &engine.Merged{Value: old.Value, Size: old.Size}
		}
		e.Ops = []engine.Op{o}
		edits = append(edits, e)
	}
	return edits
}

// addresses returns all addresses of a schema that may be set in one of two
// frozen branches, in their order.
func (s *Schema) addresses(a, b *engine.Branch) []engine.Address {
	var all []engine.Address
	for _, slot := range s.layout.Slots {
		all = append(all, engine.Address{Slot: slot})
	}
	keys := append(a.Keys(), b.Keys()...)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		all = append(all, engine.Address{Slot: &s.keys.slot, Key: key})
	}
	return all
}

// Fork returns a branch: a separate state that starts with the content and the
// version of s. The cost does not depend on the size of the state. Writes to
// the branch show in s only when it is joined, and writes to s never show in
// the branch. What a branch that is never joined has written is lost without an error:
// statetest.Joined finds such branches.
//
// A branch keeps a record of its writes until it is joined, and grows with
// them. To read past content, use Snapshot. For a clone, which is never joined,
// fork a snapshot: st.Snapshot().Fork() keeps no record.
func (s *State) Fork() *State {
	f := s.with(s.on().branch.Fork())
	f.opened = f.rights
	if told := f.family.forked; told != nil {
		told(f)
	}
	return f
}

// Join applies what branches of this state have done since they were forked, in
// the order of the arguments, as one version. The result depends on that order
// only, never on timing.
//
// Writes through handlers are merged: they are done again on the present value.
// If one side has overwritten a field (set it without a handler, replaced,
// updated or deleted it) while another side wrote it, Join returns a
// [ConflictError], unless
//
//   - the overwriting side left the value that it found,
//   - all sides overwrote it with equal values and none computed it with Update, or
//   - the handler of the field is FirstWins or LastWins.
//
// If there is an error, nothing is applied and every branch stays usable. A
// branch can be joined once. Its own branches can be joined to it only before
// that.
//
// A bound handle joins only branches that were forked from a handle whose
// rights do not exceed its own, and only results of its own agent. The error
// does not depend on other writes to a branch, because it would reveal them.
func (s *State) Join(branches ...*State) error {
	h := s.on()
	sides := make([]*engine.Branch, len(branches))
	given := make(map[*engine.Branch]bool, len(branches))
	for i, st := range branches {
		side, err := h.joinable(st)
		if err == nil && given[side] {
			err = asKind(ErrInvalid, errors.New("given twice"))
		}
		if err != nil {
			return inBranch(i, err)
		}
		sides[i], given[side] = side, true
	}
	failed, err := h.branch.Join(h.view(), sides, h.mayApply)
	if failed >= 0 {
		return inBranch(failed, err)
	}
	return h.explain(err)
}

// foreign returns the error for a state that does not belong to the one on
// which op is called.
func foreign(op, why string) error { return within(op, asKind(ErrInvalid, errors.New(why))) }

func inBranch(i int, err error) error { return within(fmt.Sprintf("join: branch %d", i), err) }

// joinable returns the branch of a state that this handle may join.
func (h *handle) joinable(st *State) (*engine.Branch, error) {
	o := st.on()
	switch fork, ofThis := o.branch.ForkOf(h.branch); {
	case !fork:
		return nil, asKind(ErrInvalid, errors.New("not a fork of this state"))
	case !ofThis && o.branch.Detached():
		return nil, asKind(ErrInvalid, errors.New("a fork of a snapshot, which keeps no record of its writes"))
	case !ofThis:
		return nil, asKind(ErrInvalid, errors.New("a fork of another state"))
	case !o.opened.within(h.rights):
		return nil, h.denied("join", "")
	}
	return o.branch, nil
}

// mayApply returns an error if the handle could not have made a write of a
// branch that it may join: the history tells which agent said what.
func (h *handle) mayApply(n *engine.NetWrite) error {
	if h.rights == nil || n.Slot != &h.schema.history.slot {
		return nil
	}
	for i := range n.Ops {
		if o := &n.Ops[i]; !o.Overwrites && o.Author.Agent != h.agent() {
			return h.denied("join", historyName)
		}
	}
	return nil
}
