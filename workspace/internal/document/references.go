package document

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// result is a result of the history, with the messages to which it refers.
type result struct {
	text   state.JSON // a form.Result whose ranges are of message numbers
	ranges resultRanges
}

// resultRanges is the part of a form.Result that refers to messages.
type resultRanges struct{ Prompt, History, Output, ToolCalls []form.Run }

// lists returns the ranges.
func (r *resultRanges) lists() [4]*[]form.Run {
	return [...]*[]form.Run{&r.Prompt, &r.History, &r.Output, &r.ToolCalls}
}

// resultLists are the names of the members of a result that refer to messages.
var resultLists = [...][]byte{[]byte("prompt"), []byte("history"), []byte("output"), []byte("tool_calls")}

// readResult reads a result and its ranges, as encoding/json reads the whole:
// without regard to the case of names. It reports false if they are not ranges.
func readResult(data []byte) (r result, fit bool) {
	r.text, fit = state.JSON(data), true
	err := jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		for i, to := range r.ranges.lists() {
			if bytes.EqualFold(name, resultLists[i]) {
				runs, ok := readRanges(value.In(data))
				*to, fit = runs, fit && ok
			}
		}
		return nil
	})
	return r, fit && err == nil
}

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

// unusedMessages returns the effects that delete the messages to which neither
// the conversation nor a result refers.
func (d *Document) unusedMessages() []state.Effect {
	entries, results := d.entryList(), d.resultList()
	used := make([]form.Run, 0, 4*results.Len()+8) // enough for most
	for i := range entries.Len() {
		used = appendNumber(used, persist.At[int](entries, i))
	}
	for i := range results.Len() {
		r := persist.At[result](results, i)
		for _, list := range r.ranges.lists() {
			used = append(used, *list...)
		}
	}
	slices.SortFunc(used, func(a, b form.Run) int { return cmp.Compare(a.From, b.From) })
	var effects []state.Effect
	end := math.MinInt // of the ranges that begin at n or before
	for _, m := range d.numbered() {
		for len(used) > 0 && used[0].From <= m.number {
			end = max(end, used[0].To)
			used = used[1:]
		}
		if m.number >= end {
			effects = append(effects, deleteEffect(PartMessage, strconv.Itoa(m.number)))
		}
	}
	return effects
}
