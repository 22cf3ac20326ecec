package aguistate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace"
)

// message is a message as a client has it.
type message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Name       string          `json:"name,omitempty"`
	Content    json.RawMessage `json:"content,omitempty"` // a string or a list of parts
	ToolCalls  []toolCall      `json:"toolCalls,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`

	Error string `json:"error,omitempty"` // of a tool of the client

	reasoning string // that was stored with it, which no snapshot has
	agent     string // that has said it
	number    int    // 0 if it is not stored
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// equal reports whether a client shows both alike. An assistant that says nothing
// and calls tools may have an empty text or none.
func (m *message) equal(o *message) bool {
	return m.ID == o.ID && m.Role == o.Role && m.Name == o.Name && m.ToolCallID == o.ToolCallID &&
		slices.Equal(m.ToolCalls, o.ToolCalls) &&
		(bytes.Equal(m.Content, o.Content) || len(m.ToolCalls) > 0 && m.text() == "" && o.text() == "")
}

// text returns the content if it is a string.
func (m *message) text() string {
	var text string
	_ = json.Unmarshal(m.Content, &text) // else it has parts
	return text
}

func (m *message) hasParts() bool { return len(m.Content) > 0 && m.Content[0] == '[' }

// part is a part of a message of a user.
type part struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`

	// Of version 0.0: type "binary".
	MimeType string `json:"mimeType,omitempty"`
	URL      string `json:"url,omitempty"`
	Data     string `json:"data,omitempty"`
}

type source struct {
	Type     string `json:"type"` // data or url
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitempty"`
}

// userMessage returns what a user says as a message of a State.
func (m *message) userMessage() (state.Message, error) {
	if !m.hasParts() {
		return state.UserText(m.text()), nil
	}
	var parts []part
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return nil, invalid("message %q: %v", m.ID, err)
	}
	var out []state.JSON
	for _, p := range parts {
		out = append(out, p.content())
	}
	return state.Parts("user", out...)
}

// content returns what a user has sent as a part of a message: a text as it is,
// pictures in the words of OpenAI and other files in those of Gemini, which name
// their type. Package provider translates them. A text stands for what cannot be
// sent: a client sends all messages each time, and an error would end the thread.
func (p part) content() state.JSON {
	if p.Type == "binary" {
		p.Type = fileType(p.MimeType)
		p.Source = &source{"data", p.Data, p.MimeType}
		if p.URL != "" {
			p.Source = &source{"url", p.URL, p.MimeType}
		}
	}
	isFile := slices.Contains([]string{"image", "document", "audio", "video"}, p.Type)
	switch {
	case p.Type == "text":
		return state.JSON(encode(part{Type: "text", Text: p.Text}))
	case !isFile || p.Source == nil || p.Source.Value == "":
	case p.Source.Type == "url" && p.Type == "image":
		return imagePart(p.Source.Value)
	case p.Source.Type == "data" && p.Type == "image":
		return imagePart("data:" + p.Source.MimeType + ";base64," + p.Source.Value)
	case p.Source.Type == "url":
		return filePart("fileData", "fileUri", *p.Source)
	case p.Source.Type == "data" && p.Source.MimeType != "":
		return filePart("inlineData", "data", *p.Source)
	}
	kind := p.Type
	if !isFile {
		kind = "content"
	}
	return state.JSON(encode(part{Type: "text", Text: "[" + kind + " left out]"}))
}

// fileType returns the type of a part with a file.
func fileType(mime string) string {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}

// filePart returns a file in the words of Gemini.
func filePart(name, at string, file source) state.JSON {
	var blob jsontext.Object
	if file.MimeType != "" {
		blob = blob.WithString("mimeType", file.MimeType)
	}
	return state.JSON(jsontext.Object{}.With(name, blob.WithString(at, file.Value).JSON()).JSON())
}

