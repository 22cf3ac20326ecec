package state

import (
	"fmt"
	"slices"

	"github.com/agentstate/state/internal/fault"
)

// answers is what a write with answers to the calls of one result adds: to the
// history, and to the conversation if the calls are in it. It is immutable.
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

// callMatcher finds the calls that results answer, each of which has at most
// one answer.
//
// A call is known by its id, or by its name if the provider gives no ids. Of
// several calls with one id, the one with the same name is preferred.
type callMatcher struct {
	calls   []callPlace
	taken   []bool // by call: it has an answer
	numbers []int  // of the calls that results answer, by the place of the result, or -1
}

// newMatcher returns a matcher for calls that all are open.
func newMatcher(calls []callPlace) *callMatcher {
	return &callMatcher{calls: calls, taken: make([]bool, len(calls))}
}

// match returns the first open call that a result with this call may answer. It
// is -1 if there is none; known says whether one that is taken is such a call.
func (m *callMatcher) match(call ToolCall) (number int, known bool) {
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

// take takes the call that a message answers and returns its number, or -1 if
// it answers none.
func (m *callMatcher) take(msg Message) int {
	r, ok := msg.(ToolResultMessage)
	if !ok {
		return -1
	}
	number, _ := m.match(r.Call())
	if number >= 0 {
		m.taken[number] = true
	}
	return number
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
