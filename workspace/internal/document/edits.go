package document

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/listdiff"
	"github.com/agentstate/state/workspace/work"
)

// Apply applies all effects in their order. If one does not fit, it applies
// none and returns ErrCorrupt.
func (d *Document) Apply(effects []state.Effect) error {
	added, err := d.apply(effects)
	if err == nil && added { // perhaps messages to which nothing refers, as after a rollback
		d.unused = true
	}
	return err
}

// apply reports whether the effects add messages.
func (d *Document) apply(effects []state.Effect) (added bool, err error) {
	before := make([]*fieldValue, len(effects))
	rewrites := false
	for i := range effects {
		e := &effects[i]
		before[i] = d.get(e.Part, e.Field)
		after, problem := before[i].edit(e)
		if problem != "" {
			for j := i - 1; j >= 0; j-- {
				d.put(effects[j].Part, effects[j].Field, before[j])
			}
			d.unused, d.edited, d.conversation = true, true, &keptConversation{}
			return false, fmt.Errorf("%w: effect %d, %s of %s in %s: %s", work.ErrCorrupt, i,
				fault.Quote(string(e.Kind)), fault.Quote(e.Field), fault.Quote(e.Part), problem)
		}
		d.put(e.Part, e.Field, after)
		switch {
		case e.Part == PartMessage && before[i] == nil:
			added = true
		case e.Part == PartMessage && after != nil:
			rewrites = true
		case e.Part == PartConversation && e.Field != fieldVersion && e.Field != fieldNumbers:
			rewrites = true
			d.unused = d.unused || e.Kind != state.EffectAppend
			d.edited = d.edited || e.Kind != state.EffectAppend && e.Kind != state.EffectDropFirst
		}
	}
	if rewrites {
		d.conversation = &keptConversation{}
	}
	return added, nil
}

// Revert returns the effects that turn the content back into an earlier one.
// The version of the state is not turned back: it counts the effects as a
// write. Neither are the numbers of messages, so none is given again.
func (d *Document) Revert(to *Document) []state.Effect {
	return d.RevertFields(to, func(string, string) bool { return true })
}

// RevertFields is Revert for the fields of parts that are included.
func (d *Document) RevertFields(to *Document, included func(part, field string) bool) []state.Effect {
	var effects []state.Effect
	for _, part := range sortedUnion(d.partNames(), to.partNames()) {
		for _, field := range sortedUnion(d.Names(part), to.Names(part)) {
			if part == PartConversation && (field == fieldVersion || field == fieldNumbers) || !included(part, field) {
				continue
			}
			effects = append(effects, valueEffects(part, field, d.get(part, field), to.get(part, field))...)
		}
	}
	if len(effects) > 0 {
		effects = append(effects, d.nextVersion())
	}
	return effects
}

// Effects returns the effects that make the document of an empty one.
func (d *Document) Effects() []state.Effect {
	var effects []state.Effect
	for _, part := range d.partNames() {
		for _, field := range d.Names(part) {
			effects = append(effects, setEffect(part, field, d.get(part, field).json()))
		}
	}
	return effects
}

// sortedUnion returns the texts of both lists, sorted.
func sortedUnion(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// valueEffects returns the effects that turn one value of a field into another.
// A nil value stands for an unset field.
func valueEffects(part, field string, from, to *fieldValue) []state.Effect {
	switch {
	case from == to:
		return nil
	case to == nil:
		return []state.Effect{deleteEffect(part, field)}
	case from == nil:
	case from.list == nil && to.list == nil && from.text == to.text:
		return nil
	default:
		a, isList := from.texts()
		b, staysList := to.texts()
		if isList && staysList {
			return listEffects(part, field, a, b, arrayText)
		}
	}
	return []state.Effect{setEffect(part, field, to.json())}
}

// listEffects returns the effects that turn one list into another.
func listEffects[T comparable](
	part, field string, from, to []T, array func([]T) state.JSON,
) []state.Effect {
	var effects []state.Effect
	for _, edit := range listdiff.Between(from, to) {
		e := state.Effect{Part: part, Field: field, Kind: state.EffectKind(edit.Kind), N: edit.N}
		if edit.From < edit.To {
			e.Value = array(to[edit.From:edit.To])
		}
		effects = append(effects, e)
	}
	return effects
}

func deleteEffect(part, field string) state.Effect {
	return state.Effect{Part: part, Field: field, Kind: state.EffectDelete}
}

func setEffect(part, field string, value state.JSON) state.Effect {
	return state.Effect{Part: part, Field: field, Kind: state.EffectSet, Value: value}
}
