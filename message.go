package state

import (
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Message is one message of a conversation: a [TextMessage], a
// [ToolCallMessage], a [ToolResultMessage], or an [UnknownMessage] for a type
// this library passes through. No other type implements it.
//
// A message is an immutable value. It holds its JSON once, compact and
// otherwise as it came: members and parts nobody knows, numbers as spelled,
// null apart from missing. The accessors read from that text. Messages may be
// copied, kept and used by many goroutines.
type Message interface {
	Type() string // "text", "tool_call", "tool_result", or what an UnknownMessage says
	Role() string // "user", "assistant" …; any text, since multi-agent logs have any

	// Raw returns the whole message, compact, without HTML escaping. Decoding
	// it gives an equal message with the same Raw.
	Raw() JSON

	// Extra returns a member of the message for which its type has no
	// accessor, and false if there is none.
	Extra(name string) (JSON, bool)

	// Equal reports whether both have the same type and the same JSON value,
	// as [JSON.Equal] has it.
	Equal(Message) bool

	// MarshalJSON returns Raw, and null for the zero value. json.Marshal
	// escapes <, > and & in it; the decoded message is Equal all the same.
	MarshalJSON() ([]byte, error)

	// String describes the message in one short quoted line, for debugging.
	String() string

	hash() uint64 // of the JSON value: the same for equal messages
	size() int    // bytes of JSON
}

// TextMessage is what the system, the user or an assistant said.
type TextMessage struct{ *messageBody }

// ToolCallMessage is an assistant's request to call tools.
type ToolCallMessage struct{ *messageBody }

// ToolResultMessage is what a tool returned.
type ToolResultMessage struct{ *messageBody }

// UnknownMessage is a message of another type, kept as it came.
type UnknownMessage struct{ *messageBody }

// ToolCall is one call of a tool.
type ToolCall struct {
	ID    string // not unique, and "" with some providers
	Name  string
	Input JSON // the arguments; "" if absent
	Extra JSON // an object of the call's other members as they came, or ""
}

const (
	typeText       = "text"
	typeToolCall   = "tool_call"
	typeToolResult = "tool_result"

	messageBytes = 64 << 20
	messageDepth = 64
)

var messageSeed = maphash.MakeSeed()

// SystemText returns a text message of the system. As in all constructors,
// invalid UTF-8 in a string is replaced by U+FFFD.
func SystemText(text string) TextMessage { return newText("system", text, "") }

// UserText returns a text message of the user.
func UserText(text string) TextMessage { return newText("user", text, "") }

// AssistantText returns a text message of an assistant that ended its turn:
// its stop_reason is "stop".
func AssistantText(text string) TextMessage { return newText("assistant", text, "stop") }

func newText(role, text, stop string) TextMessage {
	b := make([]byte, 0, len(text)+len(text)/8+72)
	b = append(b, `{"type":"text","role":"`...)
	b = append(b, role...)
	b = append(b, `","content":`...)
	b = jsontext.AppendQuote(b, text)
	if stop != "" {
		b = append(b, `,"stop_reason":"`...)
		b = append(b, stop...)
		b = append(b, '"')
	}
	body, _ := newBody(append(b, '}')) // valid by construction
	return TextMessage{body}
}

// ToolCalls returns an assistant's message that calls tools. An Input that is
// not [JSON.Valid], or nested too deep for a message (64 levels in all),
// becomes a JSON string with that text. Of Extra, members called id, name or
// input are left out, and so is all of it if it is no object.
func ToolCalls(calls ...ToolCall) ToolCallMessage {
	b := []byte(`{"type":"tool_call","role":"assistant","tools":[`)
	for i, call := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCall(b, call, messageDepth-3)
	}
	body, _ := newBody(append(b, `],"stop_reason":"tool"}`...))
	return ToolCallMessage{body}
}

// ToolResult returns the result of a call. The call and the content are
// treated as the calls of [ToolCalls]; the content "" becomes null.
func ToolResult(call ToolCall, content JSON) ToolResultMessage {
	return newResult(call, content, "")
}

// ToolError returns the result of a call that failed, with a text for the
// model to read. What makes it an error is its member "is_error":true, never
// the text.
func ToolError(call ToolCall, text string) ToolResultMessage {
	return newResult(call, JSONText(text), `,"is_error":true`)
}

