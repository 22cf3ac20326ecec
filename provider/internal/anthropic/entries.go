package anthropic

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// EncodeRequest returns the body of a request.
func (f Format) EncodeRequest(e *codec.Encoder, r codec.Request, msgs []state.Message) (jsontext.Object, error) {
	return r.Body(f.EncodeTools, f.EncodeMessages(e, msgs))
}

// EncodeMessages returns the system prompt and the entries.
func (Format) EncodeMessages(e *codec.Encoder, msgs []state.Message) jsontext.Object {
	var system content
	w := entryWriter{Encoder: e}
	for i, m := range msgs {
		if text, ok := m.(state.TextMessage); ok && !w.begun() && isSystemPrompt(e, text) {
			system.add(encodeText(e, i, text, "system"))
			continue
		}
		w.add(i, m)
	}
	w.endEntry()
	return jsontext.Object{}.With("system", system.json()).With("messages", jsontext.Array(w.entries))
}

// isSystemPrompt reports whether a text before the conversation belongs to the
// system prompt.
func isSystemPrompt(e *codec.Encoder, m state.TextMessage) bool {
	if m.Role() != "system" && m.Role() != "developer" {
		return false
	}
	kept, own := e.Kept(m)
	return !own || kept.String("in") == "system"
}

// entryWriter makes entries of messages.
type entryWriter struct {
	*codec.Encoder
	entries [][]byte
	open    *entry        // which more messages may join, nil if there is none
	before  state.Message // the last message of the open entry
}

type entry struct {
	role    string
	kept    jsontext.Object // of its first message
	content content
}

func (w *entryWriter) add(i int, m state.Message) {
	switch m := m.(type) {
	case state.UnknownMessage:
		if item, _, ok := w.KeptItem(i, m); ok {
			w.endEntry()
			w.entries = append(w.entries, item)
		}
	case state.TextMessage:
		role := w.textRole(i, m)
		added := encodeText(w.Encoder, i, m, role)
		if added.isEmpty() && jsontext.Kind([]byte(m.Content())) == "array" {
			return // it is reasoning of another format
		}
		w.contentFor(m, role).add(added)
	case state.ToolCallMessage:
		content := w.contentFor(m, "assistant")
		for _, c := range m.Calls() {
			kept, _ := w.KeptOfCall(c)
			kept = codec.More(kept, w.OwnMembersOfCall(c, ownMembers))
			content.addBlock(codec.Restore(plainCall(jsontext.AppendQuote(nil, c.ID), jsontext.AppendQuote(nil, c.Name), []byte(c.Input)), kept))
		}
	case state.ToolResultMessage:
		kept, own := w.Kept(m)
		role := "user"
		if jsontext.Kind(kept.Get("role")) == "string" {
			role = kept.String("role")
		}
		w.contentFor(m, role).addBlock(w.result(i, m, kept, own))
	}
}

// textRole returns the role of the entry of a text.
func (w *entryWriter) textRole(i int, m state.TextMessage) string {
	_, own := w.Kept(m)
	switch role := m.Role(); {
	case own, role == "user", role == "assistant", role == "system":
		return role
	case role == "developer":
		return "system"
	}
	w.Omit(i, "role other than user, assistant, system and developer")
	return "user"
}

// contentFor returns the content of the entry for a message: the open one if
// the message joins it.
func (w *entryWriter) contentFor(m state.Message, role string) *content {
	if w.open == nil || w.open.role != role || !isJoined(w.before, m) {
		w.endEntry()
		kept, _ := w.Kept(m)
		w.open = &entry{role: role, kept: kept}
	}
	w.before = m
	return &w.open.content
}

// isJoined reports whether a message belongs to the entry of the message before
// it, if both have the same role. It does if it says so. Otherwise results go
// together, and any other message follows [origin.Joins].
func isJoined(before, m state.Message) bool {
	if joined, said := origin.Joined(m); said {
		return joined
	}
	if _, ok := m.(state.ToolResultMessage); ok {
		return before.Type() == codec.TypeResult
	}
	return origin.Joins(before, m)
}

