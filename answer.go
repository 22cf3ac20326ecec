package state

import (
	"slices"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/persist"
)

// answers is what a write with answers to the calls of one result adds: to the
// history, and to the conversation if the calls are in it. It is immutable.
type answers struct {
	origin uint64    // of the result
	output []Message // of the result
	index  *callIndex
	given  []answer // by call
}

// callPlace is a call and the message of an output that it is in.
type callPlace struct {
	*ToolCall
	message int
}

// answer is a result and the number of the call that it answers, among all
// calls of an output.
type answer struct {
	call    int
	message ToolResultMessage
}

// callsIn returns the calls of an output.
func callsIn(output []Message) []callPlace {
	var calls []callPlace
	for i, m := range output {
		if m, ok := m.(ToolCallMessage); ok {
			list := m.toolCalls()
			for n := range list {
				calls = append(calls, callPlace{&list[n], i})
			}
		}
	}
	return calls
}

// callIndex has the calls of an output by what results know of them. It is
// immutable.
type callIndex struct {
	calls []callPlace
	// The numbers of the calls, in order. They are nil if there are few calls.
	named  map[callName][]int
	withID map[string][]int
}

type callName struct{ id, name string }

// fewCalls is the number of calls up to which looking at each is faster than
// maps.
const fewCalls = 16

func newCallIndex(calls []callPlace) *callIndex {
	x := &callIndex{calls: calls}
	if len(calls) <= fewCalls {
		return x
	}
	x.named = make(map[callName][]int, len(calls))
	x.withID = make(map[string][]int, len(calls))
	for i, c := range calls {
		name := callName{c.ID, c.Name}
		x.named[name] = append(x.named[name], i)
		if c.ID != "" {
			x.withID[c.ID] = append(x.withID[c.ID], i)
		}
	}
	return x
}

// callMatcher finds the calls that results answer, each of which has at most
// one answer.
//
// A call is known by its id, or by its name if the provider gives no ids. Of
// several calls with one id, the one with the same name is preferred.
type callMatcher struct {
	*callIndex
	taken []bool // by call: it has an answer
	// How many leading calls in a list of the index are taken, by the first of
	// the list.
	namedTaken, withIDTaken []int
}

// newMatcher returns a matcher for calls that all are open.
func (x *callIndex) newMatcher() *callMatcher {
	m := &callMatcher{callIndex: x, taken: make([]bool, len(x.calls))}
	if x.named != nil {
		m.namedTaken, m.withIDTaken = make([]int, len(x.calls)), make([]int, len(x.calls))
	}
	return m
}

// match returns the first open call that a result with this call may answer. It
// is -1 if there is none; known says whether one that is taken is such a call.
func (m *callMatcher) match(call ToolCall) (number int, known bool) {
	if m.named != nil {
		named, withID := m.named[callName{call.ID, call.Name}], m.withID[call.ID]
		if number = m.firstOpen(named, m.namedTaken); number < 0 {
			number = m.firstOpen(withID, m.withIDTaken)
		}
		return number, len(named)+len(withID) > 0
	}
	number = -1
	for i, c := range m.calls {
		if c.ID != call.ID || c.ID == "" && c.Name != call.Name {
			continue
		}
		known = true
		switch {
		case m.taken[i]:
		case c.Name == call.Name:
			return i, true
		case number < 0:
			number = i
		}
	}
	return number, known
}

// firstOpen returns the first open call in a list of the index, or -1.
func (m *callMatcher) firstOpen(list []int, taken []int) int {
	if len(list) == 0 {
		return -1
	}
	n := &taken[list[0]]
	for ; *n < len(list); *n++ {
		if number := list[*n]; !m.taken[number] {
			return number
		}
	}
	return -1
}

