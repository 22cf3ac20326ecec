package state

import (
	"errors"
	"slices"

	"github.com/agentstate/state/internal/persist"
)

// EffectKind names what an [Effect] does.
type EffectKind string

// The kinds of [Effect]. The field is a list for all but set and delete.
const (
	EffectSet       EffectKind = "set"        // gives the field a value
	EffectAppend    EffectKind = "append"     // adds elements after all others
	EffectInsert    EffectKind = "insert"     // adds elements before the one at place N
	EffectDropFirst EffectKind = "drop_first" // removes the first N elements
	EffectTruncate  EffectKind = "truncate"   // keeps the first N elements
	EffectRemoveAt  EffectKind = "remove_at"  // removes the element at place N
	EffectDelete    EffectKind = "delete"     // removes the field
)

// Effect is a part of what turns one state into a later one. It is data: no
// handler has a part in doing it again.
type Effect struct {
	Field    string // empty for the history, which is a list too
	Declared bool   // false for an undeclared key
	Secret   bool
	Kind     EffectKind
	N        int

	// One of these is what is set, appended or inserted.
	Value    JSON              // what a field is set to
	Elements []JSON            // of a list, when they are added to it
	Messages []Message         // of Messages
	Results  []InferenceResult // of the history

	// Of the last write to the field since, as far as the journal reaches back.
	Agent, Cause string
}

// Effects returns what turns the content of since into that of s: effects that
// are to be done in their order, in the order of the schema, then undeclared
// keys, then the history. JSON is as [State.Export] writes it; secrets are in it
// as they are, ephemeral fields are not.
//
// since is usually an earlier snapshot of s. It then costs what was changed, not
// what is held. It may be any state with the same schema, whose lists are then
// compared element by element. It is the host's.
func (s *State) Effects(from *State) ([]Effect, error) {
	h, old := s.on(), from.on()
	switch {
	case h.rights != nil:
		return nil, h.denied("list effects", "")
	case old.rights != nil:
		return nil, old.denied("list effects", "")
	case old.schema != h.schema:
		return nil, errors.New("state: effects: since a state with another schema")
	}
	now, past := h.freeze(), old.freeze()
	var effects []Effect
	var authors map[fieldKey]*signature
	add := func(sp *spec, key string, made []Effect, err error) error {
		if err != nil || len(made) == 0 {
			return err
		}
		if authors == nil {
			authors = h.authors(now, past.version.Load())
		}
		o := op{spec: sp, key: key}
		for _, e := range made {
			e.Field, e.Declared, e.Secret = o.field(), sp.slot >= 0, sp.secret
			if by := authors[fieldKey{sp.slot, key}]; by != nil {
				e.Agent, e.Cause = by.agent, by.cause
			}
			effects = append(effects, e)
		}
		return nil
	}
	for slot, sp := range h.schema.specs {
		if slot == historySlot || sp.ephemeral {
			continue
		}
		made, err := sp.effects(past.load(slot), now.load(slot))
		if err := add(sp, "", made, err); err != nil {
			return nil, err
		}
	}
	for _, key := range now.keysSince(past) {
		made, err := undeclaredSpec.effects(past.get(undeclaredSpec, key), now.get(undeclaredSpec, key))
		o := op{spec: undeclaredSpec, key: key}
		if err := add(undeclaredSpec, key, made, o.about(err)); err != nil {
			return nil, err
		}
	}
	made, err := stackOf(now.load(historySlot)).sequence().effects(stackOf(past.load(historySlot)).sequence())
	if err := add(historySpec, "", made, err); err != nil {
		return nil, err
	}
	return effects, nil
}

