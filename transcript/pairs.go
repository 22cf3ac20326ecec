package transcript

import (
	"github.com/agentstate/state"
)

// none stands for no message and no call.
const none = -1

// pairing says which result answers which call.
type pairing struct {
	calls     []pairedCall // of all messages, in order
	firstCall []int        // of each message, the number of its first call; then the number of all calls
	answers   []int        // of each message, the number of the call it answers (of several, one of them), or none
	keys      int          // the number of different keys of calls and results
}

// pairedCall is a call and the messages that it connects.
type pairedCall struct {
	*state.ToolCall
	message int
	result  int // the message that answers the call, or none
	key     int // the number of its key
}

// take makes sure that no other result is given to an open call.
func (c *pairedCall) take() { c.result = c.message }

// unanswered returns what an answer that the repair adds says of its call.
func (c *pairedCall) unanswered() state.ToolCall { return state.ToolCall{ID: c.ID, Name: c.Name} }

// callsOf returns the calls of a message.
func (p *pairing) callsOf(message int) []pairedCall {
	return p.calls[p.firstCall[message]:p.firstCall[message+1]]
}

// keyUse is the use of a key by a call or an answer. The key is the id that a
// call and its result have in common. The type is small because there are many.
type keyUse struct {
	key     int32 // its number
	number  int32 // of the call, or the complement of the number of the answer
	message int32
}

func (u keyUse) isCall() bool { return u.number >= 0 }

// pairCalls finds the call that each result answers, by place and key: a result
// answers an earlier call, and a key may be used repeatedly.
func pairCalls(msgs []state.Message) pairing { return pairExcept(msgs, nil) }

// pairExcept is pairCalls without the calls that have some numbers.
func pairExcept(msgs []state.Message, except map[int]bool) pairing {
	var answer [1]state.ToolCall
	return pairAll(len(msgs), except, func(i int) (calls, answers []state.ToolCall) {
		switch m := msgs[i].(type) {
		case state.ToolCallMessage:
			return sharedCalls(m), nil
		case state.ToolResultMessage:
			if inside.IsMessage(m) {
				answer[0] = m.Call()
				return nil, answer[:]
			}
		}
		return nil, nil
	})
}

// pairAll pairs the calls and the answers of n messages, which at returns. It
// retains the calls and not the answers, and leaves out the calls that have some
// numbers. The calls of a message come before its answers.
func pairAll(n int, except map[int]bool, at func(i int) (calls, answers []state.ToolCall)) pairing {
	p := pairing{
		calls:     make([]pairedCall, 0, n/2),
		firstCall: make([]int, 0, n+1),
		answers:   make([]int, n),
	}
	var ids, names map[string]int
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
	var uses []keyUse
	var answerNames []string
	for i := range n {
		p.firstCall, p.answers[i] = append(p.firstCall, len(p.calls)), none
		calls, answers := at(i)
		if ids == nil && len(calls)+len(answers) > 0 { // many conversations have none
			ids, names = make(map[string]int, n/2), map[string]int{}
			uses, answerNames = make([]keyUse, 0, n), make([]string, 0, n/2)
		}
		for k := range calls {
			c, number := &calls[k], len(p.calls)
			key := keyOf(c)
			if !except[number] {
				uses = append(uses, keyUse{int32(key), int32(number), int32(i)})
			}
			p.calls = append(p.calls, pairedCall{c, i, none, key})
		}
		for k := range answers {
			a := &answers[k]
			key := p.recentKey(a.ID)
			if key == none {
				key = keyOf(a)
			}
			uses = append(uses, keyUse{int32(key), ^int32(len(answerNames)), int32(i)})
			answerNames = append(answerNames, a.Name)
		}
	}
	p.firstCall, p.keys = append(p.firstCall, len(p.calls)), len(ids)+len(names)

	// The uses of one key alternate between calls and answers. The answers of a
	// round are those of its calls.
	for _, rest := range groupByKey(uses, p.keys) {
		for len(rest) > 0 {
			var calls, answers []keyUse
			calls, rest = cutWhile(rest, keyUse.isCall)
			answers, rest = cutWhile(rest, func(u keyUse) bool { return !u.isCall() })
			p.matchRound(answerNames, calls, answers)
		}
	}
	return p
}

// recentKey returns the key of an id if one of the last calls has it, or none.
// Most results follow their calls, and the map of a long conversation does not
// fit into the caches of a processor.
func (p *pairing) recentKey(id string) int {
	for k := len(p.calls) - 1; k >= max(0, len(p.calls)-recentCalls) && id != ""; k-- {
		if p.calls[k].ID == id {
			return p.calls[k].key
		}
	}
	return none
}

const recentCalls = 4

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
func (p *pairing) matchRound(answerNames []string, calls, results []keyUse) {
	if len(calls) == 0 || len(results) == 0 {
		return
	}
	if len(calls) == 1 {
		p.setAnswer(calls[0], results[0])
		return
	}
	callName := func(c keyUse) string { return p.calls[c.number].Name }
	missing := map[string]int{} // by name: calls without a result of that name
	queues := map[string][]keyUse{}
	for _, c := range calls {
		missing[callName(c)]++
	}
	for _, r := range results {
		name := answerNames[^r.number]
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
	p.calls[call.number].result = int(result.message)
	p.answers[result.message] = int(call.number)
}