// answered takes the calls that the leading results in a list answer, and
// returns their numbers. It ends before the first message that answers none. If
// all is set, it does not end, and the number of such a message is -1.
func (m *callMatcher) answered(list []Message, all bool) []int {
	numbers := make([]int, 0, len(list))
	for _, msg := range list {
		number := -1
		if r, ok := msg.(ToolResultMessage); ok {
			number, _ = m.match(r.Call())
		}
		if number < 0 && !all {
			break
		}
		if number >= 0 {
			m.taken[number] = true
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// placeOf returns where the answer to a call belongs among answers to the calls
// with these numbers.
func placeOf(numbers []int, call int) int {
	if at := slices.IndexFunc(numbers, func(n int) bool { return n > call }); at >= 0 {
		return at
	}
	return len(numbers)
}

// insertInto returns the results of the result's calls with the given answers
// put between them, in call order. It reports false if a call has an answer
// already and there is no other call that the answer fits.
func (a *answers) insertInto(results []Message) ([]Message, bool) {
	matcher := a.index.newMatcher()
	numbers := matcher.answered(results, true)
	for _, given := range a.given {
		call := given.call
		if matcher.taken[call] {
			if call, _ = matcher.match(given.message.Call()); call < 0 {
				return nil, false
			}
		}
		matcher.taken[call] = true
		at := placeOf(numbers, call)
		numbers = slices.Insert(numbers, at, call)
		results = slices.Insert(results, at, Message(given.message))
	}
	return results, true
}

// find returns where in a conversation the results of the calls begin, and the
// numbers of the calls that are answered there. The place is the latest one
// where a call has no answer; it is -1 if there is none.
func (a *answers) find(l *persist.List, call int) (at int, numbers []int) {
	said := a.output[a.index.calls[call].message]
	for i := l.Len() - 1; i >= 0; i-- {
		if !sameMessage(messageIn(l, i), said) {
			continue
		}
		at := i + 1
		for _, m := range a.output[a.index.calls[call].message+1:] {
			if at < l.Len() && sameMessage(messageIn(l, at), m) {
				at++
			}
		}
		var results []Message
		for n := at; n < l.Len() && messageIn(l, n).Type() == typeToolResult; n++ {
			results = append(results, messageIn(l, n))
		}
		matcher := a.index.newMatcher()
		if numbers := matcher.answered(results, false); !matcher.taken[call] {
			return at, numbers
		}
	}
	return -1, nil
}

func messageIn(l *persist.List, i int) Message { return l.Index(i).Interface().(Message) }

// conversationOf returns the messages in a cell.
func conversationOf(sp *fieldSpec, c *engine.Cell) *persist.List {
	if c == nil {
		return persist.NewList(sp.form.Type)
	}
	return cell.Bare(c.Value).(*persist.List)
}

// inConversation reports whether the calls are in a conversation, without their
// answers.
func (a *answers) inConversation(l *persist.List) bool {
	return slices.ContainsFunc(a.given, func(given answer) bool {
		at, _ := a.find(l, given.call)
		return at >= 0
	})
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

// answerMerger puts answers behind their calls in the conversation. The handler
// of the conversation gets the messages before the place as the current value,
// so that it sees answers as it sees all that is appended.
type answerMerger struct{ *handler }

// Merge implements [engine.Merger].
func (h answerMerger) Merge(at engine.Address, current *engine.Cell, u engine.Update) (engine.Merged, error) {
	sp, a := at.Slot.Form.(*fieldSpec), u.Value.(*answers)
	l := conversationOf(sp, current)
	for rest := a.given; len(rest) > 0; {
		from, numbers := a.find(l, rest[0].call)
		if from < 0 {
			rest = rest[1:]
			continue
		}
		place := placeOf(numbers, rest[0].call)
		n := 1
		for n < len(rest) && (place == len(numbers) || rest[n].call < numbers[place]) && !slices.Contains(numbers, rest[n].call) {
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
	v, _, err := h.merge(f, &engine.Cell{Value: before, Size: before.Bytes()}, said, a.size()+len(said), false)
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
	conversation := conversationOf(sp, t.Get(sp.address()))
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
		switch own := d.rights == nil || open.result.agent == d.agent(); {
		case !known || refused != nil && (!own || call < 0):
		case !own:
			refused = d.denied("answer a call of "+fault.Quote(open.result.agent)+" in", historyName)
		case call < 0:
			refused = &CallError{ID: m.Call().ID, Name: m.Call().Name, Err: ErrAnswered}
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
		output := d.stack.messages(r.output)
		a := &answers{origin: r.origin, output: output, index: newCallIndex(callsIn(output))}
		matcher := a.index.newMatcher()
		matcher.answered(d.stack.messages(r.called), true)
		d.results = append(d.results, &openResult{r, a, matcher})
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