// keysSince returns the undeclared keys, sorted, whose entries differ between two
// frozen branches.
func (b *branch) keysSince(past *branch) []string {
	now, then := b.tree.Load(), past.tree.Load()
	if now == then {
		return nil
	}
	var keys []string
	for key, e := range now.keys.All() {
		if then.keys.Get(key) != e {
			keys = append(keys, key)
		}
	}
	for key := range then.keys.All() {
		if now.keys.Get(key) == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// authors returns who wrote each field last, after a version, of what the journal
// of a frozen branch holds.
func (h *handle) authors(now *branch, version uint64) map[fieldKey]*signature {
	if version >= now.version.Load() {
		version = 0 // it is no earlier state
	}
	frozen := *h
	frozen.branch = now
	c := frozen.look()
	authors := map[fieldKey]*signature{}
	for r := range c.after(version) {
		authors[fieldKey{r.op.spec.slot, r.op.key}] = r.op.by
	}
	return authors
}

// effects returns what turns one entry of a field into another.
func (sp *spec) effects(from, to *entry) ([]Effect, error) {
	switch {
	case from == to:
		return nil, nil
	case to == nil:
		return []Effect{{Kind: EffectDelete}}, nil
	case from != nil && sp.list != nil:
		return sp.sequence(to.value).effects(sp.sequence(from.value))
	case sp.slot == messagesSlot:
		return sp.sequence(to.value).replaced()
	}
	value, err := sp.appendJSON(nil, to.value)
	if err != nil {
		return nil, err
	}
	if from != nil {
		if old, err := sp.appendJSON(nil, from.value); err == nil && string(old) == string(value) {
			return nil, nil
		}
	}
	return []Effect{{Kind: EffectSet, Value: JSON(value)}}, nil
}

// sequence is a list as effects show it.
type sequence struct {
	*persist.List
	text func(i int) (JSON, error)           // is the same for equal elements only
	put  func(e *Effect, from, to int) error // gives the effect elements
	// same reports whether an element is the very same as one of another list; nil
	// if only texts tell.
	same func(i int, old *persist.List, j int) bool
}

// sequence returns a stored value of a list field.
func (sp *spec) sequence(stored any) sequence {
	l := bare(stored).(*persist.List)
	if sp.slot == messagesSlot {
		return sequence{
			List: l,
			text: func(i int) (JSON, error) { return l.Index(i).Interface().(Message).Raw(), nil },
			same: func(i int, old *persist.List, j int) bool { return l.Index(i).Interface() == old.Index(j).Interface() },
			put: func(e *Effect, from, to int) error {
				e.Messages = l.Slice(from, to).Interface().([]Message)
				return nil
			},
		}
	}
	text := func(i int) (JSON, error) {
		data, err := sp.list.AppendJSON(nil, l.Index(i))
		if err != nil {
			return "", sp.fault(err)
		}
		return JSON(data), nil
	}
	return sequence{List: l, text: text, put: func(e *Effect, from, to int) error {
		if e.Kind == EffectSet {
			data, err := sp.appendJSON(nil, l)
			e.Value = JSON(data)
			return err
		}
		e.Elements = make([]JSON, to-from)
		for i := range e.Elements {
			var err error
			if e.Elements[i], err = text(from + i); err != nil {
				return err
			}
		}
		return nil
	}}
}

// sequence returns the results.
func (st *stack) sequence() sequence {
	return sequence{
		List: st.results,
		text: func(i int) (JSON, error) {
			r := st.result(st.at(i))
			raw := r.Raw // which may be no UTF-8
			r.Raw = ""
			data, err := JSONOf(r)
			return data + JSON(raw), err
		},
		same: func(i int, old *persist.List, j int) bool {
			return st.at(i) == old.Index(j).Interface().(*stackedResult)
		},
		put: func(e *Effect, from, to int) error {
			e.Results = make([]InferenceResult, to-from)
			for i := range e.Results {
				e.Results[i] = st.result(st.at(from + i))
			}
			return nil
		},
	}
}

// rest returns the texts of the elements from a place on.
func (s sequence) rest(from int) ([]JSON, error) {
	texts := make([]JSON, s.Len()-from)
	for i := range texts {
		var err error
		if texts[i], err = s.text(from + i); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// replaced returns the effect that sets the whole list.
func (s sequence) replaced() ([]Effect, error) {
	e := Effect{Kind: EffectSet}
	err := s.put(&e, 0, s.Len())
	return []Effect{e}, err
}

// effects returns what turns an old list into s. What changed is taken to be one
// part of the list, in which elements were removed and others came.
func (s sequence) effects(old sequence) ([]Effect, error) {
	from, place := s.Shared(old.List)
	// A list that was copied has the same elements, though it shares nothing.
	for s.same != nil && place < min(s.Len(), old.Len()-from) && s.same(place, old.List, from+place) {
		place++
	}
	gone, added := old.Len()-from-place, s.Len()-place
	moved, end := 0, 0
	if gone > 0 && added > 0 {
		a, err := old.rest(from + place)
		if err != nil {
			return nil, err
		}
		b, err := s.rest(place)
		if err != nil {
			return nil, err
		}
		same := 0
		for same < min(len(a), len(b)) && a[same] == b[same] {
			same++
		}
		a, b = a[same:], b[same:]
		for end < min(len(a), len(b)) && a[len(a)-1-end] == b[len(b)-1-end] {
			end++
		}
		moved = overlap(a, b)
		place, gone, added = place+same, len(a), len(b)
	}
	// Of the elements after place, either the last of old are followed by new ones,
	// or new ones come before them.
	after := max(moved, end)
	gone, added = gone-after, added-after
	kept := place + after
	if old.Len() > 0 && s.Len() > 0 && kept == 0 || place > 0 && after > 0 && gone > kept {
		return s.replaced()
	}
	var effects []Effect
	if from > 0 {
		effects = append(effects, Effect{Kind: EffectDropFirst, N: from})
	}
	switch {
	case gone == 0:
	case after == 0:
		effects = append(effects, Effect{Kind: EffectTruncate, N: place})
	case place == 0:
		effects = append(effects, Effect{Kind: EffectDropFirst, N: gone})
	default:
		effects = append(effects, slices.Repeat([]Effect{{Kind: EffectRemoveAt, N: place}}, gone)...)
	}
	if added == 0 {
		return effects, nil
	}
	e := Effect{Kind: EffectAppend}
	at := s.Len() - added
	if end > moved {
		e.Kind, e.N = EffectInsert, place
		at = place
	}
	err := s.put(&e, at, at+added)
	return append(effects, e), err
}

// overlap returns how many of the last elements of a are the first of b. It takes
// linear time, also if many are equal.
func overlap(a, b []JSON) int {
	most := min(len(a), len(b))
	a, b = a[len(a)-most:], b[:most]
	next := func(back []int, n int, x JSON) int {
		for n > 0 && b[n] != x {
			n = back[n-1]
		}
		if b[n] == x {
			n++
		}
		return n
	}
	back := make([]int, most) // how much of b's beginning ends at each place after the first
	for i, n := 1, 0; i < most; i++ {
		n = next(back, n, b[i])
		back[i] = n
	}
	n := 0
	for _, x := range a {
		n = next(back, n, x)
	}
	return n
}
