package state

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
)

// Messages is the conversation, a field that every schema has: a list that
// appends and that every agent may use, unless the schema declares it
// otherwise. The user's turn is added with Messages.Set, an agent's with
// [History.Append].
var Messages = &Field[[]Message]{
	Name:        messagesName,
	Description: messagesDescription,
	Read:        Public,
	Write:       Public,
}

// History is the stack of the inference results of a [State]. An agent that may
// not read [Messages] sees only the results that it has appended itself. All
// methods are safe for concurrent use.
//
// A message is held once, however many results refer to it.
type History struct{ state *State }

// History returns the stack of inference results. It is cheap.
func (s *State) History() *History { return &History{s} }

// seen returns the results that the handle sees.
func (hs *History) seen() seenResults {
	h := hs.state.on()
	form := h.schema.history
	return form.seen(h.view(), form.stackIn(h.branch.Slot(&form.slot)))
}

// Append pushes a copy of r, and in the same version appends its Output and
// then its ToolCalls to Messages. For an agent that may not write Messages it
// only pushes the result. On a bound handle an empty Agent becomes the
// handle's, and another name is [ErrDenied]. A zero CreatedAt becomes the
// present time. Both times are stored in UTC.
//
// Calls in Output may be open: [History.Answer] adds their results when they
// come. There are at most 256 of them.
func (hs *History) Append(r InferenceResult) error { return hs.push(r, true) }

// AppendOutside is Append for a result that is not part of the conversation,
// such as the title of a chat or a summary: Messages do not change.
func (hs *History) AppendOutside(r InferenceResult) error { return hs.push(r, false) }

// push pushes a result, and appends its messages to the conversation or not.
func (hs *History) push(r InferenceResult, says bool) error {
	h := hs.state.on()
	if err := h.branch.Alive(); err != nil {
		return err
	}
	if err := h.mayAppend(&r); err != nil {
		return err
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = time.Now()
	}
	r.setTimes()
	h.complete(&r)
	if err := r.check(h.schema.limits.ValueBytes); err != nil {
		return err
	}
	p := resultPushes.Get().(*resultPush)
	defer p.release()
	if sp := h.schema.messages(); says && len(r.Output)+len(r.ToolCalls) > 0 && h.mayWrite(sp) {
		return h.pushAndSay(p, sp, &r)
	}
	return h.explain(h.branch.Commit(h.view(), func(t *engine.Tree) ([]engine.Edit, error) {
		p.push(h, t, &r)
		return p.edits[:1], nil
	}))
}

// pushAndSay pushes a result and appends its messages to the conversation.
func (h *handle) pushAndSay(p *resultPush, sp *fieldSpec, r *InferenceResult) error {
	o := sp.onSet
	if o.Overwrites {
		o = sp.newOp(OpSet, appendHandler)
	}
	o.Author, o.Borrowed = h.author, false
	said, hasCalls := *r, slices.ContainsFunc(r.Output, isToolCall)
	plan := func(t *engine.Tree) ([]engine.Edit, error) {
		if *r = said; hasCalls {
			r.distinguish(listIn(t.Get(sp.address()), &sp.form), &h.family.calls,
				h.schema.history.stackIn(t.Get(h.schema.history.address())))
		}
		p.push(h, t, r)
		p.ops[1] = o
		return p.edits[:], p.say(sp, t, r)
	}
	if o.Callback {
		return h.explain(h.branch.Transact(h.view(), []engine.Address{sp.address()}, plan))
	}
	return h.explain(h.branch.Commit(h.view(), plan))
}

// resultPush is what appending a result does to a tree. The engine copies what
// it keeps of it, so that its memory is used again.
type resultPush struct {
	ops   [2]engine.Op
	to    [2]engine.Merged
	edits [2]engine.Edit
}

var resultPushes = sync.Pool{New: func() any { return new(resultPush) }}

func (p *resultPush) release() {
	*p = resultPush{}
	resultPushes.Put(p)
}

