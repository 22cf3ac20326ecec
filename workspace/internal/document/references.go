package document

import (
	"bytes"
	"cmp"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// resultRanges is the part of a form.Result that refers to messages.
type resultRanges struct{ Prompt, History, Output, ToolCalls []form.Run }

// lists returns the ranges.
func (r *resultRanges) lists() [4]*[]form.Run {
	return [...]*[]form.Run{&r.Prompt, &r.History, &r.Output, &r.ToolCalls}
}

// read reads the ranges of a result, as encoding/json reads the whole: without
// regard to the case of names. It reports false if they are not ranges.
func (r *resultRanges) read(text state.JSON) bool {
	data, fit := []byte(text), true
	err := jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		for i, to := range r.lists() {
			if bytes.EqualFold(name, resultLists[i]) {
				runs, ok := readRanges(value.In(data))
				*to, fit = runs, fit && ok
			}
		}
		return nil
	})
	return fit && err == nil
}

// resultLists are the names of the members of a result that refer to messages.
var resultLists = [...][]byte{[]byte("prompt"), []byte("history"), []byte("output"), []byte("tool_calls")}

// readRanges reads an array of ranges, or null.
func readRanges(data []byte) ([]form.Run, bool) {
	if jsontext.IsNull(data) {
		return nil, true
	}
	var runs []form.Run
	err := jsontext.EachElement(data, func(element jsontext.Span) error {
		var r form.Run
		err := r.UnmarshalJSON(element.In(data))
		runs = append(runs, r)
		return err
	})
	return runs, err == nil
}

var rangesType = reflect.TypeFor[[]resultRanges]()

// ranges returns the ranges of all results, as a list of resultRanges.
func (d *Document) ranges() (*persist.List, error) {
	if d.references != nil {
		return d.references, nil
	}
	texts, err := d.results()
	if err != nil {
		return nil, err
	}
	all := make([]resultRanges, len(texts))
	for i, text := range texts {
		if !all[i].read(text) {
			return nil, corrupt(resultPath(i), "not a result")
		}
	}
	d.references = persist.NewList(rangesType).Append(all, 0)
	return d.references, nil
}

// noteConversation notes what an effect means for the conversation, the results
// and their messages, and reports whether it changes them. before is the value
// that it has changed.
func (d *Document) noteConversation(e *state.Effect, before *fieldValue) bool {
	switch {
	case e.Part == PartMessage && before != nil && e.Kind == state.EffectSet:
		return true
	case e.Part == PartConversation && e.Field != fieldVersion && e.Field != fieldNumbers:
		d.unused = d.unused || e.Kind != state.EffectAppend
		d.edited = d.edited || e.Kind != state.EffectAppend && e.Kind != state.EffectDropFirst
		switch e.Field {
		case fieldEntries:
			d.noteEntries(e)
		case fieldResults:
			d.noteResults(e)
		}
		return true
	}
	return false
}

// referToAll reports whether what the effects append to the conversation and to
// the results refers to all messages with the numbers. What they do beside that
// does not count.
func referToAll(effects []state.Effect, numbers []int) bool {
	if len(numbers) == 0 {
		return true
	}
	left := slices.Sorted(slices.Values(numbers))
	refer := func(to []form.Run) {
		for _, r := range to {
			from, _ := slices.BinarySearch(left, r.From)
			end, _ := slices.BinarySearch(left, max(r.From, r.To))
			left = slices.Delete(left, from, end)
		}
	}
	for e := range appendsTo(effects, fieldEntries) {
		entries, _ := messageNumbers(e.Value)
		refer(rangesOf(entries))
	}
	for e := range appendsTo(effects, fieldResults) {
		if len(left) == 0 {
			break
		}
		texts, _ := elementTexts(e.Value)
		for _, text := range texts {
			var r resultRanges
			r.read(text)
			for _, list := range r.lists() {
				refer(*list)
			}
		}
	}
	return len(left) == 0
}

// appendsTo yields the effects that append to a list of PartConversation.
func appendsTo(effects []state.Effect, field string) iter.Seq[*state.Effect] {
	return func(yield func(*state.Effect) bool) {
		for i := range effects {
			e := &effects[i]
			if e.Part == PartConversation && e.Field == field && e.Kind == state.EffectAppend && !yield(e) {
				return
			}
		}
	}
}

// noteResults makes the ranges those of the results after an effect.
func (d *Document) noteResults(e *state.Effect) {
	if d.references == nil {
		return
	}
	var added []resultRanges
	switch e.Kind {
	case state.EffectDropFirst, state.EffectTruncate, state.EffectRemoveAt:
	case state.EffectAppend, state.EffectInsert:
		texts, _ := elementTexts(e.Value)
		added = make([]resultRanges, len(texts))
		for i, text := range texts {
			if !added[i].read(text) {
				d.references = nil
				return
			}
		}
	default:
		d.references = nil
		return
	}
	d.references = edited(d.references, e, added)
}

// forgetConversation is called when the conversation may be any other.
func (d *Document) forgetConversation() {
	d.references, d.unused, d.edited, d.conversation = nil, true, true, &keptConversation{}
	d.entryNumbers.Store(nil)
}

// unusedMessages returns the effects that delete the messages to which neither
// the conversation nor a result refers.
func (d *Document) unusedMessages() ([]state.Effect, error) {
	entries, err := d.entryList()
	if err != nil {
		return nil, err
	}
	results, err := d.ranges()
	if err != nil {
		return nil, err
	}
	used := make([]form.Run, 0, 4*results.Len()+8) // enough for most
	for i := range entries.Len() {
		used = appendNumber(used, persist.At[int](entries, i))
	}
	for i := range results.Len() {
		r := persist.At[resultRanges](results, i)
		for _, list := range r.lists() {
			used = append(used, *list...)
		}
	}
	messages, err := d.numbered()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(used, func(a, b form.Run) int { return cmp.Compare(a.From, b.From) })
	var effects []state.Effect
	end := math.MinInt // of the ranges that begin at n or before
	for _, m := range messages {
		for len(used) > 0 && used[0].From <= m.number {
			end = max(end, used[0].To)
			used = used[1:]
		}
		if m.number >= end {
			effects = append(effects, deleteEffect(PartMessage, strconv.Itoa(m.number)))
		}
	}
	return effects, nil
}