// imagePart returns a picture in the words of OpenAI, which package provider
// translates.
func imagePart(url string) state.JSON {
	at := jsontext.Object{}.WithString("url", url)
	return state.JSON(jsontext.Object{}.WithString("type", "image_url").With("image_url", at.JSON()).JSON())
}

// contentOf returns the content of a text message for a client, and what the
// model has thought. Parts that the protocol has no words for are left out.
func contentOf(m state.TextMessage, redact func(string) string) (content json.RawMessage, reasoning string) {
	if raw, ok := m.Extra("reasoning_content"); ok {
		_ = json.Unmarshal([]byte(raw), &reasoning)
	}
	var parts []struct {
		Type, Text, Thinking string
		ImageURL             struct{ URL string } `json:"image_url"`

		InlineData, FileData *struct{ MimeType, Data, FileURI string }
	}
	if json.Unmarshal([]byte(m.Content()), &parts) != nil {
		return quote(redact(m.Text())), redact(reasoning)
	}
	shown := []part{}
	for _, p := range parts {
		mime, data, isData := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,")
		switch {
		case p.Type == "text":
			shown = append(shown, part{Type: "text", Text: redact(p.Text)})
		case p.Type == "thinking":
			reasoning += p.Thinking
		case p.Type == "image_url" && isData:
			shown = append(shown, part{Type: "image", Source: &source{"data", data, mime}})
		case p.Type == "image_url":
			shown = append(shown, part{Type: "image", Source: &source{"url", redact(p.ImageURL.URL), ""}})
		case p.InlineData != nil:
			shown = append(shown, part{Type: fileType(p.InlineData.MimeType), Source: &source{"data", p.InlineData.Data, p.InlineData.MimeType}})
		case p.FileData != nil:
			shown = append(shown, part{Type: fileType(p.FileData.MimeType), Source: &source{"url", redact(p.FileData.FileURI), p.FileData.MimeType}})
		}
	}
	if m.Role() != "user" || !slices.ContainsFunc(shown, func(p part) bool { return p.Type != "text" }) {
		return quote(redact(m.Text())), redact(reasoning)
	}
	return encode(shown), redact(reasoning)
}

// conversation is what a client is shown of a view.
type conversation struct {
	messages []message
	places   map[string]int // of messages, by their ids
	waiting  []waitingCall
	calls    map[string]bool // the ids of all calls
	last     int             // the highest number of a message
}

// waitingCall is a suspended call with its id here.
type waitingCall struct {
	id string
	workspace.Suspended
}

// messageID returns the id of a message by its number.
func messageID(number int) string { return fmt.Sprintf("msg-%d", number) }

// callID returns the id of a call: its key, or its place if it was never recorded.
func callID(c state.ToolCall, number, index int) string {
	if c.Key == "" {
		return fmt.Sprintf("call-%d-%d", number, index)
	}
	return c.Key
}