// push pushes the result to the history.
func (p *resultPush) push(h *handle, t *engine.Tree, r *InferenceResult) {
	form := h.schema.history
	at := form.address()
	from := t.Get(at)
	st := form.stackIn(from).push(r, 0)
	p.ops[0] = form.appendOp(st, h.author)
	p.to[0].Value = st
	p.edits[0] = engine.Edit{Address: at, From: from, To: &p.to[0], Ops: p.ops[:1], Single: true}
}

// say appends the messages of the result to the conversation. The messages have
// been checked, so that the default handler appends them as they are.
func (p *resultPush) say(sp *fieldSpec, t *engine.Tree, r *InferenceResult) error {
	o := &p.ops[1]
	from := t.Get(o.Address)
	p.edits[1] = engine.Edit{Address: o.Address, From: from, To: &p.to[1], Ops: p.ops[1:], Single: true}
	sum := messageSum{messages: len(r.Output) + len(r.ToolCalls), bytes: messagesSize(r.Output)}
	for _, m := range r.ToolCalls {
		sum.bytes += m.size()
	}
	o.Size = listSize(sum)
	if h := o.Merger.(*handler); h.kind == appends && !o.Callback {
		l := listIn(from, &sp.form)
		l = l.Append(r.Output, cell.AddedSize(l, o.Size))
		if len(r.ToolCalls) > 0 {
			l = l.Append(asMessages(r.ToolCalls), 0)
		}
		o.Value, o.Tail = l, int32(len(r.Output)+len(r.ToolCalls))
		var err error
		p.to[1], err = sp.stored(o.Address, l, l.Bytes(), nil)
		return err
	}
	said := append(slices.Clone(r.Output), asMessages(r.ToolCalls)...)
	var err error
	if o.Update, err = sp.store(o.Address, said, true); err != nil {
		return err
	}
	o.Borrowed = false // the list was made here
	if p.to[1], err = o.Apply(from); err != nil {
		return err
	}
	return sp.Check(p.to[1])
}

// asMessages returns tool results as messages.
func asMessages(results []ToolResultMessage) []Message {
	msgs := make([]Message, len(results))
	for i, m := range results {
		msgs[i] = m
	}
	return msgs
}

// merge commits the ops that plan returns for a tree as one version. If code of
// the user may be called, it is that of the conversation.
func (h *handle) merge(callback bool, plan func(*engine.Tree) ([]engine.Op, error)) error {
	edits := func(t *engine.Tree) ([]engine.Edit, error) {
		ops, err := plan(t)
		if err != nil {
			return nil, err
		}
		return mergeOps(t, ops)
	}
	if callback {
		return h.explain(h.branch.Transact(h.view(), []engine.Address{h.schema.messages().address()}, edits))
	}
	return h.explain(h.branch.Commit(h.view(), edits))
}

// mayAppend returns an error if the handle may not append a result, and
// otherwise gives the result its agent.
func (h *handle) mayAppend(r *InferenceResult) error {
	switch {
	case h.rights == nil:
		return nil
	case r.Agent != "" && r.Agent != h.agent():
		return h.denied(fmt.Sprintf("append a result of %q to", fault.Clip(r.Agent)), historyName)
	case !h.rights.member:
		return h.denied(string(OpAppend), historyName)
	}
	r.Agent = h.agent()
	return nil
}

// mergeOps returns the edits that apply ops to a tree. Ops of one address are
// neighbours.
func mergeOps(t *engine.Tree, ops []engine.Op) ([]engine.Edit, error) {
	edits := make([]engine.Edit, 0, 2)
	for len(ops) > 0 {
		e := engine.Edit{Address: ops[0].Address, From: t.Get(ops[0].Address)}
		n, current := 0, e.From
		for ; n < len(ops) && ops[n].Address == e.Address; n++ {
			to, err := ops[n].Apply(current)
			if err != nil {
				return nil, err
			}
			e.To, current = &to, &engine.Cell{Value: to.Value, Size: to.Size}
			if ops[n].Overwrites {
				e.Overwrites = true
			}
		}
		if err := e.Slot.Form.Check(*e.To); err != nil {
			return nil, err
		}
		e.Ops, ops = ops[:n:n], ops[n:]
		edits = append(edits, e)
	}
	return edits, nil
}

