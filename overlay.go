package state

import (
	"errors"
	"maps"
	"slices"

	xmaps "golang.org/x/exp/maps"

	"github.com/agentstate/state/internal/engine"
)

// With returns a handle on the same data that reads these values in place of
// the stored ones, for one request: the id of a user, a deadline, an argument
// for a tool. Nothing is written. Every handle that is derived from it reads
// the values, also after a Fork and in an Update. Join, Export, Effects,
// Changes and Version use what is stored. The handle does not see what others
// write to these fields. All other fields are read and written as through s.
// The map is not kept.
//
// Names and values are those of [State.Patch]: values are copied, converted and
// validated, nil reads as unset, and the handle must have the right to write
// the field. With returns the joined errors of all bad fields. The conversation
// cannot be given: that is [ErrInvalid]. A write to one of the names, through
// the handle that With returns, fails with [ErrReadOnly].
func (s *State) With(values map[string]any) (*State, error) {
	h := *s.on()
	given := h.overlay
	h.overlay = nil
	releaseTurns, err := h.branch.TakeTurns(h.validated(values))
	if err != nil {
		return nil, h.explain(err)
	}
	defer releaseTurns()
	cells := maps.Clone(given)
	if cells == nil {
		cells = map[engine.Address]*engine.Cell{}
	}
	var errs []error
	for _, name := range h.sortNames(xmaps.Keys(values)) {
		o, err := h.assignment("with", name, values[name])
		if name == messagesName {
			err = invalidArgument("with", "the conversation cannot be given")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if before := cells[o.Address]; before != nil && o.Slot.Secret {
			h.covered = append(slices.Clip(h.covered), secretCell{o.Slot.Form.(*fieldSpec), before})
		}
		cells[o.Address] = nil
		if o.Merger != nil {
			cells[o.Address] = &engine.Cell{Value: o.Value, Size: o.Size}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	h.overlay = cells
	return &State{handle: h}, nil
}
