package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

func (a anthropic) conversation(e *encoder, msgs []state.Message) (jsontext.Object, error) {
	var system anthropicContent
	entries := anthropicEntries{encoder: e}
	leading := true // as long as nothing has been said in the conversation
	for i, m := range msgs {
		if leading && a.leads(e, m) {
			system.addText(e, i, m.(state.TextMessage), false)
			continue
		}
		entries.add(i, m)
		leading = leading && !entries.begun()
	}
	entries.end()
	return jsontext.Object{}.With("system", system.json()).With("messages", jsontext.Array(entries.done)), nil
}

// leads reports whether a message at the beginning belongs to the system
// prompt.
func (anthropic) leads(e *encoder, m state.Message) bool {
	if _, text := m.(state.TextMessage); !text {
		return false
	}
	if m.Role() != "system" && m.Role() != "developer" {
		return false
	}
	kept, own := e.kept(m)
	return !own || stringOf(kept.Get("in")) == "system"
}

// anthropicEntries makes entries of messages.
type anthropicEntries struct {
	encoder *encoder
	done    [][]byte
	open    *anthropicEntry // may become longer; nil if there is none
	before  state.Message   // the last that is in it
}

type anthropicEntry struct {
	role    string
	kept    jsontext.Object // of its first message
	content anthropicContent
}

func (s *anthropicEntries) add(i int, m state.Message) {
	kept, own := s.encoder.kept(m)
	if m, unknown := m.(state.UnknownMessage); unknown {
		s.item(i, m)
		return
	}
	if text, ok := m.(state.TextMessage); ok && !own && s.leftOut(i, text) {
		return // as if it were not there
	}
	role := s.role(i, m, kept, own)
	if s.open == nil || s.open.role != role || !anthropicTogether(s.before, m) {
		s.end()
		s.open = &anthropicEntry{role: role, kept: kept}
	}
	s.before = m
	content := &s.open.content
	switch m := m.(type) {
	case state.TextMessage:
		content.addText(s.encoder, i, m, true)
	case state.ToolCallMessage:
		for _, c := range m.Calls() {
			of, _ := s.encoder.keptOf(c)
			content.add(nil, restore(anthropicCall(c.ID, c.Name, []byte(c.Input)), of).JSON())
		}
	case state.ToolResultMessage:
		content.add(nil, s.result(i, m, kept, own))
	}
}

// leftOut reports whether a text from elsewhere has parts of which none can be
// said.
func (s *anthropicEntries) leftOut(i int, m state.TextMessage) bool {
	content := []byte(m.Content())
	if jsontext.Kind(content) != "array" {
		return false
	}
	blocks, unsaid := anthropicBlocks(content, true)
	if len(blocks) > 0 {
		return false
	}
	for _, what := range unsaid {
		s.encoder.omit(i, what)
	}
	return true
}

// begun reports whether anything has been said.
func (s *anthropicEntries) begun() bool {
	return s.done != nil || s.open != nil && s.open.content.json() != nil
}

// end ends the entry. One that says nothing in the words of the format is left
// out; what was left out of it has been reported.
func (s *anthropicEntries) end() {
	if s.open == nil {
		return
	}
	if content := s.open.content.json(); content != nil {
		entry := jsontext.Object{}.WithString("role", s.open.role).With("content", content)
		s.done = append(s.done, restore(entry, s.open.kept).JSON())
	}
	s.open = nil
}

// item adds an entry that was kept whole.
func (s *anthropicEntries) item(i int, m state.UnknownMessage) {
	item, _ := m.Extra(origin.Item)
	if format, _ := origin.Unknown(m); format != origin.Anthropic || jsontext.Kind([]byte(item)) != "object" {
		s.encoder.omit(i, "message of type "+m.Type())
		return
	}
	s.end()
	s.done = append(s.done, []byte(item))
}

// role returns the role of the entry that a message belongs to.
func (s *anthropicEntries) role(i int, m state.Message, kept jsontext.Object, own bool) string {
	role := m.Role()
	switch m.(type) {
	case state.ToolResultMessage:
		if role := kept.Get("role"); jsontext.Kind(role) == "string" {
			return jsontext.Unquote(role)
		}
		return "user"
	case state.ToolCallMessage:
		return "assistant"
	}
	switch {
	case own, role == "user", role == "assistant", role == "system":
		return role
	case role == "developer":
		return "system"
	}
	s.encoder.omit(i, "role other than user, assistant, system and developer")
	return "user"
}

// result returns the block of a result.
func (s *anthropicEntries) result(i int, m state.ToolResultMessage, kept jsontext.Object, own bool) []byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "array" && !own {
		content = s.output(i, m, content)
	}
	var isError []byte
	if flag, ok := m.Extra("is_error"); ok && jsontext.Kind([]byte(flag)) == "bool" {
		isError = []byte(flag)
	}
	return restore(anthropicResult(m.Call().ID, anthropicOutput(content), isError), inside(kept, "block")).JSON()
}

// output returns the content of a result for an array from elsewhere. It is
// parts if the provider that it came from has parts there, or if all of it
// can be said as such; else it is just data.
func (s *anthropicEntries) output(i int, m state.Message, array []byte) []byte {
	_, chat := origin.Of(m, origin.OpenAI)
	_, responses := origin.Of(m, origin.OpenAIResponses)
	blocks, unsaid := anthropicBlocks(array, true)
	if !chat && !responses && (len(unsaid) > 0 || len(blocks) == 0) {
		return jsontext.AppendQuote(nil, string(array))
	}
	for _, what := range unsaid {
		s.encoder.omit(i, what)
	}
	if len(blocks) == 0 {
		return nil
	}
	return jsontext.Array(blocks)
}

// anthropicTogether reports whether a message belongs to the same entry as the
// one before it, if both have the same role: as it says, or as origin.Joins does;
// and results go together.
func anthropicTogether(before, m state.Message) bool {
	if joined, said := origin.Joined(m); said {
		return joined
	}
	if _, result := m.(state.ToolResultMessage); result {
		return before.Type() == m.Type()
	}
	return origin.Joins(before, m)
}

// anthropicContent is the content of an entry.
type anthropicContent struct {
	text   []byte // if that is all
	blocks [][]byte
	own    bool // it may be empty
}

// add adds to the content: a text that is a JSON string, and blocks. Next to
// something else a text becomes a block, and an empty one nothing.
func (c *anthropicContent) add(text []byte, blocks ...[]byte) {
	if text != nil && c.text == nil && c.blocks == nil {
		c.text = text
		return
	}
	for _, t := range [][]byte{c.text, text} {
		if t != nil && string(t) != `""` {
			c.blocks = append(c.blocks, anthropicText(t))
		}
	}
	c.text, c.blocks = nil, append(c.blocks, blocks...)
}

// addText adds what a text message says, of parts from elsewhere what the format
// can express. The system prompt cannot have media.
func (c *anthropicContent) addText(e *encoder, i int, m state.TextMessage, media bool) {
	content := []byte(m.Content())
	_, own := e.kept(m)
	switch jsontext.Kind(content) {
	case "string":
		c.add(content)
	case "array":
		if own {
			blocks, _ := jsontext.Elements(content) // checked by the message
			c.own = true
			c.add(nil, blocks...)
			return
		}
		blocks, unsaid := anthropicBlocks(content, media)
		for _, what := range unsaid {
			e.omit(i, what)
		}
		c.add(nil, blocks...)
	}
}

// json returns the content, nil if there is none.
func (c *anthropicContent) json() []byte {
	if c.text != nil || len(c.blocks) == 0 && !c.own {
		return c.text
	}
	return jsontext.Array(c.blocks)
}
