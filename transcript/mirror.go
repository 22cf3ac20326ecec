package transcript

import (
	"fmt"
	"slices"
	"sort"

	"github.com/agentstate/state"
)

// Mirror holds a conversation of messages of type M as messages of package
// state. [Check] and [Repair] need these, because they read the content of
// messages. A Mirror converts each message once, however often the conversation
// is checked while it grows.
//
// Messages are compared with ==, and M is usually a pointer type. A message must
// not change after it was converted: its place in the conversation takes another
// one instead. A Mirror is not safe for concurrent use.
type Mirror[M comparable] struct {
	convert func(M) ([]state.Message, error)
	own     []M             // as it was last seen
	msgs    []state.Message // what own stands for; returned slices are never overwritten
	ends    []int           // of each of own, the end of what it stands for
}

// NewMirror returns a Mirror of an empty conversation. The function convert
// returns what a message stands for: several messages if it has a text and
// calls, or several results; none if there is nothing to send.
func NewMirror[M comparable](convert func(M) ([]state.Message, error)) *Mirror[M] {
	return &Mirror[M]{convert: convert}
}

// Update makes own the conversation of the Mirror and returns what it stands
// for. It calls convert for the messages that were not in the conversation
// before. It does not retain own. The returned slice is never changed by the
// Mirror, and must not be changed by the caller.
//
// If convert returns an error, Update returns it with the index of the message.
// The messages in front of that one are the conversation then.
func (m *Mirror[M]) Update(own []M) ([]state.Message, error) {
	same := 0
	for same < min(len(own), len(m.own)) && own[same] == m.own[same] {
		same++
	}
	known := m.truncate(same)
	for i, one := range own[same:] {
		msgs, ok := known[one]
		if !ok {
			var err error
			if msgs, err = m.convert(one); err != nil {
				return nil, fmt.Errorf("transcript: message %d: %w", same+i, err)
			}
		}
		m.msgs = append(m.msgs, msgs...)
		m.own, m.ends = append(m.own, one), append(m.ends, len(m.msgs))
	}
	return slices.Clip(m.msgs), nil
}

// truncate removes all but the first n messages. It returns what the others
// stand for.
func (m *Mirror[M]) truncate(n int) map[M][]state.Message {
	if n == len(m.own) {
		return nil
	}
	end := 0
	if n > 0 {
		end = m.ends[n-1]
	}
	known, start := make(map[M][]state.Message, len(m.own)-n), end
	for i, one := range m.own[n:] {
		known[one], start = m.msgs[start:m.ends[n+i]], m.ends[n+i]
	}
	clear(m.own[n:])
	m.own, m.ends = m.own[:n], m.ends[:n]
	m.msgs = append(make([]state.Message, 0, len(m.msgs)), m.msgs[:end]...) // with space for as many again
	return known
}

// Source returns the index in the conversation of the message that stands behind
// message i of the converted one, such as that of a [Finding]. It is -1 if there
// is no message i.
func (m *Mirror[M]) Source(i int) int {
	if i < 0 || i >= len(m.msgs) {
		return none
	}
	return sort.SearchInts(m.ends, i+1)
}
