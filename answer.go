package state

import (
	"iter"
	"slices"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/persist"
)

// find returns where in a conversation the results of the calls begin, and which
// calls are answered there. The place is the latest one where a call has no
// answer. It is -1 if there is none, and there is nil if the conversation does
// not have the calls at all.
func (a *answers) find(l *persist.List, call int) (at int, there *callMatcher) {
	for at, there = range a.copies(l, a.calls[call].message) {
		if !there.taken[call] {
			return at, there
		}
	}
	return -1, there
}

// copies yields the copies of a message of the output in a list, the last one
// first: the place behind what the output says after it, and the calls that are
// answered there.
func (a *answers) copies(l *persist.List, message int) iter.Seq2[int, *callMatcher] {
	said, after := a.output[message], a.output[message+1:]
	return func(yield func(int, *callMatcher) bool) {
		for i := l.Len() - 1; i >= 0; {
			chunk, first := persist.Chunk[Message](l, i)
			for ; i >= first; i-- {
				m := chunk[i-first]
				if _, ok := m.(ToolResultMessage); ok || !sameMessage(m, said) {
					continue
				}
				at := i + 1
				for _, m := range after {
					if at < l.Len() && sameMessage(messageIn(l, at), m) {
						at++
					}
				}
				if !yield(at, a.answeredAt(l, at)) {
					return
				}
			}
		}
	}
}

// answeredAt returns the calls that the results from a place of a conversation
// on answer.
func (a *answers) answeredAt(l *persist.List, at int) *callMatcher {
	m := newMatcher(a.calls)
	for ; at < l.Len(); at++ {
		number := m.take(messageIn(l, at))
		if number < 0 {
			break
		}
		m.numbers = append(m.numbers, number)
	}
	return m
}

func messageIn(l *persist.List, i int) Message {
	chunk, first := persist.Chunk[Message](l, i)
	return chunk[i-first]
}

// inConversation reports whether the calls are in a conversation, without their
// answers.
func (a *answers) inConversation(l *persist.List) bool {
	return slices.ContainsFunc(a.given, func(given answer) bool {
		at, _ := a.find(l, given.call)
		return at >= 0
	})
}

// answerMerger puts answers behind their calls in the conversation. The handler
// of the conversation gets the messages before the place as the current value,
// so that it sees answers as it sees all that is appended.
type answerMerger struct{ *handler }

// Merge implements [engine.Merger].
func (h answerMerger) Merge(at engine.Address, current *engine.Cell, u engine.Update) (engine.Merged, error) {
	sp, a := at.Slot.Form.(*fieldSpec), u.Value.(*answers)
	l := listIn(current, &sp.form)
	for rest := a.given; len(rest) > 0; {
		from, there := a.find(l, rest[0].call)
		if from < 0 {
			rest = rest[1:]
			continue
		}
		place := placeOf(there.numbers, rest[0].call)
		next := len(a.calls) // the call with the answer at the place
		if place < len(there.numbers) {
			next = there.numbers[place]
		}
		n := 1
		for n < len(rest) && rest[n].call < next && !there.taken[rest[n].call] {
			n++
		}
		group := answers{given: rest[:n]}
		var err error
		if l, err = h.insert(sp, l, from+place, &group); err != nil {
			return engine.Merged{}, sp.valueError(at, err)
		}
		rest = rest[n:]
	}
	return sp.stored(at, l, l.Bytes(), nil)
}

// insert returns a conversation with answers inserted at a place.
func (h answerMerger) insert(sp *fieldSpec, l *persist.List, place int, a *answers) (*persist.List, error) {
	f := &sp.form
	after := l.Slice(place, l.Len())
	afterSize := 0
	for _, m := range after.([]Message) {
		afterSize += m.size() + 1
	}
	before := l.Take(place, l.Bytes()-afterSize)
	said := a.said()
	v, _, err := h.merge(f, &engine.Cell{Value: before, Size: before.Bytes()}, said, 2+a.size()+len(said), false)
	if err != nil {
		return nil, err
	}
	return v.(*persist.List).Append(after, afterSize), nil
}

// answerOps returns the ops that answer calls in a tree: for each result that
// is completed one that writes the history, and then one that writes the
// conversation if it has the calls.
func (h *handle) answerOps(t *engine.Tree, results []ToolResultMessage) ([]engine.Op, error) {
	form, sp := h.schema.history, h.schema.messages()
	d := answersDraft{handle: h, stack: form.stackIn(t.Get(form.address()))}
	for _, m := range results {
		if err := d.add(m); err != nil {
			h.branch.Get(form.address()) // the error depends on what is there
			return nil, err
		}
	}
	var ops, said []engine.Op
	conversation := listIn(t.Get(sp.address()), &sp.form)
	for _, open := range d.completed {
		a := open.answers
		if size, limit := open.result.size+a.size(), h.schema.limits.ValueBytes; limit > 0 && size > limit {
			return nil, &LimitError{Name: "ValueBytes", Field: historyName, Limit: limit, Got: size}
		}
		slices.SortFunc(a.given, func(a, b answer) int { return a.call - b.call })
		ops = append(ops, form.answerOp(a, open.result.agent, h.author))
		if h.mayWrite(sp) && a.inConversation(conversation) {
			said = append(said, sp.answerOp(a, h.author))
		}
	}
	return append(ops, said...), nil
}

