package document

import (
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/persist"
)

// keptConversation is the conversation and the results of a document as a State
// holds them, so that Load need not decode them again. All documents with the
// same conversation share it. It is empty until a State is known.
type keptConversation struct {
	newest atomic.Pointer[stateConversation]
}

// stateConversation is the conversation of a State of a schema.
type stateConversation struct {
	schema *state.Schema
	value  internal.Conversation
}

// OnKeptLoad is nil outside of tests. They set it to compare each State whose
// conversation was kept with the one that the document decodes to.
var OnKeptLoad func(d *Document, schema *state.Schema, st *state.State)

// of returns the conversation for a State of a schema, or nil.
func (k *keptConversation) of(schema *state.Schema) internal.Conversation {
	if c := k.newest.Load(); c != nil && c.schema == schema {
		return c.value
	}
	return nil
}

// keep notes a State of a schema that has the conversation.
func (k *keptConversation) keep(schema *state.Schema, st *state.State) {
	k.newest.Store(&stateConversation{schema, inside.Conversation(st)})
}

// firstMessages returns some of the all messages of the conversation, from the
// first one on, or nil if they are not known.
func (k *keptConversation) firstMessages(some, all int) []state.Message {
	c := k.newest.Load()
	if c == nil {
		return nil
	}
	l := c.value.Messages()
	if l.Len() != all || some > all {
		return nil
	}
	return persist.SliceOf[state.Message](l, 0, some)
}

// bytes returns the size of the messages of the conversation, or 0 if they are not
// known.
func (k *keptConversation) bytes() int {
	c := k.newest.Load()
	if c == nil {
		return 0
	}
	return c.value.Messages().Bytes()
}

// shortened returns the conversation with some of the messages and of the
// results, by their indexes; nil stands for all.
func (k *keptConversation) shortened(messages, results []int) *keptConversation {
	short := &keptConversation{}
	if c := k.newest.Load(); c != nil {
		short.newest.Store(&stateConversation{c.schema, c.value.Shorten(messages, results)})
	}
	return short
}

// ApplySaved is ApplyRecord for the effects with which Save stores a State.
func (d *Document) ApplySaved(effects []state.Effect, by Origin, schema *state.Schema, saved *state.State) error {
	if _, err := d.apply(effects); err != nil { // Save adds no message to which nothing refers
		return err
	}
	d.noteRecord(effects, by)
	d.conversation = &keptConversation{}
	d.conversation.keep(schema, saved)
	return nil
}
