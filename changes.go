package state

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state/internal/engine"
)

// Change is one write to one field. A version that wrote several fields has as
// many changes, with one Version.
type Change struct {
	Version uint64
	Time    time.Time
	Agent   string // the agent that wrote; empty for the host
	Cause   string // as given to WithCause
	Op      Op
	Field   string // empty for the history
	// Value is a copy of what was written, before it was merged: the update as
	// [KV.Get] would return it, an [InferenceResult], the tool results that
	// answer calls of one result, or [Masked] if the field is secret. It is nil
	// if the field was deleted.
	Value any
}

// Version returns the number of the last version. It is the same on every
// handle: an agent can tell that something was written that it may not read,
// but not what.
func (s *State) Version() uint64 {
	return s.on().branch.Version()
}

// change returns an entry of the journal as the handle sees it.
func (h *handle) change(e engine.Entry) Change {
	return Change{
		Version: e.Version,
		Time:    e.Time,
		Agent:   e.Author.Agent,
		Cause:   e.Author.Cause,
		Op:      opKinds[e.Kind],
		Field:   fieldName(e.Address),
		Value:   h.written(e.Record),
	}
}

// written returns a copy of what a record says was written, as the handle sees
// it.
func (h *handle) written(r *engine.Record) any {
	sp, isField := r.Slot.Form.(*fieldSpec)
	u := r.Written()
	switch {
	case opKinds[r.Kind] == OpDelete:
		return nil
	case r.Slot.Secret:
		return Masked{}
	case !isField:
		return h.schema.history.written(h.view(), u)
	case u.Value == nil:
		return nil
	}
	if a, ok := u.Value.(*answers); ok {
		return a.said()
	}
	return sp.form.LoadByName(sp.update(u))
}

// Changes yields what was written after a version, oldest first, as of the time
// of the call. A bound handle sees the changes to what it may read: their
// versions have gaps where others wrote. If the journal no longer reaches back
// that far, Changes yields only an error that is [ErrCompacted].
func (s *State) Changes(since uint64) iter.Seq2[Change, error] {
	h := *s.on()
	return func(yield func(Change, error) bool) {
		err := h.branch.Entries(h.view(), since, func(e engine.Entry) bool {
			return e.Slot == &h.schema.windows.slot || yield(h.change(e), nil)
		})
		if err != nil {
			yield(Change{}, within(fmt.Sprintf("changes since %d", since), err))
		}
	}
}

// Watch yields what was written after a version and then waits for more, until
// ctx ends or the loop is left. If there are names, it yields only the changes
// to these fields; the empty name stands for the history. For a name that the
// schema does not have, or that the handle may not read, it yields only the
// error that a read would get. Watch holds no lock
// while the body of the loop runs, and keeps only its position in between: a
// loop that falls behind the journal gets an error that is [ErrCompacted], and
// ends. On a state that no longer changes, such as a snapshot, the loop ends
// after the last change.
func (s *State) Watch(ctx context.Context, since uint64, names ...string) iter.Seq2[Change, error] {
	h := *s.on()
	names = slices.Clone(names)
	if ctx == nil {
		return func(yield func(Change, error) bool) {
			yield(Change{}, invalidArgument("watch", "the context is nil"))
		}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, _, err := h.toRead(name); err != nil {
			return func(yield func(Change, error) bool) { yield(Change{}, within("watch", err)) }
		}
	}
	return func(yield func(Change, error) bool) {
		err := h.branch.Watch(ctx, h.view(), since, func(e engine.Entry) bool {
			if e.Slot == &h.schema.windows.slot || len(names) > 0 && !slices.Contains(names, fieldName(e.Address)) {
				return true
			}
			return yield(h.change(e), nil)
		})
		if err != nil {
			yield(Change{}, within(fmt.Sprintf("changes since %d", since), err))
		}
	}
}

// At returns a frozen view of a past version, as far as the journal reaches.
// The cost is that of the changes since. The journal does not hold secrets, so
// Secret fields have their present values. The view has no journal. Only the
// host may call it.
func (s *State) At(version uint64) (*State, error) {
	h := s.on()
	if h.rights != nil {
		return nil, h.denied("look at a past version", "")
	}
	past, err := h.branch.At(version)
	if errors.Is(err, engine.ErrNoVersion) {
		err = asKind(ErrNotFound, fmt.Errorf("no such version; the last is %d", h.branch.Version()))
	}
	if err != nil {
		return nil, within(fmt.Sprintf("version %d", version), err)
	}
	return s.with(past), nil
}

// Op names what a write does.
type Op string

// The ops of a [Change].
const (
	OpSet     Op = "set"     // the handler combined the value with the current one
	OpReplace Op = "replace" // Replace and Patch
	OpUpdate  Op = "update"  // Field.Update
	OpDelete  Op = "delete"  // Delete, Patch with nil, EndRun
	OpAppend  Op = "append"  // a result was appended to the history
	OpAnswer  Op = "answer"  // calls of a result were answered
	OpPop     Op = "pop"     // the last result was removed
	OpReset   Op = "reset"   // the results were replaced
	OpRevert  Op = "revert"  // Revert
)

// opKinds lists the ops by the number that the engine carries.
var opKinds = []Op{OpSet, OpReplace, OpUpdate, OpDelete, OpAppend, OpAnswer, OpPop, OpReset, OpRevert}

func (o Op) kind() uint8 { return uint8(slices.Index(opKinds, o)) }