// answersDraft finds the calls that are answered.
type answersDraft struct {
	*handle
	stack   *resultStack
	results []*openResult // the latest first, as far as was needed
	// completed are those that get answers, in the order in which they come.
	completed []*openResult
}

// openResult is a result with the calls that are answered.
type openResult struct {
	result  *stackedResult
	answers *answers
	matcher *callMatcher // of its calls
}

// add adds an answer to the latest result in which its call is open.
func (d *answersDraft) add(m ToolResultMessage) error {
	var refused error
	for i := range d.stack.len() {
		open := d.result(i)
		if !d.schema.history.sees(d.view(), open.result) {
			continue
		}
		call, known := open.matcher.match(m.Call())
		wrong := open.matcher.checkName(call, m.Call())
		own := d.rights == nil || open.result.agent == d.agent()
		if fits := own && call >= 0 && wrong == nil; !known || refused != nil && !fits {
			continue // the first refusal stands
		}
		switch {
		case call < 0:
			refused = callError(m.Call(), ErrAnswered)
		case !own:
			refused = d.denied("answer a call of "+fault.Quote(open.result.agent)+" in", historyName)
		case wrong != nil:
			refused = callError(m.Call(), wrong)
		default:
			if len(open.answers.given) == 0 {
				d.completed = append(d.completed, open)
			}
			open.answers.given = append(open.answers.given, answer{call, resultOf(m, *open.matcher.calls[call].ToolCall)})
			open.matcher.taken[call] = true
			return nil
		}
	}
	if refused == nil {
		refused = callError(m.Call(), ErrUnknownCall)
	}
	return refused
}

// result returns the result at place i from the top.
func (d *answersDraft) result(i int) *openResult {
	if i == len(d.results) {
		r := d.stack.at(d.stack.len() - 1 - i)
		m := d.stack.callsOf(r)
		a := &answers{origin: r.origin, output: d.stack.messages(r.output), calls: m.calls}
		d.results = append(d.results, &openResult{r, a, m})
	}
	return d.results[i]
}

// answerOp returns the op that puts answers into the conversation.
func (sp *fieldSpec) answerOp(a *answers, author *engine.Author) engine.Op {
	h := sp.handler
	if sp.onSet.Overwrites {
		h = appendHandler
	}
	o := sp.newOp(OpAnswer, h)
	o.Merger, o.Author, o.Borrowed = answerMerger{h}, author, false
	o.Update = engine.Update{Value: a, Size: a.size()}
	return o
}

// answers is what a write with answers to the calls of one result adds: to the
// history, and to the conversation if the calls are in it. It is immutable.
type answers struct {
	origin uint64    // of the result
	output []Message // of the result
	calls  []callPlace
	given  []answer // by call
}

// answer is a result and the number of the call that it answers, among all
// calls of an output.
type answer struct {
	call    int
	message ToolResultMessage
}

// placeOf returns where the answer to a call belongs among answers to the calls
// with these numbers.
func placeOf(numbers []int, call int) int {
	if at := slices.IndexFunc(numbers, func(n int) bool { return n > call }); at >= 0 {
		return at
	}
	return len(numbers)
}

// said returns the given answers as messages.
func (a *answers) said() []Message {
	msgs := make([]Message, len(a.given))
	for i, given := range a.given {
		msgs[i] = given.message
	}
	return msgs
}

// results returns the given answers.
func (a *answers) results() []ToolResultMessage {
	results := make([]ToolResultMessage, len(a.given))
	for i, given := range a.given {
		results[i] = given.message
	}
	return results
}

func (a *answers) size() int {
	n := 0
	for _, given := range a.given {
		n += given.message.size()
	}
	return n
}

// Pending returns the calls that the agent of the handle has to answer before
// its model is asked again, in their order: those in its results that have no
// answer, neither there nor in Messages. It leaves out suspended calls, such as
// those that wait for a person. A handle of the host returns only the calls in
// results that name no agent: for those of an agent, ask the handle of [State.As].
//
// With Pending, a process that goes on where another one has stopped finds the
// calls that were left. A call that is not in Messages, because it was pushed or
// trimmed, is pending until its result has an answer. An agent that may not read
// Messages does not see the answers there.
//
// A suspended call is found by its key. One without a key stands for the first
// pending one with its id, or with its name if it has no id.
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
	m := newMatcher(open)
	for _, c := range suspended {
		if number, _ := m.match(c); number >= 0 {
			m.taken[number] = true
		}
	}
	return m.taken
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
	answered, copied := slices.Repeat([]bool{true}, to-from), false // behind each copy so far
	for _, there := range a.copies(conversation, a.calls[from].message) {
		copied = true
		more := false // there is one that is not marked yet
		for i := range answered {
			answered[i] = answered[i] && there.taken[from+i]
			more = more || answered[i] && !taken[from+i]
		}
		if !more {
			break
		}
	}
	for i := range answered {
		taken[from+i] = taken[from+i] || copied && answered[i]
	}
}
