package state

import (
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state/internal/persist"
)

// resultStack is an immutable stack of results. The messages of all results are
// in one table, in which each message occurs once. A result refers to runs of
// the table.
type resultStack struct {
	table   messageTable
	results persist.Sequence[*stackedResult]

	// own has the places of the results of each agent in classes: of those that
	// see no other results.
	classes map[string]int
	own     persist.Map[ownResults]

	// What the results take, and what the table and popped results take in
	// addition, in bytes.
	shown, held int
}

type ownResults struct{ places persist.Sequence[int32] }

type stackedResult struct {
	id, agent, input, raw, stopWord string
	stop                            Stop
	usage                           Usage
	prompt, history, output, called []messageRun
	started, created                time.Time
	size                            int // towards limits
	weight                          int // what it adds to the stack, in bytes
	// origin identifies the result on stacks that come from one another: it
	// stays the same when calls are answered.
	origin uint64

	few [2]messageRun // the array of the runs of a result that has few
}

// resultRef is a result on a stack.
type resultRef struct {
	stack  *resultStack
	result *stackedResult
}

// last returns the result on top.
func (st *resultStack) last() resultRef { return resultRef{st, st.at(st.len() - 1)} }

// same reports whether two results, which may be on different stacks, are equal.
func (r resultRef) same(o resultRef) bool {
	return r.result == o.result || r.stack.result(r.result).equal(o.stack.result(o.result))
}

// newResultStack returns the empty stack of a history. classes has the agents
// that see no results but their own.
func newResultStack(classes map[string]int) *resultStack { return &resultStack{classes: classes} }

// clone returns a stack that can grow independently.
func (st *resultStack) clone() *resultStack {
	c := &resultStack{table: st.table, results: st.results, classes: st.classes, shown: st.shown, held: st.held}
	if len(st.classes) > 0 {
		st.own.Share(&c.own)
	}
	return c
}

func (st *resultStack) len() int { return st.results.Len() }

func (st *resultStack) at(i int) *stackedResult { return st.results.At(i) }

// all yields the results, oldest first.
func (st *resultStack) all() iter.Seq[*stackedResult] {
	return func(yield func(*stackedResult) bool) {
		for _, r := range st.results.All() {
			if !yield(r) {
				return
			}
		}
	}
}

// push returns the stack with one more result. origin is that of the result if
// it was on a stack before, or 0.
func (st *resultStack) push(r *InferenceResult, origin uint64) *resultStack {
	next := st.clone()
	if origin == 0 {
		origin = persist.NewOwner()
	}
	pushed := &stackedResult{
		id: r.ID, agent: r.Agent, input: r.Input, raw: r.Raw, usage: r.Usage, size: r.size(), origin: origin,
		stop: r.Stop, stopWord: r.StopWord,
		started: r.StartedAt, created: r.CreatedAt,
	}
	var prompt, history []messageRun // of the result before, which those of this one often continue
	if n := st.len(); n > 0 {
		before := st.at(n - 1)
		prompt, history = before.prompt, before.history
	}
	in := interner{table: &next.table, runs: pushed.few[:0], next: -1}
	in.list(r.Prompt, prompt)
	in.next, in.guide = -1, nil
	historyAt := in.list(r.History, history)
	outputAt := in.list(r.Output, nil)
	calledAt := len(in.runs)
	in.begin = calledAt
	for _, m := range r.ToolCalls {
		in.add(m)
	}
	runs := in.runs
	pushed.prompt, pushed.history = runs[:historyAt:historyAt], runs[historyAt:outputAt:outputAt]
	pushed.output, pushed.called = runs[outputAt:calledAt:calledAt], runs[calledAt:]
	pushed.weight = pushed.textBytes() + in.bytes
	next.add(pushed)
	return next
}

// textBytes is what a result takes besides its messages, about.
func (r *stackedResult) textBytes() int {
	return len(r.id) + len(r.agent) + len(r.input) + len(r.stop) + len(r.stopWord) + len(r.raw) + 256
}

// add puts a result on top of a stack that no other code has seen yet.
func (st *resultStack) add(r *stackedResult) {
	if _, ok := st.classes[r.agent]; ok {
		own := &ownResults{}
		if before := st.own.Get(r.agent); before != nil {
			own.places = before.places
		}
		own.places = own.places.Append(int32(st.len()))
		st.own.Set(persist.NewOwner(), r.agent, own)
	}
	st.results = st.results.Append(r)
	st.shown += r.weight
	st.held += r.weight
}

// intern returns messages as runs of the table, to which it adds the messages
// that are not in it. Only the maker of a stack may call it.
func (st *resultStack) intern(msgs []Message) []messageRun {
	in := interner{table: &st.table, next: -1}
	if n := st.len(); n > 0 && len(msgs) > 0 {
		in.start(msgs[0], st.at(n-1).history)
	}
	in.list(msgs, nil)
	return in.runs
}

// callsOf returns which calls of a result have answers.
func (st *resultStack) callsOf(r *stackedResult) *callMatcher {
	m := newMatcher(callsIn(st.messages(r.output)))
	for _, called := range st.messages(r.called) {
		m.numbers = append(m.numbers, m.take(called))
	}
	return m
}

