package state

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/excerpt"
	"github.com/agentstate/state/internal/jsontext"
)

// Type returns "tool_result".
func (m ToolResultMessage) Type() string { return typeToolResult }

// Call returns the call that the result answers.
func (m ToolResultMessage) Call() ToolCall {
	if calls := m.toolCalls(); len(calls) > 0 {
		return calls[0]
	}
	return ToolCall{}
}

// Content returns the JSON that the tool returned, and "" if it is missing.
func (m ToolResultMessage) Content() JSON { return m.contentJSON() }

// Text returns the content if it is a string, the texts of its text parts joined
// with "\n" if it is a list of parts, as many results are, and its JSON
// otherwise. A list is one of parts if each element is an object with a type,
// and one of them is a text, or a resource of the Model Context Protocol that is
// one. A string that looks like a number is returned as it is.
func (m ToolResultMessage) Text() string { text, _ := m.textAndFiles(); return text }

// textAndFiles returns the Text, and the parts that are no texts.
func (m ToolResultMessage) textAndFiles() (text string, files [][]byte) {
	content := m.Content()
	if content == "" || content[0] != '[' {
		return content.text(), nil
	}
	elements, _ := jsontext.Elements([]byte(content)) // checked with the message
	var texts []string
	for _, element := range elements {
		part, _ := jsontext.Members(element) // none if it is not an object
		typ := part.String("type")
		if typ == "resource" {
			part = part.Object("resource")
		}
		switch text := part.Get("text"); {
		case typ == "":
			return content.text(), nil
		case (typ == "text" || typ == "input_text" || typ == "resource") && jsontext.Kind(text) == "string":
			texts = append(texts, jsontext.Unquote(text))
		default:
			files = append(files, element)
		}
	}
	if texts == nil {
		return content.text(), nil
	}
	return strings.Join(texts, "\n"), files
}

// IsError reports whether the call failed: whether the message has the member
// "is_error":true. The content does not count.
func (m ToolResultMessage) IsError() bool {
	flag, _ := m.Extra("is_error")
	return flag == "true"
}

// StopReason is as in [TextMessage.StopReason].
func (m ToolResultMessage) StopReason() string { return m.stopReason() }

// Equal reports whether other is a ToolResultMessage of the same JSON value.
func (m ToolResultMessage) Equal(other Message) bool {
	o, ok := other.(ToolResultMessage)
	return ok && m.equal(o.messageBody)
}

func (m ToolResultMessage) String() string {
	s := "tool_result"
	if m.IsError() {
		s = "tool_result (error)"
	}
	call := m.Call()
	return s + " " + quoteASCII(call.Name) + " id " + quoteASCII(call.ID) + ": " + quoteASCII(m.Text())
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of another
// type is an error.
func (m *ToolResultMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

// sizedMessages returns what is written to the conversation, with the sizes of its
// results. It does not change v.
func (h *handle) sizedMessages(v any) any {
	msgs, _ := v.([]Message)
	for i, m := range msgs {
		if sized := h.sized(m); sized != m {
			msgs = slices.Clone(msgs)
			msgs[i], v = sized, msgs
		}
	}
	return v
}

// sized returns a result as it is recorded: a large one says from now on how many
// bytes of it a model is shown. It is cut at no place within a secret, of which no
// redactor would find a half.
func (h *handle) sized(msg Message) Message {
	m, _ := msg.(ToolResultMessage)
	limit := h.schema.limits.ResultBytes
	if limit == 0 || m.size() <= limit || len(m.Text()) <= limit || m.hasExtra(excerpt.Member) {
		return msg
	}
	text, secrets := m.Text(), (&State{handle: *h}).hostRedactor()
	mask := func(text string) string { return secrets.Redact("\n" + text) } // which is no JSON
	masked, shown := mask(text), limit
	for ; shown > 0; shown -= 1 + limit/16 {
		head, tail := excerpt.Ends(text, shown)
		if strings.HasPrefix(masked, mask(text[:head])) && strings.HasSuffix(masked, mask(text[tail:])[1:]) {
			break
		}
	}
	members, _ := jsontext.Members([]byte(m.raw)) // checked when the message was made
	body, _ := newBody(members.With(excerpt.Member, strconv.AppendInt(nil, int64(max(shown, 0)), 10)).JSON())
	return ToolResultMessage{body}
}
