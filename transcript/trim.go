package transcript

import (
	"math"
	"slices"

	"github.com/agentstate/state"
)

// Trim shortens a conversation. It returns some of the messages, unchanged and
// in their order, in a new slice. It does not change its argument and is safe
// for concurrent use.
//
// A Trim of this package drops the oldest groups, as defined by [Groups], and
// keeps the latest. A call never loses its result, and a result never loses its
// call. Whatever the limit, these messages are kept, and count:
//   - the system prompt at the beginning,
//   - calls without a result, with their group, so that a later result finds them,
//   - the latest group,
//   - the last request of the user before any other message that is kept.
//
// A Trim preserves validity: if [Check] finds nothing in the conversation, it
// finds nothing in the result.
type Trim func([]state.Message) []state.Message

// KeepLast returns the Trim that keeps at most n messages. It keeps more than n
// only if more messages must always be kept. A negative n counts as 0.
func KeepLast(n int) Trim {
	trim := newTrim(n, func(state.Message) int { return 1 })
	return func(msgs []state.Message) []state.Message {
		if len(msgs) <= n { // as long as the window is not full, as a handler at each write
			return slices.Clone(msgs)
		}
		return trim(msgs)
	}
}

// KeepTokens returns the Trim that keeps messages of at most max tokens in
// total. It keeps more than max only if the messages that must always be kept
// have more. It calls count at most once for each message. A negative count and
// a negative max count as 0. If count is nil, four bytes of a message's JSON
// count as one token, which is about right for English text.
func KeepTokens(max int, count func(state.Message) int) Trim {
	if count == nil {
		count = func(m state.Message) int {
			if m == nil {
				return 0
			}
			return len(m.Raw())/4 + 1
		}
	}
	return newTrim(max, count)
}

// Handler returns the handler that appends messages and then trims, for the
// field of the messages. Unlike the default handler, which only appends, it
// copies the messages that are kept with each write.
func (t Trim) Handler() state.Handler[[]state.Message] {
	trim := func(current []state.Message, _ bool, update []state.Message) ([]state.Message, error) {
		return t(slices.Concat(current, update)), nil
	}
	return state.NewHandler("trim", trim)
}

func newTrim(limit int, count func(state.Message) int) Trim {
	return func(msgs []state.Message) []state.Message {
		w := newWindow(msgs, count)
		w.keepAlways()
		w.keepLatest(max(limit, 0))
		var kept []state.Message
		for i, m := range msgs {
			if w.kept[i] {
				kept = append(kept, m)
			}
		}
		return kept
	}
}

// window is the part of a conversation that a Trim keeps.
type window struct {
	pairing
	msgs    []state.Message
	count   func(state.Message) int
	groups  [][]int
	groupOf []int  // of each message, the number of its group
	request []int  // of each message, the request before it, or none
	kept    []bool // of each message
	counts  []int  // of each message, none if not counted yet
	total   int    // the count of the kept messages
}

func newWindow(msgs []state.Message, count func(state.Message) int) *window {
	n, p := len(msgs), pairCalls(msgs)
	w := &window{
		pairing: p,
		msgs:    msgs,
		count:   count,
		groups:  p.groups(msgs),
		groupOf: make([]int, n),
		request: make([]int, n),
		kept:    make([]bool, n),
		counts:  make([]int, n),
	}
	for number, group := range w.groups {
		for _, i := range group {
			w.groupOf[i], w.counts[i] = number, none
		}
	}
	last, best := none, 1
	for i := range msgs {
		w.request[i] = last
		if rank := w.requestRank(i); rank >= best {
			last, best = i, rank
		}
	}
	return w
}

// rankRequest is the rank of a request of the user.
const rankRequest = 3

// requestRank ranks a message as the request that later messages are about. The
// best is a text of the user. Before the first of these, it is a result whose
// call the provider holds, and before the first of these an item of the user.
// The message must begin its group.
func (w *window) requestRank(i int) int {
	if w.groups[w.groupOf[i]][0] != i {
		return 0
	}
	switch m := w.msgs[i].(type) {
	case state.TextMessage:
		if m.Role() == "user" && !isReasoning(m) {
			return rankRequest
		}
	case state.ToolResultMessage:
		if w.answers[i] == none {
			return 2
		}
	case state.UnknownMessage:
		if m.Role() == "user" {
			return 1
		}
	}
	return 0
}

// keepAlways keeps the system prompt, and the calls that wait for their results
// with their requests.
func (w *window) keepAlways() {
	for i, m := range w.msgs {
		if !isSystem(m) {
			break
		}
		w.keepMessages(i)
	}
	for _, c := range w.calls {
		if c.result == none && !w.kept[c.message] { // groups are kept as a whole
			w.keepMessages(w.withRequests(w.groups[w.groupOf[c.message]])...)
		}
	}
}

// keepLatest keeps groups with their requests while the total is within the
// limit, those that end last first.
func (w *window) keepLatest(limit int) {
	latest := len(w.msgs) - 1
	for i := latest; i >= 0; i-- {
		group := w.groups[w.groupOf[i]]
		if w.kept[i] || group[len(group)-1] != i {
			continue
		}
		more := w.withRequests(group)
		if i < latest && w.totalWith(more) > limit {
			return
		}
		w.keepMessages(more...)
	}
}

// withRequests returns the messages of a group and of the groups of the
// requests before them that are not kept yet: if they were repeated for each
// group, the time would be quadratic.
func (w *window) withRequests(group []int) []int {
	more, last := slices.Clip(group), none
	for _, i := range group {
		request := w.request[i]
		if request == none || request == last || w.requestRank(i) == rankRequest {
			continue
		}
		if last = request; w.groupOf[request] != w.groupOf[i] && !w.kept[request] {
			more = append(more, w.groups[w.groupOf[request]]...)
		}
	}
	return more
}

// totalWith returns the total if the messages were kept as well.
func (w *window) totalWith(messages []int) int {
	total := w.total
	for _, i := range messages {
		if w.kept[i] {
			continue
		}
		if w.counts[i] == none {
			w.counts[i] = max(w.count(w.msgs[i]), 0)
		}
		total = addCounts(total, w.counts[i])
	}
	return total
}

func (w *window) keepMessages(messages ...int) {
	w.total = w.totalWith(messages)
	for _, i := range messages {
		w.kept[i] = true
	}
}

// addCounts adds two counts. The sum saturates instead of overflowing.
func addCounts(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
