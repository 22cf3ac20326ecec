package state

import (
	"slices"

	"github.com/agentstate/state/internal/persist"
)

// Pending returns the calls that the agent of the handle has to answer before
// its model is asked again, in their order: those in its results that have no
// answer, neither there nor in Messages. It leaves out suspended calls, such as
// those that wait for a person. A handle of the host returns the calls in
// results that name no agent.
//
// With Pending, a process that goes on where another one has stopped finds the
// calls that were left. A call that is not in Messages, because it was pushed or
// trimmed, is pending until its result has an answer. An agent that may not read
// Messages does not see the answers there.
//
// A suspended call stands for the first pending one with its id, or with its
// name if it has no id.
func (hs *History) Pending(suspended ...ToolCall) []ToolCall {
	h := hs.state.on()
	seen := hs.seen() // first: a call that is answered after it is not pending below
	var conversation *persist.List
	if sp := h.schema.messages(); h.mayRead(sp) {
		conversation = listIn(h.slot(sp), &sp.form)
	}
	var open []callPlace
	for i := range seen.len() {
		if r := seen.at(i); r.agent == h.agent() && len(r.output) > 0 {
			open = seen.stack.appendOpen(open, r, conversation)
		}
	}
	waiting := waitingCalls(open, suspended)
	var pending []ToolCall
	for i, c := range open {
		if !waiting[i] {
			pending = append(pending, *c.ToolCall)
		}
	}
	return pending
}

// waitingCalls says which of the open calls of all results are suspended.
func waitingCalls(open []callPlace, suspended []ToolCall) []bool {
	type key struct{ id, name string } // the name only if there is no id
	keyOf := func(c ToolCall) key {
		if c.ID != "" {
			return key{id: c.ID}
		}
		return key{name: c.Name}
	}
	places := map[key][]int{}
	for i, c := range open {
		k := keyOf(*c.ToolCall)
		places[k] = append(places[k], i)
	}
	waiting := make([]bool, len(open))
	for _, c := range suspended {
		list := places[keyOf(c)]
		if len(list) == 0 {
			continue
		}
		at := max(0, slices.IndexFunc(list, func(i int) bool { return open[i].Name == c.Name }))
		waiting[list[at]] = true
		places[keyOf(c)] = slices.Delete(list, at, at+1)
	}
	return waiting
}

// appendOpen appends the calls of a result that have no answer, neither there
// nor in a conversation. The conversation may be nil.
func (st *resultStack) appendOpen(open []callPlace, r *stackedResult, conversation *persist.List) []callPlace {
	a := answers{output: st.messages(r.output)}
	if !slices.ContainsFunc(a.output, isToolCall) {
		return open
	}
	m := st.callsOf(r)
	calls, taken := m.calls, m.taken
	a.calls = calls
	for from, to := 0, 0; from < len(calls); from = to {
		for to = from; to < len(calls) && calls[to].message == calls[from].message; to++ {
		}
		if conversation != nil && slices.Contains(taken[from:to], false) {
			a.takeElsewhere(conversation, taken, from, to)
		}
		for number := from; number < to; number++ {
			if !taken[number] {
				open = append(open, calls[number])
			}
		}
	}
	return open
}

// takeElsewhere marks the calls from..to, which are those of one message, that
// are answered in a conversation: those that have an answer behind each copy of
// the message there.
func (a *answers) takeElsewhere(conversation *persist.List, taken []bool, from, to int) {
	open, copied := make([]bool, to-from), false
	for _, there := range a.copies(conversation, a.calls[from].message) {
		copied = true
		left := false // a call that is answered as far as is known
		for number := from; number < to; number++ {
			open[number-from] = open[number-from] || !there.taken[number]
			left = left || !open[number-from] && !taken[number]
		}
		if !left {
			break
		}
	}
	for i := range open {
		taken[from+i] = taken[from+i] || copied && !open[i]
	}
}

func isToolCall(m Message) bool {
	_, ok := m.(ToolCallMessage)
	return ok
}
