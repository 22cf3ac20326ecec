package transcript

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// Pending returns the calls that have no result, in their order. They have to
// be answered before the model is asked again.
func Pending(msgs []state.Message) []state.ToolCall {
	var pending []state.ToolCall
	for _, c := range pairCalls(msgs).calls {
		if c.result == none {
			pending = append(pending, *c.ToolCall)
		}
	}
	return pending
}

// none stands for no message and no call.
const none = -1

// pairing says which result answers which call.
type pairing struct {
	calls     []pairedCall // of all messages, in order
	firstCall []int        // of each message, the number of its first call; then the number of all calls
	answers   []int        // of each message, the number of the call it answers, or none
	keys      int          // the number of different keys of calls and results
}

// pairedCall is a call and the messages that it connects.
type pairedCall struct {
	*state.ToolCall
	message int
	result  int // the message that answers the call, or none
	key     int // the number of its key
}

// callsOf returns the calls of a message.
func (p *pairing) callsOf(message int) []pairedCall {
	return p.calls[p.firstCall[message]:p.firstCall[message+1]]
}

// keyUse is the use of a key by a call or a result. The key is the id that a
// call and its result have in common. The type is small because there are many.
type keyUse struct {
	key     int32 // its number
	call    int32 // the number of the call, or none for a result
	message int32
}

// pairCalls finds the call that each result answers, by place and key: a result
// answers an earlier call, and a key may be used repeatedly.
func pairCalls(msgs []state.Message) pairing {
	p := pairing{
		calls:     make([]pairedCall, 0, len(msgs)/2),
		firstCall: make([]int, 0, len(msgs)+1),
		answers:   make([]int, len(msgs)),
	}
	ids, names := make(map[string]int, len(msgs)/2), map[string]int{}
	keyOf := func(c *state.ToolCall) int {
		numbers, key := ids, c.ID
		if key == "" { // of a provider that gives calls no ids
			numbers, key = names, c.Name
		}
		number, ok := numbers[key]
		if !ok {
			number = len(ids) + len(names)
			numbers[key] = number
		}
		return number
	}
	uses := make([]keyUse, 0, len(msgs))
	for i, m := range msgs {
		p.firstCall, p.answers[i] = append(p.firstCall, len(p.calls)), none
		switch m := m.(type) {
		case state.ToolCallMessage:
			calls := m.Calls()
			for n := range calls {
				c := &calls[n]
				key := keyOf(c)
				uses = append(uses, keyUse{int32(key), int32(len(p.calls)), int32(i)})
				p.calls = append(p.calls, pairedCall{c, i, none, key})
			}
		case state.ToolResultMessage:
			if internal.IsMessage(m) {
				c := m.Call()
				uses = append(uses, keyUse{int32(keyOf(&c)), none, int32(i)})
			}
		}
	}
	p.firstCall, p.keys = append(p.firstCall, len(p.calls)), len(ids)+len(names)

	// The uses of one key alternate between calls and results. The results of a
	// round answer its calls.
	for _, rest := range groupByKey(uses, p.keys) {
		for len(rest) > 0 {
			var calls, results []keyUse
			calls, rest = cutWhile(rest, func(u keyUse) bool { return u.call != none })
			results, rest = cutWhile(rest, func(u keyUse) bool { return u.call == none })
			p.matchRound(msgs, calls, results)
		}
	}
	return p
}

// groupByKey returns the uses of each key in their order. It sorts by counting,
// in two allocations.
func groupByKey(uses []keyUse, keys int) [][]keyUse {
	sizes := make([]int32, keys)
	for _, u := range uses {
		sizes[u.key]++
	}
	room, groups := make([]keyUse, len(uses)), make([][]keyUse, keys)
	for key, size := range sizes {
		groups[key], room = room[:0:size], room[size:]
	}
	for _, u := range uses {
		groups[u.key] = append(groups[u.key], u)
	}
	return groups
}

// cutWhile cuts the uses before the first for which is returns false.
func cutWhile(uses []keyUse, is func(keyUse) bool) (head, tail []keyUse) {
	n := 0
	for n < len(uses) && is(uses[n]) {
		n++
	}
	return uses[:n], uses[n:]
}

// matchRound pairs calls of one key with the results that follow before the key
// is used for a call again.
//
//   - One call is answered by the first result, whatever its name.
//   - Several calls are paired by name. A name decides if it has at least as many
//     results as calls.
//   - If some name does not decide, but there are enough results for all calls,
//     names are useless and the order decides.
//   - Otherwise it is unknown which of the remaining calls are answered: none.
func (p *pairing) matchRound(msgs []state.Message, calls, results []keyUse) {
	if len(calls) == 0 || len(results) == 0 {
		return
	}
	if len(calls) == 1 {
		p.setAnswer(calls[0], results[0])
		return
	}
	callName := func(c keyUse) string { return p.calls[c.call].Name }
	missing := map[string]int{} // by name: calls without a result of that name
	queues := map[string][]keyUse{}
	for _, c := range calls {
		missing[callName(c)]++
	}
	for _, r := range results {
		name := msgs[r.message].(state.ToolResultMessage).Call().Name
		missing[name]--
		queues[name] = append(queues[name], r)
	}
	decided := true
	for _, c := range calls {
		decided = decided && missing[callName(c)] <= 0
	}
	for i, c := range calls {
		name := callName(c)
		switch {
		case !decided && len(results) >= len(calls):
			p.setAnswer(c, results[i])
		case missing[name] <= 0:
			p.setAnswer(c, queues[name][0])
			queues[name] = queues[name][1:]
		}
	}
}

func (p *pairing) setAnswer(call, result keyUse) {
	p.calls[call.call].result = int(result.message)
	p.answers[result.message] = int(call.call)
}
