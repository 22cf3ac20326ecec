package state

import (
	"math/bits"
	"slices"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/persist"
)

// historyForm is the history as the engine sees it: the [engine.Form] of its
// slot, the [engine.Merger] that appends results, and the [engine.Gate] that
// keeps the results of one agent from others.
type historyForm struct {
	slot engine.Slot
	// messagesClass is the visibility class of results, unless their agent may
	// not read the messages: classes has the classes of those.
	messagesClass int
	classes       map[string]int
	own           engine.Bits            // those classes
	agents        map[int]string         // by those classes
	shown         map[string]engine.Bits // of each agent with a class, that class
	maxResults    int                    // 0 is no limit
	empty         *resultStack
}

// newHistoryForm returns the form of the history in a slot, in a schema with so
// many classes in all.
func newHistoryForm(slot, messagesClass int, classes map[string]int, all, maxResults int) *historyForm {
	hf := &historyForm{
		messagesClass: messagesClass, classes: classes, maxResults: maxResults,
		own: engine.NewBits(all), agents: map[int]string{}, shown: map[string]engine.Bits{}, empty: newResultStack(classes),
	}
	for agent, class := range classes {
		hf.own.Add(class)
		hf.agents[class] = agent
		hf.shown[agent] = engine.NewBits(all)
		hf.shown[agent].Add(class)
	}
	hf.slot = engine.Slot{Number: slot, Class: messagesClass, Form: hf, Gate: hf}
	return hf
}

func (hf *historyForm) address() engine.Address { return engine.Address{Slot: &hf.slot} }

// stackIn returns the results in a cell.
func (hf *historyForm) stackIn(c *engine.Cell) *resultStack {
	if c == nil {
		return hf.empty
	}
	return c.Value.(*resultStack)
}

// class returns the visibility class of the results of an agent.
func (hf *historyForm) class(agent string) int {
	if class, ok := hf.classes[agent]; ok {
		return class
	}
	return hf.messagesClass
}

// sees reports whether a view includes a result.
func (hf *historyForm) sees(v engine.View, r *stackedResult) bool { return v.Sees(hf.class(r.agent)) }

// seenResults is what a view includes of the results of a stack.
type seenResults struct {
	stack *resultStack
	all   bool
	own   *persist.Sequence[int32] // the places of those seen; nil if there are none
}

// seen returns the results that a view includes: all, or those of one agent. A
// reader of the messages sees all results.
func (hf *historyForm) seen(v engine.View, st *resultStack) seenResults {
	s := seenResults{stack: st, all: v.Sees(hf.messagesClass)}
	if s.all || len(hf.classes) == 0 {
		return s
	}
	for i, word := range v.Classes {
		if word &= hf.own[i]; word != 0 {
			if own := st.own.Get(hf.agents[i<<6+bits.TrailingZeros64(word)]); own != nil {
				s.own = &own.places
			}
			return s
		}
	}
	return s
}

func (s *seenResults) len() int {
	switch {
	case s.all:
		return s.stack.len()
	case s.own == nil:
		return 0
	}
	return s.own.Len()
}

func (s *seenResults) at(i int) *stackedResult {
	if !s.all {
		i = int(s.own.At(i))
	}
	return s.stack.at(i)
}

// result returns result i with its messages.
func (s *seenResults) result(i int) InferenceResult { return s.stack.result(s.at(i)) }

// appendOp returns the op that has pushed the last result of a stack: the stack
// is a list of which the update is the tail.
func (hf *historyForm) appendOp(st *resultStack, author *engine.Author) engine.Op {
	r := st.at(st.len() - 1)
	return engine.Op{
		Address: hf.address(),
		Update:  engine.Update{Value: st, Tail: 1, Size: r.size},
		Merger:  hf,
		Author:  author,
		Kind:    OpAppend.kind(),
		Classes: hf.shown[r.agent],
		Shares:  true,
	}
}

// answerOp returns the op that answers calls of a result of an agent.
func (hf *historyForm) answerOp(a *answers, agent string, author *engine.Author) engine.Op {
	return engine.Op{
		Address: hf.address(),
		Update:  engine.Update{Value: a, Size: a.size()},
		Merger:  hf,
		Author:  author,
		Kind:    OpAnswer.kind(),
		Classes: hf.shown[agent],
		Shares:  true,
	}
}

// overwriteOp returns an op that replaces the results. value is what it writes.
func (hf *historyForm) overwriteOp(op Op, value any, author *engine.Author) engine.Op {
	return engine.Op{
		Address: hf.address(), Update: engine.Update{Value: value}, Merger: hf, Author: author, Kind: op.kind(),
		Overwrites: true,
	}
}

// overwriteEdit returns the edit that replaces the results, of the cell from,
// by others. value is what the op has written.
func (hf *historyForm) overwriteEdit(
	op Op, from *engine.Cell, to *resultStack, value any, author *engine.Author,
) engine.Edit {
	return engine.Edit{
		Address: hf.address(), From: from, To: &engine.Merged{Value: to},
		Ops: []engine.Op{hf.overwriteOp(op, value, author)}, Overwrites: true,
	}
}

// written returns what an op has written, as a view sees it.
func (hf *historyForm) written(v engine.View, u engine.Update) any {
	switch value := u.Value.(type) {
	case *answers: // in the journal of the result's class
		return value.results()
	case resultRef:
		if hf.sees(v, value.result) {
			return value.stack.result(value.result)
		}
	case *resultStack:
		if u.Tail > 0 {
			return hf.written(v, engine.Update{Value: value.last()})
		}
		results := []InferenceResult{}
		seen := hf.seen(v, value)
		for i := range seen.len() {
			results = append(results, seen.result(i))
		}
		return results
	case nil: // no history, as if there were hidden results only
		return []InferenceResult{}
	}
	return nil
}

