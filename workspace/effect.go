package workspace

import (
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// The parts of the content that this package knows.
const (
	partField   = "field"   // what the schema declares, but the conversation
	partKey     = "key"     // what it does not
	partMessage = "message" // each message once, by number
	partTalk    = "talk"    // what refers to messages, and the version
	partMemory  = "memory"
	partSetting = "setting"
)

// What an effect does.
const (
	doSet       = "set"
	doAppend    = "append"
	doInsert    = "insert"
	doDropFirst = "drop_first"
	doTruncate  = "truncate"
	doRemoveAt  = "remove_at"
	doDelete    = "delete"
)

// Effect is one edit of one field of a workspace's content. There are no other
// edits than these, so that whoever reads a record can apply it, whatever wrote it.
type Effect struct {
	Part  string     `json:"part"` // "field", "key", "message", "talk", "memory", "setting", or what others know
	Field string     `json:"field"`
	Do    string     `json:"do"`              // set, append, insert, drop_first, truncate, remove_at, delete
	N     int        `json:"n,omitempty"`     // drop_first: how many go; truncate: how many stay; insert, remove_at: the place
	Value state.JSON `json:"value,omitempty"` // of set; of append and insert an array of the elements; compact
	Agent string     `json:"agent,omitempty"` // who did it
	Cause string     `json:"cause,omitempty"`
}

// cell is the value of a field. It never changes. A list is taken apart when an
// effect treats it as one, and then costs what is added to it.
type cell struct {
	text state.JSON
	list *persist.List // of state.JSON, instead of text
}

var textsType = reflect.TypeFor[[]state.JSON]()

func newList(texts []state.JSON) *persist.List {
	return persist.NewList(textsType).Append(reflect.ValueOf(texts), 0)
}

// elements returns the value as a list, and false if it is none.
func (c *cell) elements() (*persist.List, bool) {
	if c.list != nil {
		return c.list, true
	}
	texts, ok := elementsOf(c.text)
	return newList(texts), ok
}

// texts returns the elements of the value, and false if it is no list.
func (c *cell) texts() ([]state.JSON, bool) {
	if c.list != nil {
		return c.list.Slice(0, c.list.Len()).Interface().([]state.JSON), true
	}
	return elementsOf(c.text)
}

// json returns the value as text.
func (c *cell) json() state.JSON {
	if c.list == nil {
		return c.text
	}
	texts, _ := c.texts()
	return arrayOf(texts)
}

// elementsOf returns the elements of an array, and false for any other text.
func elementsOf(text state.JSON) ([]state.JSON, bool) {
	raw, err := jsontext.Elements([]byte(text))
	if err != nil {
		return nil, false
	}
	texts := make([]state.JSON, len(raw))
	for i, element := range raw {
		texts[i] = state.JSON(element)
	}
	return texts, true
}

func arrayOf(texts []state.JSON) state.JSON {
	size := 2
	for _, text := range texts {
		size += len(text) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	return state.JSON(append(b, ']'))
}

// on returns what the effect makes of a value, nil standing for none, or else why
// it does not fit.
func (e *Effect) on(c *cell) (after *cell, problem string) {
	switch e.Do {
	case doSet:
		if e.Value == "" {
			return nil, "no value"
		}
		return &cell{text: e.Value}, ""
	case doDelete:
		if c == nil {
			return nil, "nothing is there"
		}
		return nil, ""
	case doAppend, doInsert, doDropFirst, doTruncate, doRemoveAt:
	default:
		return nil, "not a known effect"
	}
	if c == nil {
		return nil, "nothing is there"
	}
	l, ok := c.elements()
	if !ok {
		return nil, "not a list"
	}
	n := l.Len()
	if e.N < 0 || e.N > n || e.Do == doRemoveAt && e.N == n {
		return nil, "out of range"
	}
	var more []state.JSON
	if e.Do == doAppend || e.Do == doInsert {
		if more, ok = elementsOf(e.Value); !ok {
			return nil, "want an array of elements"
		}
	}
	switch e.Do {
	case doAppend:
		l = l.Append(reflect.ValueOf(more), 0)
	case doInsert:
		l = l.Take(e.N, 0).Append(reflect.ValueOf(more), 0).Append(l.Slice(e.N, n), 0)
	case doDropFirst:
		l = l.DropFirst(e.N, 0)
	case doTruncate:
		l = l.Take(e.N, 0)
	case doRemoveAt:
		l = l.Take(e.N, 0).Append(l.Slice(e.N+1, n), 0)
	}
	return &cell{list: l}, ""
}

// turnInto returns effects on a field that turn one value into another, nil
// standing for none.
func turnInto(part, field string, from, to *cell) []Effect {
	switch {
	case to == nil:
		return []Effect{{Part: part, Field: field, Do: doDelete}}
	case from == nil:
	case from.list == nil && to.list == nil && from.text == to.text:
		return nil
	default:
		a, ok := from.texts()
		b, also := to.texts()
		if ok && also {
			return turn(part, field, a, b)
		}
	}
	return []Effect{{Part: part, Field: field, Do: doSet, Value: to.json()}}
}

// turn returns effects on a field that turn one list into another. They are small
// if the lists begin with the same elements, or the second is the end of the first.
func turn(part, field string, from, to []state.JSON) []Effect {
	same := 0
	for same < min(len(from), len(to)) && from[same] == to[same] {
		same++
	}
	cut := len(from) - len(to)
	if same < len(to) && cut > 0 && slices.Equal(from[cut:], to) {
		return []Effect{{Part: part, Field: field, Do: doDropFirst, N: cut}}
	}
	if same == 0 && len(from) > 0 && len(to) > 0 {
		return []Effect{{Part: part, Field: field, Do: doSet, Value: arrayOf(to)}}
	}
	var effects []Effect
	if same < len(from) {
		effects = append(effects, Effect{Part: part, Field: field, Do: doTruncate, N: same})
	}
	if same < len(to) {
		effects = append(effects, Effect{Part: part, Field: field, Do: doAppend, Value: arrayOf(to[same:])})
	}
	return effects
}