// Answer adds the results of tool calls to the inference results that have
// these calls. In the same version it inserts them into Messages, after the
// calls and in their order, whatever the order in which they arrive. A call is
// found by its id, or by its name if the provider gives no ids, in the latest
// result in which it has no answer.
//
// Calls may be answered one by one, by several calls of Answer, and in several
// branches. [State.Join] puts the answers into the order of the calls, and
// reports a conflict only if two branches answer one call. Messages do not
// change if they have the answer already, or if the call is not in them:
// because the result was pushed by [History.AppendOutside], because the call was
// trimmed, or because the agent may not write Messages. The handler of Messages
// gets the messages in front of the answers as the current value.
//
// The error is [ErrUnknownCall] if no result has a call with the id and the tool,
// and [ErrAnswered] if the call has an answer. A bound handle may answer the calls
// of its own results. For an open call of another agent that it sees, the error is
// [ErrDenied]. If there is an error, nothing changes.
func (hs *History) Answer(results ...ToolResultMessage) error {
	h := hs.state.on()
	if err := h.branch.Alive(); err != nil {
		return err
	}
	if h.rights != nil && !h.rights.member {
		return h.denied(string(OpAnswer), historyName)
	}
	results = slices.Clone(results)
	for i, m := range results {
		if m.messageBody == nil {
			return &TypeError{Field: historyName, Path: fmt.Sprintf("$[%d]", i), Want: "a message", Got: "the zero message"}
		}
		results[i] = h.sized(m).(ToolResultMessage)
	}
	if len(results) == 0 {
		return nil
	}
	callback := h.mayWrite(h.schema.messages()) && h.schema.messages().onSet.Callback
	return h.merge(callback, func(t *engine.Tree) ([]engine.Op, error) { return h.answerOps(t, results) })
}

// Load replaces the results and Messages by copies of the arguments, as one
// version. A nil argument removes what was there. Load is for a conversation
// that is kept elsewhere: Append would append the messages of each result
// again, and [History.Reset] does not change Messages. Handlers are not called;
// Validate of Messages is. Load needs the right to write Messages. On a bound
// handle, a result with the name of another agent must be on the stack already.
func (hs *History) Load(results []InferenceResult, messages []Message) error {
	h := hs.state.on()
	st, keyed, err := hs.stackToReset("load", results)
	if err != nil {
		return err
	}
	messages = keyed.replace(messages)
	sp := h.schema.messages()
	o := sp.onReplace
	o.Author = h.author
	if o.Update, err = h.store(sp, o.Address, messages, o.Borrowed); err != nil {
		return err
	}
	form := h.schema.history
	return h.merge(sp.validate != nil, func(t *engine.Tree) ([]engine.Op, error) {
		return []engine.Op{form.overwriteOp(OpReset, st, h.author), o}, nil
	})
}

// Len returns the number of results.
func (hs *History) Len() int {
	seen := hs.seen()
	return seen.len()
}

// All yields the results with their indexes, oldest first, as they are at one
// moment.
func (hs *History) All() iter.Seq2[int, InferenceResult] {
	return func(yield func(int, InferenceResult) bool) {
		seen := hs.seen()
		for i := range seen.len() {
			if !yield(i, seen.result(i)) {
				return
			}
		}
	}
}

// Results returns a copy of all results, oldest first.
func (hs *History) Results() []InferenceResult {
	seen := hs.seen()
	results := make([]InferenceResult, seen.len())
	for i := range results {
		results[i] = seen.result(i)
	}
	return results
}

// At returns the result at index i, if there is one.
func (hs *History) At(i int) (InferenceResult, bool) {
	seen := hs.seen()
	if i < 0 || i >= seen.len() {
		return InferenceResult{}, false
	}
	return seen.result(i), true
}

// Last returns the latest result, if there is one.
func (hs *History) Last() (InferenceResult, bool) {
	seen := hs.seen()
	if seen.len() == 0 {
		return InferenceResult{}, false
	}
	return seen.result(seen.len() - 1), true
}