var errNotAResult = invalidArgument("history", "not a result")

// Merge implements [engine.Merger]: it appends a result, answers calls of one,
// or replaces all.
func (hf *historyForm) Merge(_ engine.Address, current *engine.Cell, u engine.Update) (engine.Merged, error) {
	st := hf.stackIn(current)
	switch v := u.Value.(type) {
	case *resultStack:
		if u.Tail == 0 {
			return engine.Merged{Value: v}, nil
		}
		pushed := v.last()
		r := v.result(pushed.result)
		return engine.Merged{Value: st.push(&r, pushed.result.origin)}, nil
	case *answers:
		if st, ok := st.answer(v); ok {
			return engine.Merged{Value: st}, nil
		}
		return engine.Merged{}, engine.ErrOverlap
	}
	return engine.Merged{}, errNotAResult
}

// Same implements [engine.Form]. No results are the same as no history.
func (hf *historyForm) Same(a, b *engine.Cell) bool { return hf.stackIn(a).equal(hf.stackIn(b)) }

// Check implements [engine.Form].
func (hf *historyForm) Check(engine.Merged) error { return nil }

// Admit implements [engine.Gate]: the results that the view includes must not
// become more than the limit.
func (hf *historyForm) Admit(v engine.View, from *engine.Cell, to *engine.Merged) error {
	if hf.maxResults == 0 || to == nil {
		return nil
	}
	after, before := hf.seen(v, to.Value.(*resultStack)), hf.seen(v, hf.stackIn(from))
	if n := after.len(); n > hf.maxResults && n > before.len() {
		return &LimitError{Name: "Results", Limit: hf.maxResults, Got: n}
	}
	return nil
}

// Classes implements [engine.Gate]. Results that are the same but stored anew
// are no difference to the readers of a class, and neither is the place of a
// result among results that they do not see.
func (hf *historyForm) Classes(from, to *engine.Cell) engine.Bits {
	if len(hf.classes) == 0 {
		return nil
	}
	a, b := hf.stackIn(from), hf.stackIn(to)
	common := b.results.Common(&a.results)
	for common < min(a.len(), b.len()) && a.at(common) == b.at(common) {
		common++
	}
	before, after := hf.byClass(a, common), hf.byClass(b, common)
	classes := make(engine.Bits, len(hf.own))
	classes.Add(hf.messagesClass)
	for _, class := range hf.classes {
		if !slices.EqualFunc(before[class], after[class], resultRef.same) {
			classes.Add(class)
		}
	}
	return classes
}

// byClass returns the results of a stack from index i on by their class.
func (hf *historyForm) byClass(st *resultStack, i int) map[int][]resultRef {
	results := map[int][]resultRef{}
	for ; i < st.len(); i++ {
		class := hf.class(st.at(i).agent)
		results[class] = append(results[class], resultRef{st, st.at(i)})
	}
	return results
}

// conversation is the field messages and the history of a state at one moment,
// for another state of the same schema: an [internal.Conversation].
type conversation struct {
	schema   *Schema
	messages *engine.Merged // nil if the field is unset
	results  *resultStack
}

// conversationOf returns the conversation of a state that is not written
// meanwhile. An ephemeral one is left out.
func conversationOf(s *State) *conversation {
	h := s.on()
	sp, form := h.schema.messages(), h.schema.history
	c := &conversation{schema: h.schema, results: form.stackIn(h.branch.Peek(form.address()))}
	if at := h.branch.Peek(sp.address()); at != nil && !sp.ephemeral {
		c.messages = &engine.Merged{Value: at.Value, Size: at.Size}
	}
	return c
}

// putInto puts the conversation into a new state.
func (c *conversation) putInto(l *engine.Loader) {
	if c.messages != nil {
		l.Put(c.schema.messages().address(), *c.messages)
	}
	if c.results.len() > 0 {
		l.Put(c.schema.history.address(), engine.Merged{Value: c.results})
	}
}

// Messages returns the list of messages.
func (c *conversation) Messages() *persist.List {
	if c.messages == nil {
		return persist.NewList(c.schema.messages().form.Type)
	}
	return cell.Bare(c.messages.Value).(*persist.List)
}

// Shorten returns the conversation with some of its messages and results, by
// their indexes; nil stands for all.
func (c *conversation) Shorten(messages, results []int) internal.Conversation {
	short := *c
	if messages != nil && c.messages != nil {
		short.messages = c.shortenMessages(messages)
	}
	if results != nil {
		short.results = c.results.keep(results)
	}
	return &short
}

func (c *conversation) shortenMessages(indexes []int) *engine.Merged {
	form := &c.schema.messages().form
	l := c.Messages()
	if n := len(indexes); n > 0 && indexes[0] == l.Len()-n { // the last ones
		l = form.KeepLast(l, n)
	} else {
		sum, kept := messageSum{messages: n}, make([]Message, n)
		for i, at := range indexes {
			kept[i] = persist.At[Message](l, at)
			sum.bytes += kept[i].size()
		}
		l = persist.NewList(form.Type).Append(kept, listSize(sum))
	}
	return &engine.Merged{Value: form.Hide(l), Size: l.Bytes()}
}