func newResult(call ToolCall, content JSON, flag string) ToolResultMessage {
	if content == "" {
		content = "null"
	}
	b := make([]byte, 0, len(content)+len(call.Input)+256)
	b = append(b, `{"type":"tool_result","role":"tool_result","tool":`...)
	b = appendCall(b, call, messageDepth-2)
	b = append(b, `,"content":`...)
	b = appendJSON(b, content, messageDepth-1)
	b = append(b, `,"stop_reason":"tool"`...)
	b = append(b, flag...)
	body, _ := newBody(append(b, '}'))
	return ToolResultMessage{body}
}

// isMessage reports whether m is one of the four types, and not its zero value.
func isMessage(m Message) bool {
	switch m := m.(type) {
	case TextMessage:
		return m.messageBody != nil
	case ToolCallMessage:
		return m.messageBody != nil
	case ToolResultMessage:
		return m.messageBody != nil
	case UnknownMessage:
		return m.messageBody != nil
	}
	return false
}

// DecodeMessage reads one message. It is strict: member names in their exact
// case and once per object, valid UTF-8, at most 64 levels and 64 MiB, and
// role, content, tools and tool as their type has them; the error names the
// JSON path. It is lossless: Raw is data without the space between tokens. A
// type other than text, tool_call and tool_result gives an [UnknownMessage].
//
// It does not retain data. Constructors set no limit on size, so a message of
// more than 64 MiB can be made but not decoded.
func DecodeMessage(data []byte) (Message, error) {
	if err := jsontext.Check(data, jsontext.Limits{Bytes: messageBytes, Depth: messageDepth}); err != nil {
		return nil, jsonError("message", err)
	}
	return decodeChecked(data)
}

// decodeChecked is DecodeMessage for checked JSON. Only the size is checked
// again, because the text may have been made of parts of other texts.
func decodeChecked(data []byte) (Message, error) {
	if len(data) > messageBytes {
		limit := &fault.LimitError{Path: "$", Name: "Bytes", Limit: messageBytes, Got: len(data)}
		return nil, jsonError("message", limit)
	}
	m, err := messageOf(data)
	if err != nil {
		return nil, jsonError("message", err)
	}
	return m, nil
}

// DecodeMessages reads an array of messages as [DecodeMessage] reads each;
// null gives none. An error names the place in the array, as in
// $[3].content, and no message is returned.
func DecodeMessages(data []byte) ([]Message, error) {
	msgs, err := decodeMessages(data)
	if err != nil {
		return nil, jsonError("messages", err)
	}
	return msgs, nil
}

func decodeMessages(data []byte) ([]Message, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: messageDepth + 1}); err != nil {
		return nil, err
	}
	if jsontext.Kind(data) == "null" {
		return nil, nil
	}
	elements, err := jsontext.Elements(data)
	if err != nil {
		return nil, err
	}
	msgs := make([]Message, len(elements))
	for i, element := range elements {
		path := jsontext.Index("$", i)
		if len(element) > messageBytes {
			return nil, &fault.LimitError{Path: path, Name: "Bytes", Limit: messageBytes, Got: len(element)}
		}
		if msgs[i], err = messageOf(element); err != nil {
			return nil, fault.Under(path, err)
		}
	}
	return msgs, nil
}

// messageOf makes a message of a checked text.
func messageOf(data []byte) (Message, error) {
	body, err := newBody(jsontext.AppendCompact(make([]byte, 0, len(data)), data))
	if err != nil {
		return nil, err
	}
	switch body.typ {
	case typeText:
		return TextMessage{body}, nil
	case typeToolCall:
		return ToolCallMessage{body}, nil
	case typeToolResult:
		return ToolResultMessage{body}, nil
	}
	return UnknownMessage{body}, nil
}

// Type returns "text".
func (m TextMessage) Type() string { return typeText }

// Content returns the content: a JSON string, an array of parts, null, or ""
// if it is missing.
func (m TextMessage) Content() JSON { return m.contentJSON() }

// Text returns the content if it is a string, the texts of its text parts
// joined with "\n" if it has parts, and "" if it is null or missing.
func (m TextMessage) Text() string {
	content := m.Content()
	switch {
	case content == "null":
		return ""
	case content == "" || content[0] != '[':
		return content.text()
	}
	parts, _ := jsontext.Elements([]byte(content)) // checked by newBody
	var texts []string
	for _, part := range parts {
		if members, _ := jsontext.Members(part); isTextPart(members) {
			texts = append(texts, jsontext.Unquote(member(members, "text")))
		}
	}
	return strings.Join(texts, "\n")
}

