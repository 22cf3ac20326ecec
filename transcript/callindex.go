package transcript

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// Pending returns the calls that have no result, in their order. They have to
// be answered before the model is asked again.
func Pending(msgs []state.Message) []state.ToolCall {
	makesCalls := func(m state.Message) bool { _, ok := m.(state.ToolCallMessage); return ok }
	if !slices.ContainsFunc(msgs, makesCalls) { // as in many conversations
		return nil
	}
	var pending []state.ToolCall
	p := pairCalls(msgs)
	for _, c := range p.calls {
		if c.result == none {
			pending = append(pending, *c.ToolCall)
		}
	}
	return pending
}

// pairOthers finds the open calls that are suspended, and pairs the others. A
// suspended call gets no result, so that the result of a later call with its
// key is not taken for its own.
func pairOthers(pair func(except map[int]bool) pairing, suspended []state.ToolCall) (p pairing, waiting map[int]bool) {
	p = pair(nil)
	if len(suspended) == 0 {
		return p, nil
	}
	index := p.index(suspended)
	for _, call := range suspended {
		number := index.firstOpen(call)
		if number != none {
			p.calls[number].take()
			if waiting == nil {
				waiting = map[int]bool{}
			}
			waiting[number] = true
		}
	}
	if len(waiting) > 0 {
		p = pair(waiting)
	}
	return p, waiting
}

// callIndex finds calls by what their results say of them: by their keys, or by
// their ids and names. It holds the numbers of calls in their order, and drops
// those that have a result when it meets them. A list from which all were dropped
// is empty and not nil.
type callIndex struct {
	calls  []pairedCall
	byKey  map[string][]int
	byID   map[string][]int
	byName map[callName][]int
}

// callName is the id and the name of a call.
type callName struct{ id, name string }

// index returns an index of the calls that have the key of one of those, or the
// id of one, or the name if that has no id.
func (p *pairing) index(wanted []state.ToolCall) *callIndex {
	x := &callIndex{p.calls, map[string][]int{}, map[string][]int{}, map[callName][]int{}}
	for _, w := range wanted {
		if w.Key != "" {
			x.byKey[w.Key] = nil
		}
		if w.ID != "" {
			x.byID[w.ID] = nil
		} else {
			x.byName[callName{"", w.Name}] = nil
		}
	}
	for number, c := range p.calls {
		name := callName{c.ID, c.Name}
		if _, ok := x.byKey[c.Key]; ok {
			x.byKey[c.Key] = append(x.byKey[c.Key], number)
		}
		if c.ID != "" {
			if _, ok := x.byID[c.ID]; !ok {
				continue
			}
			x.byID[c.ID] = append(x.byID[c.ID], number)
		} else if _, ok := x.byName[name]; !ok {
			continue
		}
		x.byName[name] = append(x.byName[name], number)
	}
	return x
}

// firstOpen returns the number of the first open call that r names, or none.
func (x *callIndex) firstOpen(r state.ToolCall) int {
	open := x.named(r)
	for len(open) > 0 && x.hasResult(open[0]) {
		open = open[1:]
	}
	x.setNamed(r, open)
	if len(open) == 0 {
		return none
	}
	return open[0]
}

// lastOpen returns the number of the last open call that r names.
func (x *callIndex) lastOpen(r state.ToolCall) (int, error) {
	open := x.trimAnswered(x.named(r))
	x.setNamed(r, open)
	refused := state.ErrUnknownCall
	switch {
	case len(open) > 0:
		return open[len(open)-1], nil
	case open != nil: // emptied
		refused = state.ErrAnswered
	case r.ID != "" && r.Key == "":
		open = x.trimAnswered(x.byID[r.ID])
		switch x.byID[r.ID] = open; {
		case len(open) > 0:
			name := x.calls[open[len(open)-1]].Name
			refused = fmt.Errorf("%w: the call with this id is of %s", state.ErrUnknownCall, fault.Quote(name))
		case open != nil:
			refused = state.ErrAnswered
		}
	}
	return none, fmt.Errorf("transcript: %s: %w", fault.Call(r.ID, r.Name), refused)
}

// named returns the calls that r names: that with its key, or those with its id
// and its name. If there is an id, the name may be missing.
func (x *callIndex) named(r state.ToolCall) []int {
	switch {
	case x.hasKey(r):
		return x.byKey[r.Key]
	case r.Key == "":
		return x.labelled(r)
	}
	var unkeyed []int
	for _, number := range x.labelled(r) {
		if x.calls[number].Key == "" {
			unkeyed = append(unkeyed, number)
		}
	}
	return unkeyed
}

func (x *callIndex) labelled(r state.ToolCall) []int {
	if r.ID != "" && r.Name == "" {
		return x.byID[r.ID]
	}
	return x.byName[callName{r.ID, r.Name}]
}

func (x *callIndex) setNamed(r state.ToolCall, numbers []int) {
	switch {
	case x.hasKey(r):
		x.byKey[r.Key] = numbers
	case r.Key != "": // only some of those with the label
	case r.ID != "" && r.Name == "":
		x.byID[r.ID] = numbers
	default:
		x.byName[callName{r.ID, r.Name}] = numbers
	}
}

// hasKey reports whether a call has the key of r. If none has, r may name one that
// has no key.
func (x *callIndex) hasKey(r state.ToolCall) bool { return r.Key != "" && x.byKey[r.Key] != nil }

// trimAnswered cuts calls that have a result off the end.
func (x *callIndex) trimAnswered(numbers []int) []int {
	for len(numbers) > 0 && x.hasResult(numbers[len(numbers)-1]) {
		numbers = numbers[:len(numbers)-1]
	}
	return numbers
}

func (x *callIndex) hasResult(number int) bool { return x.calls[number].result != none }
