package anthropic

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// EncodeMessages returns the system prompt and the entries.
func (Format) EncodeMessages(e *codec.Encoder, msgs []state.Message) jsontext.Object {
	var system content
	w := entryWriter{Encoder: e}
	for i, m := range msgs {
		if text, ok := m.(state.TextMessage); ok && !w.begun() && isSystemPrompt(e, text) {
			system.addText(e, i, text, false)
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
		if _, own := w.Kept(m); own || !w.isOmitted(i, m) {
			w.contentFor(m, w.textRole(i, m)).addText(w.Encoder, i, m, true)
		}
	case state.ToolCallMessage:
		content := w.contentFor(m, "assistant")
		for _, c := range m.Calls() {
			kept, _ := w.KeptOfCall(c)
			content.add(nil, codec.Restore(plainCall(c.ID, c.Name, []byte(c.Input)), kept).JSON())
		}
	case state.ToolResultMessage:
		kept, own := w.Kept(m)
		role := "user"
		if jsontext.Kind(kept.Get("role")) == "string" {
			role = kept.String("role")
		}
		w.contentFor(m, role).add(nil, w.result(i, m, kept, own))
	}
}

// isOmitted reports whether a text that does not come from the format has parts
// of which none can be expressed. It is then left out.
func (w *entryWriter) isOmitted(i int, m state.TextMessage) bool {
	content := []byte(m.Content())
	if jsontext.Kind(content) != "array" {
		return false
	}
	blocks, omitted := encodeBlocks(w.ReadParts(content), true)
	if len(blocks) > 0 {
		return false
	}
	w.omitParts(i, omitted)
	return true
}

func (w *entryWriter) omitParts(i int, parts []codec.Part) {
	for _, p := range parts {
		w.OmitPart(i, p)
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

// contentFor returns the content of the entry for a message: the open one if the
// message joins it.
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

// endEntry ends the open entry. An entry that says nothing is left out; what was
// left out of it has been reported.
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
func (w *entryWriter) result(i int, m state.ToolResultMessage, kept jsontext.Object, own bool) []byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "array" && !own {
		content = w.foreignOutput(i, m)
	}
	var isError []byte
	if flag, _ := m.Extra("is_error"); jsontext.Kind([]byte(flag)) == "bool" {
		isError = []byte(flag)
	}
	plain := plainResult(m.Call().ID, outputContent(content), isError)
	return codec.Restore(plain, kept.Object("block")).JSON()
}

// foreignOutput returns the content for an array that does not come from the
// format. The array is parts if its format has parts there, or if all of it can
// be expressed as blocks. Otherwise it is data.
func (w *entryWriter) foreignOutput(i int, m state.ToolResultMessage) []byte {
	_, ofChat := origin.Of(m, origin.OpenAI)
	_, ofResponses := origin.Of(m, origin.OpenAIResponses)
	array := []byte(m.Content())
	blocks, omitted := encodeBlocks(w.ReadParts(array), true)
	if !ofChat && !ofResponses && (len(omitted) > 0 || len(blocks) == 0) {
		return jsontext.AppendQuote(nil, string(array))
	}
	w.omitParts(i, omitted)
	if len(blocks) == 0 {
		return nil
	}
	return jsontext.Array(blocks)
}

// content is the content of an entry: a text, or blocks.
type content struct {
	text    []byte // a JSON string, if that is all
	blocks  [][]byte
	isBlank bool // an array without blocks is content
}

// add adds a text that is a JSON string, or blocks. A text that is not the only
// content becomes a block, unless it is empty.
func (c *content) add(text []byte, blocks ...[]byte) {
	if text != nil && c.text == nil && c.blocks == nil {
		c.text = text
		return
	}
	for _, t := range [][]byte{c.text, text} {
		if t != nil && string(t) != `""` {
			c.blocks = append(c.blocks, textBlock(t))
		}
	}
	c.text, c.blocks = nil, append(c.blocks, blocks...)
}

// addText adds what a text message says, as far as the format can express it.
func (c *content) addText(e *codec.Encoder, i int, m state.TextMessage, media bool) {
	value := []byte(m.Content())
	switch jsontext.Kind(value) {
	case "string":
		c.add(value)
	case "array":
		if _, own := e.Kept(m); own {
			blocks, _ := jsontext.Elements(value) // checked with the message
			c.isBlank = true
			c.add(nil, blocks...)
			return
		}
		blocks, omitted := encodeBlocks(e.ReadParts(value), media)
		for _, p := range omitted {
			e.OmitPart(i, p)
		}
		c.add(nil, blocks...)
	}
}

func (c *content) isEmpty() bool { return c.text == nil && len(c.blocks) == 0 && !c.isBlank }

// json returns the content, nil if it is empty.
func (c *content) json() []byte {
	if c.text != nil || c.isEmpty() {
		return c.text
	}
	return jsontext.Array(c.blocks)
}
