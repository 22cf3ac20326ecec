package transcript

import "github.com/agentstate/state"

// none stands for no message and no call.
const none = -1

// pairing tells which result answers which call.
type pairing struct {
	calls   []call // of all messages, in order
	first   []int  // of each message, the number of its first call; and the number of all
	answers []int  // of each message that is a result, the number of the call it answers, or none
	keys    int    // how many there are
}

// call is a call and where it is.
type call struct {
	*state.ToolCall
	message int
	result  int // the message that answers it, or none
	key     int // the number of its key
}

// of returns the calls of a message.
func (p *pairing) of(message int) []call {
	return p.calls[p.first[message]:p.first[message+1]]
}

// use is one use, by a call or by a result, of a key: of the id that they have in
// common.
type use struct { // small, as there are many
	key     int32 // its number
	call    int32 // its number, or none
	message int32
}

// pair finds the calls that results answer, by their place and their ids: one
// id may be used again and again. A result answers a call that comes before it,
// wherever what lies between them.
func pair(msgs []state.Message) pairing {
	p := pairing{
		calls:   make([]call, 0, len(msgs)/2),
		first:   make([]int, 0, len(msgs)+1),
		answers: make([]int, len(msgs)),
	}
	ids, names := make(map[string]int, len(msgs)/2), map[string]int{}
	uses := make([]use, 0, len(msgs))
	add := func(c *state.ToolCall, u use) int {
		// Some providers give calls no id; then it is the name that counts.
		numbers, key := ids, c.ID
		if key == "" {
			numbers, key = names, c.Name
		}
		number, ok := numbers[key]
		if !ok {
			number = len(ids) + len(names)
			numbers[key] = number
		}
		u.key = int32(number)
		uses = append(uses, u)
		return number
	}
	for i, m := range msgs {
		p.first, p.answers[i] = append(p.first, len(p.calls)), none
		switch m := m.(type) {
		case state.ToolCallMessage:
			calls := m.Calls()
			for n := range calls {
				c := &calls[n]
				key := add(c, use{call: int32(len(p.calls)), message: int32(i)})
				p.calls = append(p.calls, call{c, i, none, key})
			}
		case state.ToolResultMessage:
			if m.Raw() != "" {
				c := m.Call()
				add(&c, use{call: none, message: int32(i)})
			}
		}
	}
	p.first, p.keys = append(p.first, len(p.calls)), len(ids)+len(names)

	for _, same := range byKey(uses, p.keys) {
		for len(same) > 0 {
			calls := span(same, func(u use) bool { return u.call != none })
			same = same[len(calls):]
			results := span(same, func(u use) bool { return u.call == none })
			same = same[len(results):]
			p.match(msgs, calls, results)
		}
	}
	return p
}

// byKey returns the uses of each key, in their order.
func byKey(uses []use, keys int) [][]use {
	sizes := make([]int32, keys)
	for _, u := range uses {
		sizes[u.key]++
	}
	all, sorted := make([]use, len(uses)), make([][]use, keys)
	for k, size := range sizes {
		sorted[k], all = all[:0:size], all[size:]
	}
	for _, u := range uses {
		sorted[u.key] = append(sorted[u.key], u)
	}
	return sorted
}

// span returns the longest beginning of which all are so.
func span(uses []use, so func(use) bool) []use {
	for i, u := range uses {
		if !so(u) {
			return uses[:i]
		}
	}
	return uses
}

// match pairs calls of one key, none of them answered, with the results that
// follow until the key is used for a call again. If there are fewer results
// than calls, it is open which calls they answer, and they answer none, unless
// the names tell.
func (p *pairing) match(msgs []state.Message, calls, results []use) {
	if len(calls) == 0 || len(results) == 0 {
		return
	}
	if len(calls) == 1 {
		p.answer(calls[0].call, results[0].message)
		return
	}
	name := func(result use) string {
		return msgs[result.message].(state.ToolResultMessage).Call().Name
	}
	open := map[string]int{} // calls of a name that have no result of that name
	for _, c := range calls {
		open[p.calls[c.call].Name]++
	}
	for _, r := range results {
		open[name(r)]--
	}
	told := true
	for _, c := range calls {
		told = told && open[p.calls[c.call].Name] <= 0
	}
	if !told && len(results) >= len(calls) { // the names are of no use
		for i, c := range calls {
			p.answer(c.call, results[i].message)
		}
		return
	}
	queues := map[string][]use{}
	for _, r := range results {
		queues[name(r)] = append(queues[name(r)], r)
	}
	for _, c := range calls {
		called := p.calls[c.call].Name
		if queue := queues[called]; open[called] <= 0 && len(queue) > 0 {
			p.answer(c.call, queue[0].message)
			queues[called] = queue[1:]
		}
	}
}

func (p *pairing) answer(number, result int32) {
	p.calls[number].result, p.answers[result] = int(result), int(number)
}