// view returns what a page may read of a workspace, and its conversation.
func (h *Handler) view(ctx context.Context, id string) (*workspace.View, *conversation, error) {
	v, err := h.m.View(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	v, c := h.shown(v)
	return v, c, nil
}

// shown returns what a page may read of a view. It is told the names of agents that
// have said something also if it may not read their results.
func (h *Handler) shown(v *workspace.View) (*workspace.View, *conversation) {
	agents := map[state.JSON]string{} // by messages
	for _, r := range v.State().History().All() {
		for _, m := range r.Output {
			agents[m.Raw()] = r.Agent
		}
	}
	if h.opts.Agent != "" {
		v = v.As(h.opts.Agent)
	}
	return v, newConversation(v, agents)
}

// events yields what a page may read of what happens in a workspace.
func (h *Handler) events(ctx context.Context, id string) iter.Seq2[workspace.Event, error] {
	if h.opts.Agent != "" {
		return h.m.Watch(ctx, id).As(h.opts.Agent)
	}
	return h.m.Watch(ctx, id).AsHost()
}

// newConversation translates the messages of a view. Those that wait are at the
// end.
func newConversation(v *workspace.View, agents map[state.JSON]string) *conversation {
	c := &conversation{places: map[string]int{}, calls: map[string]bool{}}
	by := map[string]string{}     // the agents of calls, by the ids of the calls
	open := map[string][]string{} // the ids of open calls, by those of providers: a result may have no key
	begun := map[string]bool{}    // the messages of users that are in the conversation
	for m := range v.Messages(0, -1) {
		out := message{ID: messageID(m.Number), number: m.Number, agent: agents[m.Message.Raw()]}
		c.last = max(c.last, m.Number)
		switch msg := m.Message.(type) {
		case state.TextMessage:
			out.Role, out.Name = roleOf(msg.Role())
			out.Content, out.reasoning = contentOf(msg, v.Redact)
			if out.Role == "user" && m.Run != "" && !begun[m.Run] {
				out.ID, begun[m.Run] = v.Redact(m.Run), true
			}
		case state.ToolCallMessage:
			out.Role = "assistant"
			for i, call := range msg.Calls() {
				id := callID(call, m.Number, i)
				c.calls[id], by[id] = true, out.agent
				open[cmp.Or(call.ID, call.Name)] = append(open[cmp.Or(call.ID, call.Name)], id)
				out.ToolCalls = append(out.ToolCalls, toolCall{id, "function", functionCall{v.Redact(call.Name), argumentsOf(call, v.Redact)}})
			}
		case state.ToolResultMessage:
			out.Role, out.Content = "tool", quote(v.Redact(msg.Text()))
			call := msg.Call()
			ids := open[cmp.Or(call.ID, call.Name)]
			if out.ToolCallID = call.Key; call.Key == "" && len(ids) > 0 {
				out.ToolCallID = ids[0]
			}
			if !c.calls[out.ToolCallID] {
				continue // its call is no longer in the conversation
			}
			open[cmp.Or(call.ID, call.Name)] = slices.DeleteFunc(ids, func(id string) bool { return id == out.ToolCallID })
		default:
			continue
		}
		c.add(out)
	}
	for _, s := range v.Suspended() {
		if c.calls[s.Key] {
			s.Agent = by[s.Key]
			c.waiting = append(c.waiting, waitingCall{s.Key, s})
		}
	}
	for _, m := range pending(v) {
		if msg, ok := m.Content.(state.TextMessage); ok && !begun[m.ID] {
			content, _ := contentOf(msg, v.Redact)
			c.add(message{ID: v.Redact(m.ID), Role: "user", Content: content})
		}
	}
	return c
}

func (c *conversation) add(m message) {
	if !c.has(m.ID) {
		c.places[m.ID] = len(c.messages)
	}
	c.messages = append(c.messages, m)
}

func (c *conversation) has(id string) bool {
	_, ok := c.places[id]
	return ok
}

// pending returns the messages whose handling has not ended, the next one first.
func pending(v *workspace.View) []workspace.Message {
	var list []workspace.Message
	if v.Run != nil && v.Run.Message.ID != "" {
		list = append(list, v.Run.Message)
	}
	return append(list, v.Queue...)
}

func argumentsOf(c state.ToolCall, redact func(string) string) string {
	switch arguments := redact(string(c.Input)); {
	case c.Input == "":
		return "{}"
	case json.Valid([]byte(arguments)):
		return arguments
	default: // a secret is a piece of JSON
		return `"[SECRET]"`
	}
}

// roleOf returns the role of a message for a client. Those of other agents are
// names.
func roleOf(role string) (out, name string) {
	switch role {
	case "user", "system", "developer", "assistant":
		return role, ""
	}
	return "assistant", role
}

// encode returns the JSON of a value whose type has one.
func encode(v any) json.RawMessage {
	data, _ := jsontext.Marshal(v)
	return data
}

func quote(text string) json.RawMessage { return encode(text) }