// answer returns the stack with answers to calls of one of its results. It
// reports false if the result is not on the stack, or if a call has an answer
// already and there is no other call that the answer fits.
func (st *resultStack) answer(a *answers) (*resultStack, bool) {
	i := st.len() - 1
	for i >= 0 && st.at(i).origin != a.origin {
		i--
	}
	if i < 0 {
		return nil, false
	}
	r := *st.at(i)
	calls := st.callsOf(&r)
	next := st.clone()
	places := placesIn(r.called, len(a.given))
	for _, given := range a.given {
		call := given.call
		if calls.taken[call] {
			if call, _ = calls.match(given.message.Call()); call < 0 {
				return nil, false
			}
		}
		calls.taken[call] = true
		place, added := next.table.find(given.message)
		if added {
			bytes := tableBytes(given.message)
			r.weight += bytes
			next.shown += bytes
			next.held += bytes
		}
		at := placeOf(calls.numbers, call)
		calls.numbers, places = slices.Insert(calls.numbers, at, call), slices.Insert(places, at, place)
	}
	r.called = runsOf(places)
	r.size += a.size()
	next.results = st.results.Take(i).Append(&r)
	for later := range st.results.Runs(i+1, st.len()) {
		for _, r := range later {
			next.results = next.results.Append(r)
		}
	}
	return next, true
}

// pop returns the stack without its last result. What is kept of popped results
// is at most as large as what remains.
func (st *resultStack) pop() *resultStack {
	n := st.len() - 1
	if n == 0 {
		return newResultStack(st.classes)
	}
	next, popped := st.clone(), st.at(n)
	next.results = st.results.Take(n)
	next.shown -= popped.weight
	if own := st.own.Get(popped.agent); own != nil {
		next.own.Set(persist.NewOwner(), popped.agent, &ownResults{own.places.Take(own.places.Len() - 1)})
	}
	return next.bounded()
}

// keep returns the stack with some of its results, by their indexes. What is
// kept of the others is at most as large as what remains.
func (st *resultStack) keep(indexes []int) *resultStack {
	next := newResultStack(st.classes)
	next.table = st.table
	next.results = persist.NewSequence[*stackedResult](len(indexes) + 1) // and the one that a run adds
	for _, i := range indexes {
		next.add(st.at(i))
	}
	next.held = st.held
	return next.bounded()
}

// bounded returns the stack, or an equal one if most of what it holds belongs to
// results that it does not have any more.
func (st *resultStack) bounded() *resultStack {
	const slack = 4 << 10
	if st.held <= 2*st.shown+slack {
		return st
	}
	return st.compact()
}

// compact returns the stack with a table of the messages that its results
// refer to.
func (st *resultStack) compact() *resultStack {
	c := newResultStack(st.classes)
	c.results = persist.NewSequence[*stackedResult](st.len() + 1)
	places := make([]int32, st.table.len()) // in the table of c, plus 1
	var moved []messageRun                  // of all results, which share its array
	for r := range st.all() {
		copied := *r
		copied.weight = copied.textBytes()
		for _, runs := range []*[]messageRun{&copied.prompt, &copied.history, &copied.output, &copied.called} {
			moved = moved[len(moved):]
			for _, run := range *runs {
				for old := run.from; old < run.to; old++ {
					if places[old] == 0 {
						m := st.table.at(old)
						places[old] = int32(c.table.add(m)) + 1
						copied.weight += tableBytes(m)
					}
					place := int(places[old]) - 1
					if last := len(moved) - 1; last >= 0 && moved[last].to == place {
						moved[last].to++
					} else {
						moved = append(moved, messageRun{place, place + 1})
					}
				}
			}
			*runs = moved[:len(moved):len(moved)]
		}
		c.add(&copied)
	}
	return c
}

// result returns a result with its messages.
func (st *resultStack) result(r *stackedResult) InferenceResult {
	called := st.messages(r.called)
	out := InferenceResult{
		ID: r.id, Agent: r.agent, Input: r.input, Raw: r.raw, Stop: r.stop, StopWord: r.stopWord, Usage: r.usage,
		StartedAt: r.started, CreatedAt: r.created,
		Prompt:    st.messages(r.prompt),
		History:   st.messages(r.history),
		Output:    st.messages(r.output),
		ToolCalls: make([]ToolResultMessage, len(called)),
	}
	for i, m := range called {
		out.ToolCalls[i] = m.(ToolResultMessage)
	}
	return out
}

func (st *resultStack) messages(runs []messageRun) []Message {
	n := 0
	for _, r := range runs {
		n += r.to - r.from
	}
	msgs := make([]Message, 0, n)
	for _, r := range runs {
		for part := range st.table.messages.Runs(r.from, r.to) {
			msgs = append(msgs, part...)
		}
	}
	return msgs
}

// equal reports whether two stacks hold the same results. Stacks that come from
// one another share most of them.
func (st *resultStack) equal(o *resultStack) bool {
	if st == o {
		return true
	}
	if st.len() != o.len() {
		return false
	}
	for i := st.len() - 1; i >= 0; i-- {
		if !(resultRef{st, st.at(i)}).same(resultRef{o, o.at(i)}) {
			return false
		}
	}
	return true
}