// Pop removes the latest result and returns it. Messages do not change. Pop
// needs the right to write Messages.
func (hs *History) Pop() (InferenceResult, bool, error) {
	h := hs.state.on()
	if !h.mayWrite(h.schema.messages()) {
		return InferenceResult{}, false, h.denied(string(OpPop), historyName)
	}
	var popped InferenceResult
	found := false
	form := h.schema.history
	err := h.branch.Transact(h.view(), nil, func(t *engine.Tree) ([]engine.Edit, error) {
		h.branch.Get(form.address()) // the popped result depends on the current ones
		from := t.Get(form.address())
		st := form.stackIn(from)
		if found = st.len() > 0; !found {
			return nil, nil
		}
		last := st.at(st.len() - 1)
		popped = st.result(last)
		e := form.overwriteEdit(OpPop, from, st.pop(), resultRef{st, last}, h.author)
		e.Computed, e.Ops[0].Computed = true, true
		return []engine.Edit{e}, nil
	})
	return popped, found && err == nil, h.explain(err)
}

// Reset replaces the results by copies of others. Messages do not change, so
// that a conversation read from a database is not in them: use [History.Load]
// for that. Reset needs the right to write Messages. On a bound handle, a result
// with the name of another agent must be on the stack already.
func (hs *History) Reset(results []InferenceResult) error {
	h := hs.state.on()
	st, _, err := hs.stackToReset(string(OpReset), results)
	if err != nil {
		return err
	}
	form := h.schema.history
	err = h.branch.Commit(h.view(), func(t *engine.Tree) ([]engine.Edit, error) {
		return []engine.Edit{form.overwriteEdit(OpReset, t.Get(form.address()), st, st, h.author)}, nil
	})
	return h.explain(err)
}

// stackToReset returns the stack of results that the handle may reset to, and the
// messages whose calls have got keys. op is what the caller does.
func (hs *History) stackToReset(op string, results []InferenceResult) (*resultStack, keyedMessages, error) {
	h := hs.state.on()
	if err := h.branch.Alive(); err != nil {
		return nil, nil, err
	}
	if !h.mayWrite(h.schema.messages()) {
		return nil, nil, h.denied(op, historyName)
	}
	if err := hs.mayReset(op, results); err != nil {
		return nil, nil, err
	}
	st, keyed := newResultStack(h.schema.history.classes), keyedMessages{}
	for i := range results {
		r := results[i]
		r.setTimes()
		h.complete(&r)
		keyed.note(&results[i], &r)
		if err := r.check(h.schema.limits.ValueBytes); err != nil {
			return nil, nil, within(fmt.Sprintf("results[%d]", i), err)
		}
		st = st.push(&r, 0)
	}
	return st, keyed, nil
}

// mayReset returns an error if the handle may not put one of the results on the
// stack.
func (hs *History) mayReset(op string, results []InferenceResult) error {
	h := hs.state.on()
	if h.rights == nil {
		return nil
	}
	type origin struct{ agent, id string }
	known := map[origin][]InferenceResult{}
	for _, r := range hs.All() {
		key := origin{r.Agent, r.ID}
		known[key] = append(known[key], r)
	}
	for _, r := range results {
		if r.Agent != h.agent() && !slices.ContainsFunc(known[origin{r.Agent, r.ID}], r.equal) {
			return h.denied(fmt.Sprintf("%s to a result of %q in", op, fault.Clip(r.Agent)), historyName)
		}
	}
	return nil
}

// Format returns the messages that fn returns for each result, one after the
// other, as the conversation for a prompt. A nil fn stands for Output and then
// ToolCalls, of all results: also of those without Raw, which no model has
// given. What Append has appended to Messages is in both.
func (hs *History) Format(fn func(InferenceResult) []Message) []Message {
	if fn == nil {
		fn = func(r InferenceResult) []Message {
			for _, m := range r.ToolCalls {
				r.Output = append(r.Output, m)
			}
			return r.Output
		}
	}
	msgs := []Message{}
	for _, r := range hs.All() {
		msgs = append(msgs, fn(r)...)
	}
	return msgs
}