// StopReason returns why the model stopped: "stop", "tool" or what the
// provider said, the JSON text if that is no string, and "" if it is missing
// or null.
func (m TextMessage) StopReason() string { return m.stopReason() }

// Equal reports whether other is a TextMessage of the same JSON value.
func (m TextMessage) Equal(other Message) bool {
	o, ok := other.(TextMessage)
	return ok && m.equal(o.messageBody)
}

func (m TextMessage) String() string {
	return "text " + quoted(m.Role()) + ": " + quoted(m.Text())
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of another
// type is an error.
func (m *TextMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

// Type returns "tool_call".
func (m ToolCallMessage) Type() string { return typeToolCall }

// Calls returns the calls in their order, in a slice of the caller's own.
func (m ToolCallMessage) Calls() []ToolCall { return append([]ToolCall(nil), m.toolCalls()...) }

// StopReason is as in [TextMessage.StopReason]. That there are calls to answer
// does not depend on it: providers also say "stop" here.
func (m ToolCallMessage) StopReason() string { return m.stopReason() }

// Equal reports whether other is a ToolCallMessage of the same JSON value.
func (m ToolCallMessage) Equal(other Message) bool {
	o, ok := other.(ToolCallMessage)
	return ok && m.equal(o.messageBody)
}

func (m ToolCallMessage) String() string {
	calls := m.toolCalls()
	s := "tool_call " + quoted(m.Role()) + ":"
	for i, call := range calls {
		if i == shownCalls {
			return s + " and " + strconv.Itoa(len(calls)-i) + " more"
		}
		s += " " + quoted(call.Name) + " id " + quoted(call.ID)
	}
	return s
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of another
// type is an error.
func (m *ToolCallMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

// Type returns "tool_result".
func (m ToolResultMessage) Type() string { return typeToolResult }

// Call returns the call that the result answers.
func (m ToolResultMessage) Call() ToolCall {
	if calls := m.toolCalls(); len(calls) > 0 {
		return calls[0]
	}
	return ToolCall{}
}

// Content returns what the tool returned, and "" if it is missing.
func (m ToolResultMessage) Content() JSON { return m.contentJSON() }

// Text returns the content if it is a string, else its JSON. A string that
// looks like a number stays what it is.
func (m ToolResultMessage) Text() string { return m.Content().text() }

// IsError reports whether the message says that the call failed, by its
// member "is_error":true. The content says nothing about it.
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
	return s + " " + quoted(call.Name) + " id " + quoted(call.ID) + ": " + quoted(m.Text())
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of another
// type is an error.
func (m *ToolResultMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

// Type returns what the message says, and "" for the zero value.
func (m UnknownMessage) Type() string {
	if m.messageBody == nil {
		return ""
	}
	return m.typ
}

// Equal reports whether other is an UnknownMessage of the same JSON value.
func (m UnknownMessage) Equal(other Message) bool {
	o, ok := other.(UnknownMessage)
	return ok && m.equal(o.messageBody)
}

func (m UnknownMessage) String() string {
	return "unknown " + quoted(m.Type()) + " " + quoted(m.Role()) + ": " + strconv.Itoa(m.size()) + " bytes"
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of a known
// type is an error.
func (m *UnknownMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

func unmarshalMessage[M Message](dst *M, data []byte) error {
	decoded, err := DecodeMessage(data)
	if err != nil {
		return err
	}
	m, ok := decoded.(M)
	if !ok {
		return &TypeError{Field: "message", Path: "$.type", Want: "that of a " + reflect.TypeFor[M]().Name(), Got: quoted(decoded.Type())}
	}
	*dst = m
	return nil
}

const (
	shownCalls = 4  // of a message with many
	shownRunes = 60 // of a long text
)

// quoted returns the beginning of s in quotes, in printable ASCII.
func quoted(s string) string {
	n := 0
	for i := range s {
		if n++; n > shownRunes {
			return strconv.QuoteToASCII(s[:i]) + "…"
		}
	}
	return strconv.QuoteToASCII(s)
}
