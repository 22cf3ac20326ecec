package state

import (
	"slices"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/persist"
)

// answers is what answers to calls of one result write: to the history, and to
// the conversation if it has the calls. It is immutable.
type answers struct {
	origin uint64    // of the result
	output []Message // of the result
	calls  []callPlace
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

// matchCall returns the first of the calls that a result with this call may
// answer, leaving out those that are taken. It is -1 if there is none; known
// says whether one of those taken is such a call.
//
// A call is known by its id, or by its name if the provider gives no ids. Of
// several calls with one id, the one with the same name is preferred.
func matchCall(calls []callPlace, call ToolCall, taken []int) (number int, known bool) {
	number = -1
	for i, c := range calls {
		if c.ID != call.ID || c.ID == "" && c.Name != call.Name {
			continue
		}
		known = true
		if slices.Contains(taken, i) {
			continue
		}
		if c.Name == call.Name {
			return i, true
		}
		if number < 0 {
			number = i
		}
	}
	return number, known
}

// answered returns for each of the leading results in a list the number of the
// call that it answers. It ends before the first message that answers none. If
// all is set, it does not end, and the number of such a message is -1.
func answered(calls []callPlace, list []Message, all bool) []int {
	numbers := make([]int, 0, len(list))
	for _, m := range list {
		number := -1
		if m, ok := m.(ToolResultMessage); ok {
			number, _ = matchCall(calls, m.Call(), numbers)
		}
		if number < 0 && !all {
			break
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
	numbers := answered(a.calls, results, true)
	for _, given := range a.given {
		call := given.call
		if slices.Contains(numbers, call) {
			if call, _ = matchCall(a.calls, given.message.Call(), numbers); call < 0 {
				return nil, false
			}
		}
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
	said := a.output[a.calls[call].message]
	for i := l.Len() - 1; i >= 0; i-- {
		if !sameMessage(messageIn(l, i), said) {
			continue
		}
		at := i + 1
		for _, m := range a.output[a.calls[call].message+1:] {
			if at < l.Len() && sameMessage(messageIn(l, at), m) {
				at++
			}
		}
		var results []Message
		for n := at; n < l.Len() && messageIn(l, n).Type() == typeToolResult; n++ {
			results = append(results, messageIn(l, n))
		}
		if numbers := answered(a.calls, results, false); !slices.Contains(numbers, call) {
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
	taken   []int // the calls that have an answer
}

// add adds an answer to the latest result in which its call is open.
func (d *answersDraft) add(m ToolResultMessage) error {
	var refused error
	for i := range d.stack.len() {
		open := d.result(i)
		if !d.schema.history.sees(d.view(), open.result) {
			continue
		}
		call, known := matchCall(open.answers.calls, m.Call(), open.taken)
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
			open.taken = append(open.taken, call)
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
		a := &answers{origin: r.origin, output: output, calls: callsIn(output)}
		taken := answered(a.calls, d.stack.messages(r.called), true)
		d.results = append(d.results, &openResult{r, a, taken})
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
