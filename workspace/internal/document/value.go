package document

import (
	"bytes"
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
	list *persist.List // of state.JSON; takes the place of text
}

// elements returns the value as a persistent list, or false if it is not a
// list.
func (v *fieldValue) elements() (*persist.List, bool) {
	if v.list != nil {
		return v.list, true
	}
	texts, ok := elementTexts(v.text)
	empty := persist.NewList(reflect.TypeFor[[]state.JSON]())
	return empty.Append(texts, 0), ok
}

// texts returns the elements of the value, or false if it is not a list.
func (v *fieldValue) texts() ([]state.JSON, bool) {
	if v.list != nil {
		return v.list.Slice(0, v.list.Len()).([]state.JSON), true
	}
	return elementTexts(v.text)
}

// numbers returns the elements of the value as numbers of messages, or false if
// it is not a list of such.
func (v *fieldValue) numbers() ([]int, bool) {
	if v.list == nil {
		return messageNumbers(v.text)
	}
	texts, _ := v.texts()
	numbers := make([]int, len(texts))
	for i, text := range texts {
		n, ok := messageNumber(string(text))
		if !ok {
			return nil, false
		}
		numbers[i] = n
	}
	return numbers, true
}

// messageNumbers returns the elements of an array as numbers of messages, or
// false if the text is anything else.
func messageNumbers(array state.JSON) ([]int, bool) {
	text, fit := []byte(array), true
	numbers := make([]int, 0, bytes.Count(text, []byte{','})+1)
	err := jsontext.EachElement(text, func(element jsontext.Span) error {
		n, ok := messageNumber(string(element.In(text)))
		numbers, fit = append(numbers, n), fit && ok
		return nil
	})
	return numbers, fit && err == nil
}

// isList reports whether the value is a list.
func (v *fieldValue) isList() bool { return v.list != nil || v.text[0] == '[' }

func (v *fieldValue) json() state.JSON {
	if v.list == nil {
		return v.text
	}
	texts, _ := v.texts()
	return arrayText(texts)
}

// elementTexts returns the elements of an array, or false for any other text.
func elementTexts(text state.JSON) ([]state.JSON, bool) {
	data := []byte(text)
	texts := make([]state.JSON, 0, 4) // enough for most effects
	err := jsontext.EachElement(data, func(element jsontext.Span) error {
		texts = append(texts, state.JSON(element.In(data)))
		return nil
	})
	return texts, err == nil
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
		return &fieldValue{text: e.Value}, ""
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
	l, ok := v.elements()
	if !ok {
		return nil, "not a list"
	}
	n := l.Len()
	if e.N < 0 || e.N > n || e.Kind == state.EffectRemoveAt && e.N == n {
		return nil, "out of range"
	}
	var added []state.JSON
	if e.Kind == state.EffectAppend || e.Kind == state.EffectInsert {
		texts, ok := elementTexts(e.Value)
		if !ok {
			return nil, "want an array of elements"
		}
		added = texts
	}
	return &fieldValue{list: edited(l, e, added)}, ""
}

// edited returns the result of an effect that fits a list. added are the new
// elements, if there are any.
func edited(l *persist.List, e *state.Effect, added any) *persist.List {
	switch n := l.Len(); e.Kind {
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
	return l
}
