package transcript

import (
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// none stands for no message and no call.
const none = -1

// pairing says which result answers which call.
type pairing struct {
	calls     []pairedCall // of all messages, in order
	firstCall []int        // of each message, the number of its first call; then the number of all calls
	answers   []int        // of each message, the number of the call it answers (of several, one of them), or none
	labels    int          // the number of different labels of calls and results
}

// pairedCall is a call and the messages that it connects.
type pairedCall struct {
	*state.ToolCall
	message int
	result  int // the message that answers the call, or none
	label   int // the number of its label
}

// take makes sure that no other result is given to an open call.
func (c *pairedCall) take() { c.result = c.message }

// unanswered returns what an answer that the repair adds says of its call.
func (c *pairedCall) unanswered() state.ToolCall {
	return state.ToolCall{ID: c.ID, Name: c.Name, Key: c.Key}
}

// callsOf returns the calls of a message.
func (p *pairing) callsOf(message int) []pairedCall {
	return p.calls[p.firstCall[message]:p.firstCall[message+1]]
}

// labelUse is the use of a label by a call or an answer. The label is the id, or
// else the name, that a call and its result have in common. With int in place of
// int32, a pairing takes a quarter more bytes.
type labelUse struct {
	label   int32 // its number
	number  int32 // of the call, or the complement of the number of the answer
	message int32
}

func (u labelUse) isCall() bool { return u.number >= 0 }

// pairCalls finds the call that each result answers, which is an earlier one. If
// both have a Key, that decides. Otherwise place and label do: a label may be used
// repeatedly.
func pairCalls(msgs []state.Message) pairing { return pairExcept(msgs, nil) }

// pairExcept is pairCalls without the calls that have some numbers.
func pairExcept(msgs []state.Message, except map[int]bool) pairing {
	var answer [1]state.ToolCall
	spoken := func(i int) bool { return inside.IsMessage(msgs[i]) && origin.FromAssistant(msgs[i]) }
	return pairAll(len(msgs), except, spoken, func(i int) (calls, answers []state.ToolCall) {
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
// numbers. The calls of a message come before its answers. spoken reports whether
// the assistant says a message.
func pairAll(
	n int, except map[int]bool, spoken func(i int) bool, at func(i int) (calls, answers []state.ToolCall),
) pairing {
	p := pairer{pairing: pairing{
		calls:     make([]pairedCall, 0, n/2),
		firstCall: make([]int, 0, n+1),
		answers:   make([]int, n),
	}}
	for i := range n {
		p.firstCall, p.answers[i] = append(p.firstCall, len(p.calls)), none
		calls, answers := at(i)
		if p.ids == nil && len(calls)+len(answers) > 0 { // many conversations have none
			p.grow(n)
		}
		for k := range calls {
			p.addCall(i, &calls[k], except)
		}
		for k := range answers {
			p.addAnswer(i, &answers[k], except)
		}
	}
	p.firstCall, p.labels = append(p.firstCall, len(p.calls)), len(p.ids)+len(p.names)
	p.uses = slices.DeleteFunc(p.uses, func(u labelUse) bool { return u.isCall() && p.calls[u.number].result != none })
	p.matchLabels()
	p.matchTurns(lastTurn{n: n, spoken: spoken, except: except})
	return p.pairing
}

// pairer is a pairing that is being made. First it decides by keys, and notes which
// labels the other calls and answers have.
type pairer struct {
	pairing
	keys        keyIndex
	ids, names  map[string]int // the numbers of labels; nil as long as there are none
	uses        []labelUse
	answerNames []string       // of the answers that have a use
	strangers   map[int32]bool // the numbers of those that have a key which no call has
}

// grow makes room for the labels of n messages.
func (p *pairer) grow(n int) {
	p.ids, p.names = make(map[string]int, n/2), map[string]int{}
	p.uses, p.answerNames = make([]labelUse, 0, n), make([]string, 0, n/2)
}

// labelOf returns the number of the label of a call or an answer.
func (p *pairer) labelOf(c *state.ToolCall) int {
	numbers, label := p.ids, c.ID
	if label == "" { // of a provider that gives calls no ids
		numbers, label = p.names, c.Name
	}
	number, ok := numbers[label]
	if !ok {
		number = len(p.ids) + len(p.names)
		numbers[label] = number
	}
	return number
}

// addCall adds a call of a message.
func (p *pairer) addCall(message int, c *state.ToolCall, except map[int]bool) {
	number, label := len(p.calls), p.labelOf(c)
	if !except[number] {
		p.uses = append(p.uses, labelUse{int32(label), int32(number), int32(message)})
	}
	p.calls = append(p.calls, pairedCall{c, message, none, label})
}

// addAnswer adds what a message answers.
func (p *pairer) addAnswer(message int, a *state.ToolCall, except map[int]bool) {
	number, decided := p.keys.callOf(p.calls, a)
	if decided {
		if number != none && !except[number] && p.calls[number].result == none {
			p.calls[number].result, p.answers[message] = message, number
		}
		return
	}
	var label int
	if number != none {
		label = p.calls[number].label
	} else {
		label = p.labelOf(a)
	}
	answer := int32(len(p.answerNames))
	if a.Key != "" {
		if p.strangers == nil {
			p.strangers = map[int32]bool{}
		}
		p.strangers[answer] = true
	}
	p.uses = append(p.uses, labelUse{int32(label), ^answer, int32(message)})
	p.answerNames = append(p.answerNames, a.Name)
}

// matchTurns lets results without ids answer calls of the turn before them that have
// one: Gemini takes a result without the id of its call.
func (p *pairer) matchTurns(turn lastTurn) {
	if len(p.names) == 0 {
		return
	}
	for _, u := range slices.Clone(p.uses) {
		if u.isCall() || p.answers[u.message] != none || p.strangers[^u.number] {
			continue
		}
		name := p.answerNames[^u.number]
		label, isUnnamed := p.names[name]
		if isUnnamed && label == int(u.label) && turn.answer(&p.pairing, name, int(u.message)) {
			p.matchAgain(&turn)
		}
	}
	if len(turn.answered) > 0 { // its calls no longer wait beside others with their ids
		p.matchAgain(&turn)
	}
}

// matchAgain pairs by labels what is not a result without an id, and its call.
func (p *pairer) matchAgain(turn *lastTurn) {
	p.uses = slices.DeleteFunc(p.uses, func(u labelUse) bool {
		if u.isCall() {
			return turn.answered[int(u.number)]
		}
		number := p.answers[u.message]
		return number != none && turn.answered[number]
	})
	for _, u := range p.uses {
		if u.isCall() {
			p.calls[u.number].result = none
		} else {
			p.answers[u.message] = none
		}
	}
	p.matchLabels()
	turn.calls = 0
}

// matchLabels pairs calls and answers by their labels.
func (p *pairer) matchLabels() {
	// The uses of one label alternate between calls and answers. The answers of a
	// round are those of its calls.
	for _, rest := range groupByLabel(p.uses, p.labels) {
		for len(rest) > 0 {
			var calls, answers []labelUse
			calls, rest = cutWhile(rest, labelUse.isCall)
			answers, rest = cutWhile(rest, func(u labelUse) bool { return !u.isCall() })
			if len(p.strangers) > 0 { // they answer no call that has a key
				others, own := splitUses(answers, func(u labelUse) bool { return p.strangers[^u.number] })
				unkeyed, _ := splitUses(calls, func(u labelUse) bool { return p.calls[u.number].Key == "" })
				p.matchRound(unkeyed, others)
				calls, _ = splitUses(calls, func(u labelUse) bool { return p.calls[u.number].result == none })
				answers = own
			}
			p.matchRound(calls, answers)
		}
	}
}

// lastTurn are the open calls of the turn of the assistant before some results.
type lastTurn struct {
	n      int // messages
	spoken func(i int) bool
	except map[int]bool

	calls    int              // of the conversation, up to its end; 0 if it is to be looked at
	open     map[string][]int // the numbers of its calls, by their names
	answered map[int]bool     // the numbers of the calls of all turns
	labels   []int            // how many calls have a label; nil until a result is found
}

// answer lets a result without an id answer the first open call of its name in the
// turn before it, also if the call has an id: that of a functionResponse is
// optional. It reports whether other calls have the label of the call, so that what
// their results answer is to be decided again.
func (t *lastTurn) answer(p *pairing, name string, message int) bool {
	end := p.firstCall[message]
	if end == 0 {
		return false
	}
	if t.calls != end {
		t.find(p, message, end)
	}
	open := t.open[name]
	if len(open) == 0 {
		return false
	}
	t.open[name] = open[1:]
	call := &p.calls[open[0]]
	if call.result != none { // a result of a later turn
		p.answers[call.result] = none
	}
	call.result, p.answers[message] = message, open[0]
	if t.answered == nil {
		t.answered = map[int]bool{}
	}
	t.answered[open[0]] = true
	if t.labels == nil {
		t.labels = make([]int, p.labels)
		for _, c := range p.calls {
			t.labels[c.label]++
		}
	}
	return t.labels[call.label] > 1
}

// find finds the calls of the turn before a result that no result before the next turn
// answers. end is the number of the calls before it.
func (t *lastTurn) find(p *pairing, message, end int) {
	t.calls, t.open = end, map[string][]int{}
	first, next := p.calls[end-1].message, message
	for first > 0 && t.spoken(first-1) {
		first--
	}
	for next < t.n && !t.spoken(next) {
		next++
	}
	unnamed := map[string]bool{} // open calls without ids, by name: it is unknown which of them is answered
	for number := p.firstCall[first]; number < end; number++ {
		switch c := p.calls[number]; {
		case c.result != none && c.result < next, t.answered[number]:
		case c.ID == "":
			unnamed[c.Name] = true
		case !t.except[number]:
			t.open[c.Name] = append(t.open[c.Name], number)
		}
	}
	maps.DeleteFunc(t.open, func(name string, _ []int) bool { return unnamed[name] })
}

// keyIndex finds calls by their keys. It is filled when one is looked up.
type keyIndex struct {
	byKey   map[string]int // the numbers of the calls
	indexed int            // how many of them
}

// callOf returns the number of the call that an answer names, or none, and
// whether its Key decides that. Otherwise the label does: the number is then
// that of one of the last calls with the id, or none. Most results follow their
// calls, and the maps of a long conversation do not fit into the caches of a
// processor.
func (x *keyIndex) callOf(calls []pairedCall, a *state.ToolCall) (number int, decided bool) {
	for k := len(calls) - 1; k >= max(0, len(calls)-recentCalls); k-- {
		switch c := calls[k]; {
		case a.Key != "" && a.Key == c.Key:
			return k, true
		case a.Key == "" && a.ID != "" && a.ID == c.ID:
			return k, false
		}
	}
	if a.Key == "" {
		return none, false
	}
	if x.byKey == nil {
		x.byKey = make(map[string]int, len(calls))
	}
	for ; x.indexed < len(calls); x.indexed++ {
		x.byKey[calls[x.indexed].Key] = x.indexed
	}
	if number, ok := x.byKey[a.Key]; ok {
		return number, true
	}
	_, unkeyed := x.byKey[""]
	return none, !unkeyed
}

const recentCalls = 4

// groupByLabel returns the uses of each label in their order. It sorts by counting,
// in two allocations.
func groupByLabel(uses []labelUse, labels int) [][]labelUse {
	sizes := make([]int32, labels)
	for _, u := range uses {
		sizes[u.label]++
	}
	room, groups := make([]labelUse, len(uses)), make([][]labelUse, labels)
	for label, size := range sizes {
		groups[label], room = room[:0:size], room[size:]
	}
	for _, u := range uses {
		groups[u.label] = append(groups[u.label], u)
	}
	return groups
}

// splitUses returns the uses for which is returns true, and the others.
func splitUses(uses []labelUse, is func(labelUse) bool) (yes, no []labelUse) {
	for _, u := range uses {
		if is(u) {
			yes = append(yes, u)
		} else {
			no = append(no, u)
		}
	}
	return yes, no
}

// cutWhile cuts the uses before the first for which is returns false.
func cutWhile(uses []labelUse, is func(labelUse) bool) (head, tail []labelUse) {
	n := 0
	for n < len(uses) && is(uses[n]) {
		n++
	}
	return uses[:n], uses[n:]
}

// matchRound pairs calls of one label with the results that follow before the
// label is used for a call again.
//
//   - One call is answered by the first result, whatever its name.
//   - Several calls are paired by name. A name decides if it has at least as many
//     results as calls.
//   - If some name does not decide, but there are enough results for all calls,
//     names are useless and the order decides.
//   - Otherwise it is unknown which of the remaining calls are answered: none.
func (p *pairer) matchRound(calls, results []labelUse) {
	if len(calls) == 0 || len(results) == 0 {
		return
	}
	if len(calls) == 1 {
		p.setAnswer(calls[0], results[0])
		return
	}
	callName := func(c labelUse) string { return p.calls[c.number].Name }
	missing := map[string]int{} // by name: calls without a result of that name
	queues := map[string][]labelUse{}
	for _, c := range calls {
		missing[callName(c)]++
	}
	for _, r := range results {
		name := p.answerNames[^r.number]
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

func (p *pairer) setAnswer(call, result labelUse) {
	p.calls[call.number].result = int(result.message)
	p.answers[result.message] = int(call.number)
}
