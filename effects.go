package state

import (
	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
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
// effects, has additional parts.
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
// applied in their order: declared fields in the order of the schema,
// undeclared keys by name, then the history. Values are encoded as
// [State.Export] encodes them. Secrets are included unmasked; ephemeral fields
// are left out.
//
// The cost is that of the changes, not of the content, if from is an earlier
// snapshot of s. from may be any state with the same schema, such as an empty
// one or another import; its lists are then compared element by element. A nil
// state, and one with another schema, are [ErrInvalid]. Only the host may call
// Effects.
func (s *State) Effects(from *State) ([]Effect, error) {
	h, old := s.on(), from.on()
	switch {
	case h.rights != nil:
		return nil, h.denied("list effects", "")
	case old.rights != nil:
		return nil, old.denied("list effects", "")
	case old.schema != h.schema:
		return nil, foreign("effects", "from is a state with another schema")
	case old.isNil() || h.isNil():
		return nil, foreign("effects", "the state is nil, or from is")
	}
	d := effectsDraft{now: h.branch.Scan(), past: old.branch.Scan()}
	for _, sp := range h.schema.stored {
		if sp.ephemeral {
			continue
		}
		if err := d.addField(EffectPartField, sp, sp.address()); err != nil {
			return nil, err
		}
	}
	keys := h.schema.keys
	for _, key := range d.now.ChangedKeys(d.past) {
		at := engine.Address{Slot: &keys.slot, Key: key}
		if err := d.addField(EffectPartKey, keys, at); err != nil {
			return nil, err
		}
	}
	at := h.schema.history.address()
	history := h.schema.history
	results, pastResults := history.stackIn(d.now.Get(at)), history.stackIn(d.past.Get(at))
	made, err := listEffects(comparableResults{pastResults}, comparableResults{results})
	if err != nil {
		return nil, err
	}
	d.add(EffectPartHistory, at, made)
	return d.effects, nil
}

// effectsDraft collects the effects between two frozen branches.
type effectsDraft struct {
	now, past *engine.Branch
	effects   []Effect
	authors   map[engine.Address]*engine.Author // nil until there is an effect
}

// addField adds the effects on a field or an undeclared key.
func (d *effectsDraft) addField(part string, sp *fieldSpec, at engine.Address) error {
	made, err := sp.effects(at, d.past.Get(at), d.now.Get(at))
	if err != nil {
		return err
	}
	d.add(part, at, made)
	return nil
}

// add adds effects at an address, with the author of its last write.
func (d *effectsDraft) add(part string, at engine.Address, made []Effect) {
	if len(made) == 0 {
		return
	}
	if d.authors == nil {
		d.authors = d.now.Authors(d.past.Version())
	}
	for _, e := range made {
		e.Part, e.Field, e.Secret = part, fieldName(at), at.Slot.Secret
		if by := d.authors[at]; by != nil {
			e.Agent, e.Cause = by.Agent, by.Cause
		}
		d.effects = append(d.effects, e)
	}
}

// effects returns the edits that turn one cell of the field into another.
func (sp *fieldSpec) effects(at engine.Address, from, to *engine.Cell) ([]Effect, error) {
	switch {
	case from == to:
		return nil, nil
	case to == nil:
		return []Effect{{Kind: EffectDelete}}, nil
	case from != nil && sp.form.Elem != nil:
		return listEffects(sp.comparable(from.Value), sp.comparable(to.Value))
	case sp.name == messagesName:
		set := Effect{Kind: EffectSet}
		list := sp.comparable(to.Value)
		err := list.fill(&set, 0, list.len())
		return []Effect{set}, err
	}
	value, err := sp.appendJSON(nil, at, to.Value)
	if err != nil {
		return nil, err
	}
	if from != nil {
		if old, err := sp.appendJSON(nil, at, from.Value); err == nil && string(old) == string(value) {
			return nil, nil
		}
	}
	return []Effect{{Kind: EffectSet, Value: JSON(value)}}, nil
}

// comparableList is a list whose elements can be compared with those of another
// list of its kind.
type comparableList interface {
	len() int
	// shared reports which elements the list has from an older one, as far as
	// that is known without a comparison: its first n are those of old from
	// index from on.
	shared(old comparableList) (from, n int)
	// text encodes an element. Different elements have different texts.
	text(i int) (JSON, error)
	// identical reports whether an element is the same object as one of another
	// list, which is quicker to find out than equality of the texts. It is false
	// for elements without identity.
	identical(i int, other comparableList, j int) bool
	// fill gives an effect the elements from one place to another.
	fill(e *Effect, from, to int) error
}

// comparable returns a stored value of a list field.
func (sp *fieldSpec) comparable(stored any) comparableList {
	l := cell.Bare(stored).(*persist.List)
	if sp.name == messagesName {
		return comparableMessages{l}
	}
	return comparableValues{l, sp}
}

// comparableValues is the list of a field.
type comparableValues struct {
	list *persist.List
	spec *fieldSpec
}

func (c comparableValues) len() int { return c.list.Len() }

func (c comparableValues) shared(old comparableList) (from, n int) {
	return c.list.Shared(old.(comparableValues).list)
}

func (c comparableValues) text(i int) (JSON, error) {
	data, err := c.spec.form.Elem.AppendJSON(nil, c.list.Index(i))
	if err != nil {
		return "", c.spec.valueError(c.spec.address(), err)
	}
	return JSON(data), nil
}

func (c comparableValues) identical(int, comparableList, int) bool { return false }

func (c comparableValues) fill(e *Effect, from, to int) error {
	array := []byte{'['}
	for i := from; i < to; i++ {
		if i > from {
			array = append(array, ',')
		}
		var err error
		if array, err = c.spec.form.Elem.AppendJSON(array, c.list.Index(i)); err != nil {
			return c.spec.valueError(c.spec.address(), err)
		}
	}
	e.Value = JSON(append(array, ']'))
	return nil
}

// comparableMessages is the conversation.
type comparableMessages struct{ list *persist.List }

func (c comparableMessages) len() int { return c.list.Len() }

func (c comparableMessages) shared(old comparableList) (from, n int) {
	return c.list.Shared(old.(comparableMessages).list)
}

func (c comparableMessages) text(i int) (JSON, error) {
	return persist.At[Message](c.list, i).Raw(), nil
}

func (c comparableMessages) identical(i int, other comparableList, j int) bool {
	return persist.At[Message](c.list, i) == persist.At[Message](other.(comparableMessages).list, j)
}

func (c comparableMessages) fill(e *Effect, from, to int) error {
	e.Messages = persist.SliceOf[Message](c.list, from, to)
	return nil
}

// comparableResults is the history.
type comparableResults struct{ stack *resultStack }

func (c comparableResults) len() int { return c.stack.len() }

func (c comparableResults) shared(old comparableList) (from, n int) {
	return 0, c.stack.results.Common(&old.(comparableResults).stack.results)
}

func (c comparableResults) text(i int) (JSON, error) {
	r := c.stack.result(c.stack.at(i))
	raw := r.Raw // may not be UTF-8
	r.Raw = ""
	data, err := JSONOf(r)
	return data + JSON(raw), err
}

func (c comparableResults) identical(i int, other comparableList, j int) bool {
	return c.stack.at(i) == other.(comparableResults).stack.at(j)
}

func (c comparableResults) fill(e *Effect, from, to int) error {
	e.Results = make([]InferenceResult, to-from)
	for i := range e.Results {
		e.Results[i] = c.stack.result(c.stack.at(from + i))
	}
	return nil
}

// textsOf returns the texts of the elements of a list from a place on.
func textsOf(l comparableList, from int) ([]JSON, error) {
	texts := make([]JSON, l.len()-from)
	for i := range texts {
		var err error
		if texts[i], err = l.text(from + i); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// listEffects returns the edits that turn an old list into l. It encodes only
// elements that the lists do not share.
func listEffects(old, l comparableList) ([]Effect, error) {
	change, err := listChange(old, l)
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

func listChange(old, l comparableList) (listdiff.Change, error) {
	dropped, kept := l.shared(old)
	// A copied list shares nothing but has the same elements.
	for kept < min(l.len(), old.len()-dropped) && l.identical(kept, old, dropped+kept) {
		kept++
	}
	change := listdiff.Change{
		Dropped: dropped, Kept: kept, Removed: old.len() - dropped - kept, Added: l.len() - kept,
	}
	if change.Removed == 0 || change.Added == 0 {
		return change, nil
	}
	removed, err := textsOf(old, dropped+kept)
	if err != nil {
		return change, err
	}
	added, err := textsOf(l, kept)
	return listdiff.Narrow(change, removed, added), err
}
