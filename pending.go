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
	waiting := newCallIndex(open).newMatcher()
	for _, c := range suspended {
		if number, _ := waiting.match(c); number >= 0 {
			waiting.taken[number] = true
		}
	}
	var pending []ToolCall
	for i, c := range open {
		if !waiting.taken[i] {
			pending = append(pending, *c.ToolCall)
		}
	}
	return pending
}

// appendOpen appends the calls of a result that have no answer, neither there
// nor in a conversation. The conversation may be nil.
func (st *resultStack) appendOpen(open []callPlace, r *stackedResult, conversation *persist.List) []callPlace {
	a := answers{output: st.messages(r.output), called: calledMessages{&st.table, r.called}}
	if !slices.ContainsFunc(a.output, isToolCall) {
		return open
	}
	a.calls = st.callsOf(r)
	matcher := a.calls.newMatcher()
	for number, c := range a.calls.index.calls {
		if matcher.taken[number] {
			continue
		}
		if conversation != nil {
			if at, there := a.find(conversation, number); at < 0 && there.taken != nil {
				continue
			}
		}
		open = append(open, c)
	}
	return open
}

func isToolCall(m Message) bool {
	_, ok := m.(ToolCallMessage)
	return ok
}
