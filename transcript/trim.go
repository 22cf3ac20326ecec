package transcript

import (
	"math"
	"slices"

	"github.com/agentstate/state"
)

// Trim shortens a conversation. It returns some of the messages, the very same
// ones in their order, in a slice of its own, and leaves the one it gets as it
// is. It may be called by many goroutines.
//
// A Trim of this package drops the oldest groups, as [Groups] has them, and
// keeps the latest, so that a call never loses its result nor a result its call.
// Whatever its limit, it keeps, and counts:
//   - what the system says before anybody else does,
//   - calls that have no result yet, with their group: a result that comes later
//     finds them,
//   - the latest group,
//   - what the user said last before any other message that is kept: the request
//     that it is about.
//
// What a provider accepts it accepts after the Trim too: if [Check] finds nothing
// in the conversation, it finds nothing in what is left of it.
type Trim func([]state.Message) []state.Message

// KeepLast returns the Trim that keeps at most n messages, as long as those that
// are always kept are not more. A negative n is as 0.
func KeepLast(n int) Trim {
	return keep(n, func(state.Message) int { return 1 })
}

// KeepTokens returns the Trim that keeps messages of at most max tokens in all,
// as long as those that are always kept are not more. It calls count at most
// once for each message; a negative count is as 0, and so is a negative max.
// Without a count it takes a token for every four bytes of a message's JSON,
// which is about what English text has.
func KeepTokens(max int, count func(state.Message) int) Trim {
	if count == nil {
		count = func(m state.Message) int {
			if m == nil {
				return 0
			}
			return len(m.Raw())/4 + 1
		}
	}
	return keep(max, count)
}

// Handler returns the handler that appends messages and then trims, for the
// field of the messages. Unlike the default handler, which only appends, it
// copies what is kept with each write.
func (t Trim) Handler() state.Handler[[]state.Message] {
	return state.NewHandler("trim", func(current []state.Message, _ bool, update []state.Message) ([]state.Message, error) {
		return t(slices.Concat(current, update)), nil
	})
}

func keep(limit int, count func(state.Message) int) Trim {
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

// window is what a Trim keeps of a conversation.
type window struct {
	pairing
	msgs    []state.Message
	count   func(state.Message) int
	groups  [][]int
	group   []int  // of each message, the number of its group
	request []int  // of each message, the last the user said before it, or none
	kept    []bool // each message
	counts  []int  // of each message, none if not counted yet
	total   int    // of what is kept
}

func newWindow(msgs []state.Message, count func(state.Message) int) *window {
	n, p := len(msgs), pair(msgs)
	w := &window{
		pairing: p,
		msgs:    msgs,
		count:   count,
		groups:  p.groups(msgs),
		group:   make([]int, n),
		request: make([]int, n),
		kept:    make([]bool, n),
		counts:  make([]int, n),
	}
	for number, group := range w.groups {
		for _, i := range group {
			w.group[i], w.counts[i] = number, none
		}
	}
	last, best := none, 1
	for i := range msgs {
		w.request[i] = last
		if rank := w.asks(i); rank >= best {
			last, best = i, rank
		}
	}
	return w
}

// isRequest reports whether a message is what the user asked for, and its group
// begins with that.
func (w *window) isRequest(i int) bool { return w.asks(i) == asked }

// asks ranks a message as what can stand before others: a request; before there
// is one a result whose call the provider holds; or else an item of the user's.
func (w *window) asks(i int) int {
	if w.groups[w.group[i]][0] != i {
		return 0
	}
	switch m := w.msgs[i].(type) {
	case state.TextMessage:
		if m.Role() == "user" && !isReasoning(m) {
			return asked
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

// asked is the rank of what the user asked for.
const asked = 3

// keepAlways keeps what the system says first, and the calls that wait for their
// results, with what the user asked for before.
func (w *window) keepAlways() {
	for i, m := range w.msgs {
		if !isSystems(m) {
			break
		}
		w.keep(i)
	}
	for _, c := range w.calls {
		if c.result == none {
			w.keep(w.withRequests(w.groups[w.group[c.message]])...)
		}
	}
}

// keepLatest keeps groups from the end, those that end last first, each with what
// the user asked for before, as long as the total is within the limit.
func (w *window) keepLatest(limit int) {
	latest := len(w.msgs) - 1
	for i := latest; i >= 0; i-- {
		group := w.groups[w.group[i]]
		if w.kept[i] || group[len(group)-1] != i {
			continue
		}
		more := w.withRequests(group)
		if i < latest && w.with(more) > limit {
			return
		}
		w.keep(more...)
	}
}

// withRequests returns the messages of a group, and the requests before them
// with their groups.
func (w *window) withRequests(group []int) []int {
	more, last := slices.Clip(group), none
	for _, i := range group {
		request := w.request[i]
		if w.isRequest(i) || request == last || request == none {
			continue
		}
		if last = request; w.group[request] != w.group[i] {
			more = append(more, w.groups[w.group[request]]...)
		}
	}
	return more
}

// with returns the total if the messages were kept too.
func (w *window) with(messages []int) int {
	total := w.total
	for _, i := range messages {
		if !w.kept[i] {
			total = sum(total, w.countOf(i))
		}
	}
	return total
}

func (w *window) keep(messages ...int) {
	w.total = w.with(messages)
	for _, i := range messages {
		w.kept[i] = true
	}
}

func (w *window) countOf(i int) int {
	if w.counts[i] == none {
		w.counts[i] = max(w.count(w.msgs[i]), 0)
	}
	return w.counts[i]
}

// sum adds two counts, and stays at the greatest where they are too much.
func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
