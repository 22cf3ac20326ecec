package state

import (
	"fmt"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/persist"
)

// answers is what a write with answers to the calls of one result adds: to the
// history, and to the conversation if the calls are in it. It is immutable.
type answers struct {
	origin uint64    // of the result
	output []Message // of the result
	calls  *answeredCalls
	called calledMessages
	given  []answer // by call
}

// calledMessages are the results of calls in a table of messages.
type calledMessages struct {
	table *messageTable
	runs  []messageRun
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

// unique reports whether each of many calls has an id of its own. Then a result
// has one call that it answers, whatever other results there are.
func (x *callIndex) unique() bool { return x.withID != nil && len(x.withID) == len(x.calls) }

// answeredCalls says which of the calls of an output have answers. It is
// immutable.
type answeredCalls struct {
	index *callIndex
	// numbers are the calls that the results answer, by the place of the result,
	// or -1 for a result that answers none.
	numbers persist.Sequence[int32]
	fixed   bool // other results do not change the numbers
}

// newAnsweredCalls finds the calls that results answer.
func newAnsweredCalls(calls []callPlace, results []Message) *answeredCalls {
	c := &answeredCalls{index: newCallIndex(calls)}
	matcher := c.index.newMatcher()
	matcher.answered(results, true, &c.numbers)
	c.fixed = c.index.unique()
	for run := range c.numbers.Runs(0, c.numbers.Len()) {
		c.fixed = c.fixed && !slices.Contains(run, -1)
	}
	return c
}

// newMatcher returns a matcher for the calls that are open.
func (c *answeredCalls) newMatcher() *callMatcher {
	m := c.index.newMatcher()
	for run := range c.numbers.Runs(0, c.numbers.Len()) {
		for _, number := range run {
			if number >= 0 {
				m.taken[number] = true
			}
		}
	}
	return m
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
	namedTaken, withIDTaken map[int]int
}

// newMatcher returns a matcher for calls that all are open.
func (x *callIndex) newMatcher() *callMatcher {
	return &callMatcher{callIndex: x, taken: make([]bool, len(x.calls))}
}

// match returns the first open call that a result with this call may answer. It
// is -1 if there is none; known says whether one that is taken is such a call.
func (m *callMatcher) match(call ToolCall) (number int, known bool) {
	if m.named != nil {
		named, withID := m.named[callName{call.ID, call.Name}], m.withID[call.ID]
		if number = m.firstOpen(named, &m.namedTaken); number < 0 {
			number = m.firstOpen(withID, &m.withIDTaken)
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

// checkName returns an error if the call that a new answer would be matched with
// has another name than the answer says. Recorded results may have any name.
func (m *callMatcher) checkName(number int, answered ToolCall) error {
	if number < 0 || answered.ID == "" || answered.Name == "" || m.calls[number].Name == answered.Name {
		return nil
	}
	isNamed := func(c callPlace) bool { return c.ID == answered.ID && c.Name == answered.Name }
	if slices.ContainsFunc(m.calls, isNamed) {
		return ErrAnswered
	}
	return fmt.Errorf("%w: the call with this id is of %s", ErrUnknownCall, fault.Quote(m.calls[number].Name))
}

// firstOpen returns the first open call in a list of the index, or -1. leading
// has how many calls at the beginning of long lists are taken.
func (m *callMatcher) firstOpen(list []int, leading *map[int]int) int {
	switch {
	case len(list) == 0:
		return -1
	case len(list) > fewCalls && *leading == nil:
		*leading = map[int]int{}
	}
	n := (*leading)[list[0]]
	for n < len(list) && m.taken[list[n]] {
		n++
	}
	if len(list) > fewCalls {
		(*leading)[list[0]] = n
	}
	if n == len(list) {
		return -1
	}
	return list[n]
}

// answered takes the calls that the leading results in a list answer, and adds
// their numbers to numbers. It ends before the first message that answers none.
// If all is set, it does not end, and the number of such a message is -1.
func (m *callMatcher) answered(list []Message, all bool, numbers *persist.Sequence[int32]) (ended bool) {
	for _, msg := range list {
		number := -1
		if r, ok := msg.(ToolResultMessage); ok {
			number, _ = m.match(r.Call())
		}
		if number < 0 && !all {
			return true
		}
		if number >= 0 {
			m.taken[number] = true
		}
		*numbers = numbers.Append(int32(number))
	}
	return false
}

// placeOf returns where the answer to a call belongs among answers to the calls
// with these numbers: at a place or behind it.
func placeOf(numbers *persist.Sequence[int32], place, call int) int {
	for run := range numbers.Runs(place, numbers.Len()) {
		if at := slices.IndexFunc(run, func(n int32) bool { return int(n) > call }); at >= 0 {
			return place + at
		}
		place += len(run)
	}
	return place
}

// inserted returns numbers with another one at a place.
func inserted(numbers *persist.Sequence[int32], at, number int) persist.Sequence[int32] {
	next := numbers.Take(at).Append(int32(number))
	for run := range numbers.Runs(at, numbers.Len()) {
		for _, n := range run {
			next = next.Append(n)
		}
	}
	return next
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
