package state

import (
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/engine"
)

// Fork returns a branch: a separate state that starts with the content and the
// version of s. The cost does not depend on the size of the state. Writes to
// the branch show in s only when it is joined, and writes to s never show in
// the branch.
//
// A branch keeps a record of its writes until it is joined, and grows with
// them. To read past content, use Snapshot. For a clone, which is never joined,
// fork a snapshot: st.Snapshot().Fork() keeps no record.
func (s *State) Fork() *State {
	f := s.with(s.on().branch.Fork())
	f.opened = f.rights
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
