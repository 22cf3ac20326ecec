package state

import (
	"iter"
	"reflect"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/persist"
)

// resultStack is an immutable stack of results. The messages of all results are
// in one table, in which each message occurs once. A result refers to runs of
// the table.
type resultStack struct {
	table   *persist.List // []Message
	results *persist.List // []*stackedResult
	index   persist.Map[int]
	popped  int // results popped since the table was made
}

type stackedResult struct {
	id, agent, input, raw           string
	prompt, history, output, called []messageRun
	created                         time.Time
	size                            int // towards limits
	// origin identifies the result on stacks that come from one another: it
	// stays the same when calls are answered.
	origin uint64
}

// messageRun is a part of the table: from one index up to, not including,
// another.
type messageRun struct{ from, to int }

// resultRef is a result on a stack.
type resultRef struct {
	stack  *resultStack
	result *stackedResult
}

// same reports whether two results, which may be on different stacks, are equal.
func (r resultRef) same(o resultRef) bool {
	return r.result == o.result || r.stack.result(r.result).equal(o.stack.result(o.result))
}

var emptyStack = newResultStack()

func newResultStack() *resultStack {
	return &resultStack{
		table:   persist.NewList(reflect.TypeFor[[]Message]()),
		results: persist.NewList(reflect.TypeFor[[]*stackedResult]()),
	}
}

// clone returns a stack whose table can grow independently.
func (st *resultStack) clone() *resultStack {
	c := &resultStack{table: st.table, results: st.results, popped: st.popped}
	st.index.Share(&c.index)
	return c
}

func (st *resultStack) len() int { return st.results.Len() }

func (st *resultStack) at(i int) *stackedResult {
	return st.results.Index(i).Interface().(*stackedResult)
}

func (st *resultStack) message(i int) Message { return st.table.Index(i).Interface().(Message) }

// all yields the results, oldest first.
func (st *resultStack) all() iter.Seq[*stackedResult] {
	return func(yield func(*stackedResult) bool) {
		for i := range st.len() {
			if !yield(st.at(i)) {
				return
			}
		}
	}
}

// push returns the stack with one more result. origin is that of the result if
// it was on a stack before, or 0.
func (st *resultStack) push(r *InferenceResult, origin uint64) *resultStack {
	next := st.clone()
	owner := persist.NewOwner()
	called := make([]Message, len(r.ToolCalls))
	for i, m := range r.ToolCalls {
		called[i] = m
	}
	if origin == 0 {
		origin = owner
	}
	pushed := &stackedResult{
		id: r.ID, agent: r.Agent, input: r.Input, raw: r.Raw, created: r.CreatedAt, size: r.size(), origin: origin,
		prompt:  next.intern(owner, r.Prompt),
		history: next.intern(owner, r.History),
		output:  next.intern(owner, r.Output),
		called:  next.intern(owner, called),
	}
	next.results = st.results.Append([]*stackedResult{pushed}, 0)
	return next
}

// intern returns messages as runs of the table, to which it adds the messages
// that are not in it. Only the maker of a stack may call it.
func (st *resultStack) intern(owner uint64, msgs []Message) []messageRun {
	var runs []messageRun
	for _, m := range msgs {
		next := -1 // the place after the last run, where m often is
		if n := len(runs); n > 0 {
			next = runs[n-1].to
		}
		at := next
		if next < 0 || next >= st.table.Len() || !sameMessage(st.message(next), m) {
			at = st.find(owner, m)
		}
		if at == next {
			runs[len(runs)-1].to++
		} else {
			runs = append(runs, messageRun{at, at + 1})
		}
	}
	return runs
}

// find returns the index of a message in the table, to which it adds the
// message if it is not in it.
func (st *resultStack) find(owner uint64, m Message) int {
	key := strconv.FormatUint(m.hash(), 36)
	if i := st.index.Get(key); i != nil && sameMessage(st.message(*i), m) {
		return *i
	}
	at := st.table.Len()
	st.table = st.table.Append([]Message{m}, 0)
	st.index.Set(owner, key, &at)
	return at
}

// answer returns the stack with answers to calls of one of its results. It
// reports false if the result is not on the stack, or a call is answered.
func (st *resultStack) answer(a *answers) (*resultStack, bool) {
	i := st.len() - 1
	for i >= 0 && st.at(i).origin != a.origin {
		i--
	}
	if i < 0 {
		return nil, false
	}
	r := *st.at(i)
	called, ok := a.insertInto(st.messages(r.called))
	if !ok {
		return nil, false
	}
	next := st.clone()
	r.called = next.intern(persist.NewOwner(), called)
	r.size += a.size()
	later := st.results.Slice(i+1, st.len())
	next.results = st.results.Take(i, 0).Append([]*stackedResult{&r}, 0).Append(later, 0)
	return next, true
}

// pop returns the stack without its last result. When more results have been
// popped than remain, it makes a new table: the messages of popped results do
// not stay permanently.
func (st *resultStack) pop() *resultStack {
	n := st.len() - 1
	next := st.clone()
	next.popped++
	next.results = st.results.Take(n, 0)
	if next.popped <= n {
		return next
	}
	fresh := newResultStack()
	for r := range next.all() {
		full := st.result(r)
		fresh = fresh.push(&full, r.origin)
	}
	return fresh
}

// result returns a result with its messages.
func (st *resultStack) result(r *stackedResult) InferenceResult {
	called := st.messages(r.called)
	out := InferenceResult{
		ID: r.id, Agent: r.agent, Input: r.input, Raw: r.raw, CreatedAt: r.created,
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
		for part := range st.table.Runs(r.from, r.to) {
			msgs = append(msgs, part.Interface().([]Message)...)
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
