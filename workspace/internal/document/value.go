package document

import (
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// fieldValue is the value of a field. It never changes. A value that an effect
// edits as a list becomes a persistent list, so that the next edit costs what
// it adds and not what the list holds.
type fieldValue struct {
	text state.JSON
	list *persist.List // takes the place of text; of state.JSON, or see readElements
}

// newValue returns the value of a field with a text, or why the field cannot have
// it. The lists of the conversation become persistent lists at once, so that
// whatever is in a document can be read.
func newValue(part, field string, text state.JSON) (v *fieldValue, problem string) {
	switch part {
	case PartMessage:
		if _, ok := messageField(field); !ok {
			return nil, "not the number of a message"
		}
	case PartConversation:
		switch field {
		case fieldVersion:
			if _, ok := readVersion(text); !ok {
				return nil, "not a version"
			}
		case fieldEntries, fieldResults, fieldNumbers:
			if elements, ok := readElements(part, field, text); ok {
				return &fieldValue{list: newList(elements)}, ""
			}
			return nil, "not a list of what the field holds"
		}
	}
	return &fieldValue{text: text}, ""
}

// readElements returns the elements of an array that is in a field, or is added to
// the list there: as a slice of int for fieldEntries, of result, of runNumbers, or
// of state.JSON for other fields.
func readElements(part, field string, array state.JSON) (elements any, ok bool) {
	switch {
	case part != PartConversation:
		return elementTexts(array)
	case field == fieldEntries:
		return readAll(array, func(data []byte) (int, bool) { return messageNumber(string(data)) })
	case field == fieldResults:
		return readAll(array, readResult)
	case field == fieldNumbers:
		return readAll(array, readRunNumbers)
	}
	return elementTexts(array)
}

// readAll reads the elements of an array. It reports false for any other text.
func readAll[E any](array state.JSON, read func(data []byte) (E, bool)) (elements []E, ok bool) {
	data, fit := []byte(array), true
	elements = make([]E, 0, 4) // enough for most effects
	err := jsontext.EachElement(data, func(span jsontext.Span) error {
		element, ok := read(span.In(data))
		elements, fit = append(elements, element), fit && ok
		return nil
	})
	return elements, fit && err == nil
}

// elementTexts returns the elements of an array, or false for any other text.
func elementTexts(array state.JSON) ([]state.JSON, bool) {
	return readAll(array, func(data []byte) (state.JSON, bool) { return state.JSON(data), true })
}

func newList(elements any) *persist.List {
	return persist.NewList(reflect.TypeOf(elements)).Append(elements, 0)
}

// texts returns the elements of the value, or false if it is not a list.
func (v *fieldValue) texts() ([]state.JSON, bool) {
	if v.list != nil {
		if texts, ok := v.list.Slice(0, v.list.Len()).([]state.JSON); ok {
			return texts, true
		}
	}
	return elementTexts(v.json())
}

// isList reports whether the value is a list.
func (v *fieldValue) isList() bool { return v.list != nil || v.text[0] == '[' }

func (v *fieldValue) json() state.JSON {
	if v.list == nil {
		return v.text
	}
	switch elements := v.list.Slice(0, v.list.Len()).(type) {
	case []int:
		return numberArray(elements)
	case []result:
		return arrayText(textsOf(elements, func(r result) state.JSON { return r.text }))
	case []runNumbers:
		return arrayText(textsOf(elements, runNumbers.json))
	default:
		return arrayText(elements.([]state.JSON))
	}
}

func textsOf[T any](elements []T, text func(T) state.JSON) []state.JSON {
	texts := make([]state.JSON, len(elements))
	for i, e := range elements {
		texts[i] = text(e)
	}
	return texts
}

// arrayText returns the array of the elements.
func arrayText(texts []state.JSON) state.JSON {
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

// edit returns the result of an effect on a value, or why the effect does not
// fit. A nil value stands for an unset field.
func (v *fieldValue) edit(e *state.Effect) (after *fieldValue, problem string) {
	switch e.Kind {
	case state.EffectSet:
		if e.Value == "" {
			return nil, "no value"
		}
		return newValue(e.Part, e.Field, e.Value)
	case state.EffectDelete:
		if v == nil {
			return nil, "the field is not set"
		}
		return nil, ""
	case state.EffectAppend, state.EffectInsert,
		state.EffectDropFirst, state.EffectTruncate, state.EffectRemoveAt:
		return v.editList(e)
	}
	return nil, "not a known effect"
}

// editList is edit for the effects on lists.
func (v *fieldValue) editList(e *state.Effect) (after *fieldValue, problem string) {
	if v == nil {
		return nil, "the field is not set"
	}
	l := v.list
	if l == nil {
		texts, ok := elementTexts(v.text)
		if !ok {
			return nil, "not a list"
		}
		l = newList(texts)
	}
	n := l.Len()
	if e.N < 0 || e.N > n || e.Kind == state.EffectRemoveAt && e.N == n {
		return nil, "out of range"
	}
	var added any
	if e.Kind == state.EffectAppend || e.Kind == state.EffectInsert {
		var ok bool
		if added, ok = readElements(e.Part, e.Field, e.Value); !ok {
			return nil, "want an array of elements"
		}
	}
	switch e.Kind {
	case state.EffectAppend:
		l = l.Append(added, 0)
	case state.EffectInsert:
		l = l.Take(e.N, 0).Append(added, 0).Append(l.Slice(e.N, n), 0)
	case state.EffectDropFirst:
		l = l.DropFirst(e.N, 0)
	case state.EffectTruncate:
		l = l.Take(e.N, 0)
	case state.EffectRemoveAt:
		l = l.Take(e.N, 0).Append(l.Slice(e.N+1, n), 0)
	}
	return &fieldValue{list: l}, ""
}
