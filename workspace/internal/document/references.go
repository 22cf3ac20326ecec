package document

import (
	"cmp"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/persist"
)

// resultRanges is the part of a form.Result that refers to messages.
type resultRanges struct {
	Prompt    []form.Run `json:"prompt"`
	History   []form.Run `json:"history"`
	Output    []form.Run `json:"output"`
	ToolCalls []form.Run `json:"tool_calls"`
}

// all yields the ranges.
func (r *resultRanges) all() iter.Seq[[]form.Run] {
	return func(yield func([]form.Run) bool) {
		_ = yield(r.Prompt) && yield(r.History) && yield(r.Output) && yield(r.ToolCalls)
	}
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
		if err := decodeResult(text, i, &all[i]); err != nil {
			return nil, err
		}
	}
	d.references = persist.NewList(rangesType).Append(all, 0)
	return d.references, nil
}

// noteConversation notes what an effect means for the conversation, the results
// and their messages. before is the value that it has changed.
func (d *Document) noteConversation(e *state.Effect, before *fieldValue) {
	switch {
	case e.Part == PartMessage && before != nil && e.Kind == state.EffectSet:
		d.conversation = &keptConversation{}
	case e.Part == PartConversation && e.Field != fieldVersion:
		d.conversation = &keptConversation{}
		d.unused = d.unused || e.Kind != state.EffectAppend
		if e.Field == fieldResults {
			d.noteResults(e)
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
			if json.Unmarshal([]byte(text), &added[i]) != nil {
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
	d.references, d.unused, d.conversation = nil, true, &keptConversation{}
}

// unusedMessages returns the effects that delete the messages to which neither
// the conversation nor a result refers.
func (d *Document) unusedMessages() ([]state.Effect, error) {
	entries, _, err := d.entries()
	if err != nil {
		return nil, err
	}
	used := rangesOf(entries)
	results, err := d.ranges()
	if err != nil {
		return nil, err
	}
	for i := 0; i < results.Len(); {
		chunk, first := persist.Chunk[resultRanges](results, i)
		for n := range chunk {
			for list := range chunk[n].all() {
				used = append(used, list...)
			}
		}
		i = first + len(chunk)
	}
	messages, err := d.numbered()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(used, func(a, b form.Run) int { return cmp.Compare(a.From, b.From) })
	var effects []state.Effect
	end := 0 // of the ranges that begin at n or before
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