// begun reports whether anything has been said in the conversation.
func (w *entryWriter) begun() bool {
	return w.entries != nil || w.open != nil && !w.open.content.isEmpty()
}

// endEntry ends the open entry. An entry that says nothing is left out; what
// was left out of it has been reported.
func (w *entryWriter) endEntry() {
	if w.open == nil {
		return
	}
	if content := &w.open.content; !content.isEmpty() {
		plain := jsontext.Object{}.WithString("role", w.open.role).With("content", content.json())
		w.entries = append(w.entries, codec.Restore(plain, w.open.kept).JSON())
	}
	w.open = nil
}

// result returns the block of a result.
func (w *entryWriter) result(i int, m state.ToolResultMessage, kept jsontext.Object, own bool) jsontext.Object {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "array" && !own {
		content = w.foreignOutput(i, m)
	}
	var isError []byte
	if flag, _ := m.Extra("is_error"); jsontext.Kind([]byte(flag)) == "bool" {
		isError = []byte(flag)
	}
	plain := plainResult(jsontext.AppendQuote(nil, m.Call().ID), outputContent(content), isError)
	block := codec.More(kept.Object("block"), codec.OwnMembers(m, ownMembers))
	return codec.Restore(plain, block)
}

// foreignOutput returns the content for an array that does not come from the
// format. The array is parts if its format has parts there, or if all of it are
// parts. Otherwise it is data.
func (w *entryWriter) foreignOutput(i int, m state.ToolResultMessage) []byte {
	_, ofChat := origin.Of(m, origin.OpenAI)
	_, ofResponses := origin.Of(m, origin.OpenAIResponses)
	array := []byte(m.Content())
	parts := w.ReadParts(m, origin.RoleTool, array)
	if !ofChat && !ofResponses && !codec.AreParts(parts) {
		return jsontext.AppendQuote(nil, string(array))
	}
	blocks, omitted := encodeBlocks(w.Encoder, i, origin.RoleTool, parts)
	w.OmitParts(i, omitted)
	if len(blocks) == 0 {
		return codec.Placeholder(omitted)
	}
	return jsontext.Array(blocks)
}

// content is the content of an entry: a text, or blocks.
type content struct {
	text    []byte // a JSON string, if that is all
	blocks  [][]byte
	isBlank bool // an array without blocks is content
}

// encodeText returns the content of a text message, as far as the format can
// express it for a role. If that is nothing, a text stands for its parts.
func encodeText(e *codec.Encoder, i int, m state.TextMessage, role string) content {
	value := []byte(m.Content())
	switch jsontext.Kind(value) {
	case "string":
		return content{text: value}
	case "array":
		if _, own := e.Kept(m); own {
			blocks, _ := jsontext.Elements(value) // checked with the message
			return content{blocks: blocks, isBlank: true}
		}
		blocks, omitted := encodeBlocks(e, i, role, e.ReadParts(m, role, value))
		e.OmitParts(i, omitted)
		if len(blocks) == 0 {
			return content{text: codec.Placeholder(omitted)}
		}
		return content{blocks: blocks}
	}
	return content{}
}

// add adds content. A text that is not the only content becomes a block, unless
// it is empty.
func (c *content) add(added content) {
	switch {
	case added.isEmpty():
		return
	case c.isEmpty():
		*c = added
		return
	}
	var blocks [][]byte
	for _, text := range [][]byte{c.text, added.text} {
		if text != nil && string(text) != `""` {
			blocks = append(blocks, textBlock(text).JSON())
		}
	}
	blocks = append(append(c.blocks, blocks...), added.blocks...)
	*c = content{blocks: blocks, isBlank: c.isBlank || added.isBlank}
}

func (c *content) addBlock(block jsontext.Object) {
	c.add(content{blocks: [][]byte{block.JSON()}})
}

func (c *content) isEmpty() bool { return c.text == nil && len(c.blocks) == 0 && !c.isBlank }

// json returns the content, nil if it is empty.
func (c *content) json() []byte {
	if c.text != nil || c.isEmpty() {
		return c.text
	}
	return jsontext.Array(c.blocks)
}
