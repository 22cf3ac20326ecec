package state

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/persist"
)

// stack is an immutable stack of results. The messages of all results are in one
// table, each once; a result refers to runs of it.
type stack struct {
	table   *persist.List // []Message
	results *persist.List // []*stackedResult
	index   persist.Map[int]
	popped  int // results popped since the table was made
}

type stackedResult struct {
	id, agent, input, raw           string
	prompt, history, output, called []run
	created                         time.Time
}

// run is a part of the table.
type run struct{ from, to int }

// resultRef is a result on a stack.
type resultRef struct {
	stack  *stack
	result *stackedResult
}

// historySpec and pushing make the stack look like a field to the branch.
var (
	historySpec = &spec{slot: historySlot, name: historyName, handler: pushing, typ: reflect.TypeFor[*stack]()}
	pushing     = &handler{name: "push", kind: pushes}
)

var emptyStack = newStack()

func newStack() *stack {
	return &stack{
		table:   persist.NewList(reflect.TypeFor[[]Message]()),
		results: persist.NewList(reflect.TypeFor[[]*stackedResult]()),
	}
}

func stackOf(e *entry) *stack {
	if e == nil {
		return emptyStack
	}
	return e.value.(*stack)
}

func (st *stack) at(i int) *stackedResult {
	return st.results.Index(i).Interface().(*stackedResult)
}

func (st *stack) message(i int) Message { return st.table.Index(i).Interface().(Message) }

// push returns the stack with one more result.
func (st *stack) push(r *InferenceResult) *stack {
	next := &stack{table: st.table, results: st.results, popped: st.popped}
	st.index.Share(&next.index)
	owner := lastOwner.Add(1)
	called := make([]Message, len(r.ToolCalls))
	for i, m := range r.ToolCalls {
		called[i] = m
	}
	pushed := &stackedResult{
		id: r.ID, agent: r.Agent, input: r.Input, raw: r.Raw, created: r.CreatedAt,
		prompt:  next.intern(owner, r.Prompt),
		history: next.intern(owner, r.History),
		output:  next.intern(owner, r.Output),
		called:  next.intern(owner, called),
	}
	next.results = st.results.Append(reflect.ValueOf([]*stackedResult{pushed}), 0)
	return next
}

// equal reports whether two stacks hold the same results. Those that have come
// from one another share most of them.
func (st *stack) equal(o *stack) bool {
	if st == o {
		return true
	}
	if st.results.Len() != o.results.Len() {
		return false
	}
	for i := st.results.Len() - 1; i >= 0; i-- {
		if a, b := st.at(i), o.at(i); a != b && !st.result(a).equal(o.result(b)) {
			return false
		}
	}
	return true
}

// equal reports whether two results are the same, messages by their text.
func (r InferenceResult) equal(o InferenceResult) bool {
	return r.ID == o.ID && r.Agent == o.Agent && r.Input == o.Input && r.Raw == o.Raw && r.CreatedAt.Equal(o.CreatedAt) &&
		slices.EqualFunc(r.Prompt, o.Prompt, same) && slices.EqualFunc(r.History, o.History, same) &&
		slices.EqualFunc(r.Output, o.Output, same) &&
		slices.EqualFunc(r.ToolCalls, o.ToolCalls, func(a, b ToolResultMessage) bool { return same(a, b) })
}

// intern returns messages as runs of the table, to which it adds those that are
// not there. It is called on a stack that nobody else has seen yet.
func (st *stack) intern(owner uint64, msgs []Message) []run {
	var runs []run
	for _, m := range msgs {
		at := -1
		if n := len(runs); n > 0 && runs[n-1].to < st.table.Len() && same(st.message(runs[n-1].to), m) {
			at = runs[n-1].to
		} else if i := st.index.Get(hashKey(m)); i != nil && same(st.message(*i), m) {
			at = *i
		}
		if at < 0 {
			at = st.table.Len()
			st.table = st.table.Append(reflect.ValueOf([]Message{m}), 0)
			st.index.Set(owner, hashKey(m), &at)
		}
		if n := len(runs); n > 0 && runs[n-1].to == at {
			runs[n-1].to++
		} else {
			runs = append(runs, run{at, at + 1})
		}
	}
	return runs
}

func same(a, b Message) bool { return a == b || a.hash() == b.hash() && a.Raw() == b.Raw() }

func hashKey(m Message) string { return strconv.FormatUint(m.hash(), 36) }

// without returns the stack without its last result. The table is made anew from
// time to time, so that messages of popped results do not stay for ever.
func (st *stack) without() *stack {
	n := st.results.Len() - 1
	next := &stack{table: st.table, popped: st.popped + 1}
	st.index.Share(&next.index)
	next.results = st.results.Take(n, 0)
	if next.popped <= n {
		return next
	}
	fresh := newStack()
	for i := range n {
		r := st.result(st.at(i))
		fresh = fresh.push(&r)
	}
	return fresh
}

// result returns a result with its messages.
func (st *stack) result(r *stackedResult) InferenceResult {
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

func (st *stack) messages(runs []run) []Message {
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

// results returns the stack.
func (h *handle) results() *stack { return stackOf(h.branch.load(historySlot)) }

// seesResult reports whether the handle may read a result.
func (h *handle) seesResult(r *stackedResult) bool {
	return h.sees(h.schema.resultClass(r.agent))
}

// seen yields the results that the handle may read.
func (st *stack) seen(h *handle) iter.Seq[*stackedResult] {
	return func(yield func(*stackedResult) bool) {
		for i := range st.results.Len() {
			if r := st.at(i); h.seesResult(r) && !yield(r) {
				return
			}
		}
	}
}

// count returns how many results the handle may read.
func (st *stack) count(h *handle) int {
	if h.mayRead(messagesSlot) {
		return st.results.Len()
	}
	n := 0
	for range st.seen(h) {
		n++
	}
	return n
}

// pushResult is what the pushing handler does.
func pushResult(current any, present bool, update any) (any, error) {
	st := emptyStack
	if present {
		st = current.(*stack)
	}
	switch u := update.(type) {
	case InferenceResult:
		return st.push(&u), nil
	case resultRef:
		r := u.stack.result(u.result)
		return st.push(&r), nil
	}
	return nil, errors.New("state: not a result")
}

// writtenResult returns what an op on the history wrote, as a Change shows it.
func (h *handle) writtenResult(v any) any {
	switch v := v.(type) {
	case resultRef:
		if h.seesResult(v.result) {
			return v.stack.result(v.result)
		}
	case *stack:
		results := []InferenceResult{}
		for r := range v.seen(h) {
			results = append(results, v.result(r))
		}
		return results
	}
	return nil
}
