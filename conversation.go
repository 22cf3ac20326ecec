package state

import (
	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/persist"
)

// conversation is the field messages and the history of a state at one moment,
// for another state of the same schema. It never changes.
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

// list returns the list of messages.
func (c *conversation) list() *persist.List {
	if c.messages == nil {
		return persist.NewList(c.schema.messages().form.Type)
	}
	return cell.Bare(c.messages.Value).(*persist.List)
}

// shorten returns the conversation with some of its messages and results, by
// their indexes; nil stands for all.
func (c *conversation) shorten(messages, results []int) *conversation {
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
	l := c.list()
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
