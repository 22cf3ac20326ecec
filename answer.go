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
		switch own := d.rights == nil || open.result.agent == d.agent(); {
		case !known || refused != nil && (!own || call < 0 || wrong != nil):
		case !own:
			refused = d.denied("answer a call of "+fault.Quote(open.result.agent)+" in", historyName)
		case call < 0:
			refused = &CallError{ID: m.Call().ID, Name: m.Call().Name, Err: ErrAnswered}
		case wrong != nil:
			refused = &CallError{ID: m.Call().ID, Name: m.Call().Name, Err: wrong}
		default:
			if len(open.answers.given) == 0 {
				d.completed = append(d.completed, open)
			}
			open.answers.given = append(open.answers.given, answer{call, m})
			open.matcher.taken[call] = true
			return nil
		}
	}
	if refused == nil {
		refused = &CallError{ID: m.Call().ID, Name: m.Call().Name, Err: ErrUnknownCall}
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
