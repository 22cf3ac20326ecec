package state

import (
	"errors"
	"slices"

	"github.com/agentstate/state/internal/listdiff"
	"github.com/agentstate/state/internal/persist"
)

// EffectKind names what an [Effect] does.
type EffectKind string

// The kinds of [Effect]. All but set and delete edit a list.
const (
	EffectSet       EffectKind = "set"        // gives the field a value
	EffectAppend    EffectKind = "append"     // adds elements after all others
	EffectInsert    EffectKind = "insert"     // adds elements before the one at place N
	EffectDropFirst EffectKind = "drop_first" // removes the first N elements
	EffectTruncate  EffectKind = "truncate"   // keeps the first N elements
	EffectRemoveAt  EffectKind = "remove_at"  // removes the element at place N
	EffectDelete    EffectKind = "delete"     // removes the field
)

// The parts of a state that an [Effect] edits. Package workspace, which stores
// effects, has parts of its own.
const (
	EffectPartField   = "field"   // a declared field
	EffectPartKey     = "key"     // an undeclared key
	EffectPartHistory = "history" // the history: one list, without a field name
)

// Effect is one edit of one field. Effects are data: applying them calls no
// handler, so they can be stored and applied by a program that has none.
type Effect struct {
	Part  string     `json:"part"`
	Field string     `json:"field"`
	Kind  EffectKind `json:"kind"`
	N     int        `json:"n,omitempty"` // see the kinds

	// Exactly one of these is present if the effect sets, appends or inserts.
	Value    JSON              `json:"value,omitempty"`    // the value; for append and insert, an array of the elements
	Messages []Message         `json:"messages,omitempty"` // for the field messages, instead of Value
	Results  []InferenceResult `json:"results,omitempty"`  // for the history, instead of Value

	// Agent and Cause are those of the last write to the field in the interval,
	// if the journal still has it.
	Agent string `json:"agent,omitempty"`
	Cause string `json:"cause,omitempty"`

	Secret bool `json:"secret,omitempty"` // the field is secret; Value is not masked
}

// Effects returns the edits that turn the content of from into that of s, to be
// applied in their order: declared fields in the order of the schema, undeclared
// keys by name, then the history. Values are encoded as [State.Export] encodes
// them. Secrets are included unmasked; ephemeral fields are left out.
//
// The cost is that of the changes, not of the content, if from is an earlier
// snapshot of s. from may be any state with the same schema; its lists are then
// compared element by element. Only the host may call Effects.
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
			e.Part, e.Field, e.Secret = sp.effectPart(), o.field(), sp.secret
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
	results, pastResults := stackOf(now.load(historySlot)).comparable(), stackOf(past.load(historySlot)).comparable()
	made, err := results.effectsSince(pastResults)
	if err := add(historySpec, "", made, err); err != nil {
		return nil, err
	}
	return effects, nil
}

// effectPart returns the part of the state that the field belongs to.
func (sp *spec) effectPart() string {
	switch {
	case sp.slot == historySlot:
		return EffectPartHistory
	case sp.slot >= 0:
		return EffectPartField
	}
	return EffectPartKey
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
		return sp.comparable(to.value).effectsSince(sp.comparable(from.value))
	case sp.slot == messagesSlot:
		set := Effect{Kind: EffectSet}
		list := sp.comparable(to.value)
		err := list.fill(&set, 0, list.Len())
		return []Effect{set}, err
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

// comparableList is a list whose elements can be compared with those of another
// list of its kind.
type comparableList struct {
	*persist.List
	// text encodes an element. Different elements have different texts.
	text func(i int) (JSON, error)
	// identical reports whether an element is the same object as one of another
	// list, which is quicker to find out than equality of the texts. It is nil
	// for elements without identity.
	identical func(i int, other *persist.List, j int) bool
	// fill gives an effect the elements from one place to another.
	fill func(e *Effect, from, to int) error
}

// comparable returns a stored value of a list field.
func (sp *spec) comparable(stored any) comparableList {
	l := bare(stored).(*persist.List)
	if sp.slot == messagesSlot {
		return comparableMessages(l)
	}
	text := func(i int) (JSON, error) {
		data, err := sp.list.AppendJSON(nil, l.Index(i))
		if err != nil {
			return "", sp.fault(err)
		}
		return JSON(data), nil
	}
	return comparableList{List: l, text: text, fill: func(e *Effect, from, to int) error {
		array := []byte{'['}
		for i := from; i < to; i++ {
			if i > from {
				array = append(array, ',')
			}
			var err error
			if array, err = sp.list.AppendJSON(array, l.Index(i)); err != nil {
				return sp.fault(err)
			}
		}
		e.Value = JSON(append(array, ']'))
		return nil
	}}
}

// comparableMessages returns the conversation.
func comparableMessages(l *persist.List) comparableList {
	return comparableList{
		List: l,
		text: func(i int) (JSON, error) { return l.Index(i).Interface().(Message).Raw(), nil },
		identical: func(i int, other *persist.List, j int) bool {
			return l.Index(i).Interface() == other.Index(j).Interface()
		},
		fill: func(e *Effect, from, to int) error {
			e.Messages = l.Slice(from, to).Interface().([]Message)
			return nil
		},
	}
}

// comparable returns the results.
func (st *stack) comparable() comparableList {
	return comparableList{
		List: st.results,
		text: func(i int) (JSON, error) {
			r := st.result(st.at(i))
			raw := r.Raw // may not be UTF-8
			r.Raw = ""
			data, err := JSONOf(r)
			return data + JSON(raw), err
		},
		identical: func(i int, other *persist.List, j int) bool {
			return st.at(i) == other.Index(j).Interface().(*stackedResult)
		},
		fill: func(e *Effect, from, to int) error {
			e.Results = make([]InferenceResult, to-from)
			for i := range e.Results {
				e.Results[i] = st.result(st.at(from + i))
			}
			return nil
		},
	}
}

// texts returns the texts of the elements from a place on.
func (l comparableList) texts(from int) ([]JSON, error) {
	texts := make([]JSON, l.Len()-from)
	for i := range texts {
		var err error
		if texts[i], err = l.text(from + i); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// effectsSince returns the edits that turn an old list into l. It encodes only
// elements that the lists do not share.
func (l comparableList) effectsSince(old comparableList) ([]Effect, error) {
	change, err := l.changeSince(old)
	if err != nil {
		return nil, err
	}
	var effects []Effect
	for _, edit := range change.Edits() {
		e := Effect{Kind: EffectKind(edit.Kind), N: edit.N}
		if edit.From < edit.To {
			if err := l.fill(&e, edit.From, edit.To); err != nil {
				return nil, err
			}
		}
		effects = append(effects, e)
	}
	return effects, nil
}

func (l comparableList) changeSince(old comparableList) (listdiff.Change, error) {
	dropped, kept := l.Shared(old.List)
	if l.identical != nil { // a copied list shares nothing but has the same elements
		for kept < min(l.Len(), old.Len()-dropped) && l.identical(kept, old.List, dropped+kept) {
			kept++
		}
	}
	change := listdiff.Change{
		Dropped: dropped, Kept: kept, Removed: old.Len() - dropped - kept, Added: l.Len() - kept,
	}
	if change.Removed == 0 || change.Added == 0 {
		return change, nil
	}
	removed, err := old.texts(dropped + kept)
	if err != nil {
		return change, err
	}
	added, err := l.texts(kept)
	return listdiff.Narrow(change, removed, added), err
}
