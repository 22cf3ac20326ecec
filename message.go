package state

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Message is one message of a conversation: a [TextMessage], a
// [ToolCallMessage], a [ToolResultMessage], or an [UnknownMessage] for a type
// that this library passes through. No other type is accepted as a message.
//
// A message is an immutable value. It holds its JSON once, without space
// between the tokens and otherwise as it came: it keeps unknown members and
// parts, the spelling of numbers, and the difference between null and a missing
// member. The accessors read from that text. Messages may be copied, kept and
// used by many goroutines.
type Message interface {
	Type() string // "text", "tool_call", "tool_result", or the type of an UnknownMessage
	Role() string // "user", "assistant", or any other text: multi-agent logs have more roles

	// Text returns what the message says as text: that of a TextMessage or of a
	// ToolResultMessage, and "" for other messages.
	Text() string

	// Raw returns the whole message, compact, without HTML escaping. Decoding
	// it gives an equal message with the same Raw.
	Raw() JSON

	// Extra returns a member of the message for which its type has no accessor.
	// It returns false if the message has no such member.
	Extra(name string) (JSON, bool)

	// Equal reports whether both have the same type and the same JSON value in
	// the sense of [JSON.Equal].
	Equal(Message) bool

	// MarshalJSON returns Raw, and null for the zero value. json.Marshal
	// escapes <, > and & in it, but the decoded message is still Equal.
	MarshalJSON() ([]byte, error)

	// String describes the message in one short quoted line, for debugging.
	String() string

	hash() uint64 // of the JSON value: the same for equal messages
	size() int    // bytes of JSON
}

// TextMessage is a message that the system, the user or an assistant wrote.
type TextMessage struct{ *messageBody }

// ToolCallMessage is an assistant's request to call tools.
type ToolCallMessage struct{ *messageBody }

// ToolResultMessage is the result of one tool call.
type ToolResultMessage struct{ *messageBody }

// UnknownMessage is a message of any other type, kept as it came.
type UnknownMessage struct{ *messageBody }

const (
	messageBytes = 64 << 20
	messageDepth = 64
	// messageCalls is how many calls a message, and the output of one result,
	// may have. No model makes as many. Finding the calls that results answer
	// may then compare each with each.
	messageCalls = 256
)

var messageLimits = jsontext.Limits{Bytes: messageBytes, Depth: messageDepth}

// SystemText returns a text message of the system. As in all constructors,
// invalid UTF-8 in a string is replaced by U+FFFD.
func SystemText(text string) TextMessage { return newText("system", text, "") }

// UserText returns a text message of the user.
func UserText(text string) TextMessage { return newText("user", text, "") }

// UserSays adds a text of the user to the conversation. In a workspace, messages
// do that by themselves.
func (s *State) UserSays(text string) error { return Messages.Set(s, []Message{UserText(text)}) }

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

// Text returns a text message of any role, such as the name of an agent in a
// log of several. It has no stop_reason.
func Text(role, text string) TextMessage {
	b := make([]byte, 0, len(role)+len(text)+len(text)/8+64)
	b = append(b, `{"type":"text","role":`...)
	b = jsontext.AppendQuote(b, role)
	b = append(b, `,"content":`...)
	b = jsontext.AppendQuote(b, text)
	body, _ := newBody(append(b, '}')) // valid by construction
	return TextMessage{body}
}

// Parts returns a text message of any role whose content is a list of parts,
// such as texts and images. A part is a JSON object in the words of a provider:
// package provider converts what other providers have a place for. A part of
// type text must have a text. The error is a [TypeError] or a [LimitError] with
// the place of the part, as in $.content[1].
func Parts(role string, parts ...JSON) (TextMessage, error) {
	b := append([]byte(`{"type":"text","role":`), jsontext.AppendQuote(nil, role)...)
	b = append(b, `,"content":[`...)
	for i, part := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		data, path := []byte(part), jsontext.Index("$.content", i)
		err := jsontext.Check(data, jsontext.Limits{Depth: messageDepth - 2})
		if got := jsontext.Kind(data); err == nil && got != "object" {
			err = &fault.Error{Path: "$", Want: "object", Got: got}
		}
		if err != nil {
			return TextMessage{}, jsonError("message", fault.Under(path, err))
		}
		b = jsontext.AppendCompact(b, data)
	}
	body, err := newBody(append(b, "]}"...))
	if err != nil {
		return TextMessage{}, jsonError("message", err)
	}
	return TextMessage{body}, nil
}

// ToolCalls returns an assistant's message that calls tools. An Input that is
// not [JSON.Valid], or nested too deep for a message (64 levels in all),
// becomes a JSON string with that text. Members of Extra called id, name or
// input are left out. An Extra that is not an object is left out as a whole. A
// message of more than 256 calls can neither be decoded nor stored.
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

// ToolResult returns the result of a call. It treats the call and the content
// as [ToolCalls] treats a call and its Input. The content "" becomes null.
func ToolResult(call ToolCall, content JSON) ToolResultMessage {
	return newResult(call, content, "")
}

// ToolError returns the result of a call that failed, with a text for the model
// to read. Only its member "is_error":true makes it an error, never the text.
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
// A type that embeds a message implements Message as well, but its value could
// change.
func isMessage(m Message) bool {
	switch m.(type) {
	case TextMessage, ToolCallMessage, ToolResultMessage, UnknownMessage:
		return m.Raw() != ""
	}
	return false
}

// DecodeMessage reads one message. It is strict: member names in their exact
// case and once per object, valid UTF-8, at most 64 levels, 64 MiB and 256
// calls, and role, content, tools and tool as their type has them; the error
// names the JSON path. It is lossless: Raw is data without the space between tokens. A
// type other than text, tool_call and tool_result gives an [UnknownMessage].
//
// It does not retain data. The constructors have no limit on size: they can
// make a message of more than 64 MiB, which cannot be decoded.
func DecodeMessage(data []byte) (Message, error) {
	m, err := readMessage(data)
	if err != nil {
		return nil, jsonError("message", err)
	}
	return m, nil
}

// readMessage is DecodeMessage with errors that are faults.
func readMessage(data []byte) (Message, error) {
	if err := jsontext.Check(data, messageLimits); err != nil {
		return nil, err
	}
	return messageOf(data)
}

// messageReader reads many messages with the memory that reading one takes.
type messageReader struct {
	checker jsontext.Checker
	data    []byte
}

// read is readMessage for a text that the message shares.
func (r *messageReader) read(text string) (Message, error) {
	r.data = append(r.data[:0], text...)
	if err := r.checker.Check(r.data, messageLimits); err != nil {
		return nil, err
	}
	body, err := newSharedBody(r.data, text)
	if err == nil {
		err = body.checkCalls()
	}
	if err != nil {
		return nil, err
	}
	return body.message(), nil
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

// DecodeMessages reads an array of messages as [DecodeMessage] reads each. It
// returns no messages for null. An error names the place in the array, as in
// $[3].content, and then no message is returned.
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

// messageOf returns the message in a checked text. It does not retain data.
func messageOf(data []byte) (Message, error) {
	body, err := newBody(data)
	if err == nil {
		err = body.checkCalls()
	}
	if err != nil {
		return nil, err
	}
	return body.message(), nil
}

// message returns the message with a body.
func (b *messageBody) message() Message {
	switch b.typ {
	case typeText:
		return TextMessage{b}
	case typeToolCall:
		return ToolCallMessage{b}
	case typeToolResult:
		return ToolResultMessage{b}
	}
	return UnknownMessage{b}
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
	parts, _ := jsontext.Elements([]byte(content)) // newBody has checked them
	var texts []string
	for _, element := range parts {
		if part, _ := jsontext.Members(element); isTextPart(part) {
			texts = append(texts, part.String("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// StopReason returns why the model stopped: "stop", "tool" or a word of the
// provider. It is the JSON text if that is not a string, and "" if it is
// missing or null.
func (m TextMessage) StopReason() string { return m.stopReason() }

// Equal reports whether other is a TextMessage of the same JSON value.
func (m TextMessage) Equal(other Message) bool {
	o, ok := other.(TextMessage)
	return ok && m.equal(o.messageBody)
}

func (m TextMessage) String() string {
	return "text " + quoteASCII(m.Role()) + ": " + quoteASCII(m.Text())
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of another
// type is an error.
func (m *TextMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

// Type returns "tool_call".
func (m ToolCallMessage) Type() string { return typeToolCall }

// Calls returns the calls in their order, in a new slice.
func (m ToolCallMessage) Calls() []ToolCall { return append([]ToolCall(nil), m.toolCalls()...) }

// StopReason is as in [TextMessage.StopReason]. It does not tell whether there
// are calls to answer: some providers say "stop" here.
func (m ToolCallMessage) StopReason() string { return m.stopReason() }

// Equal reports whether other is a ToolCallMessage of the same JSON value.
func (m ToolCallMessage) Equal(other Message) bool {
	o, ok := other.(ToolCallMessage)
	return ok && m.equal(o.messageBody)
}

func (m ToolCallMessage) String() string {
	calls := m.toolCalls()
	s := "tool_call " + quoteASCII(m.Role()) + ":"
	for i, call := range calls {
		if i == shownCalls {
			return s + " and " + strconv.Itoa(len(calls)-i) + " more"
		}
		s += " " + quoteASCII(call.Name) + " id " + quoteASCII(call.ID)
	}
	return s
}

// UnmarshalJSON reads a message as [DecodeMessage] does. A message of another
// type is an error.
func (m *ToolCallMessage) UnmarshalJSON(data []byte) error { return unmarshalMessage(m, data) }

// Type returns the type in the message, and "" for the zero value.
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
	return "unknown " + quoteASCII(m.Type()) + " " + quoteASCII(m.Role()) + ": " + strconv.Itoa(m.size()) + " bytes"
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
		return &TypeError{
			Field: "message", Path: "$.type", Want: "that of a " + reflect.TypeFor[M]().Name(),
			Got: fault.Quote(decoded.Type()),
		}
	}
	*dst = m
	return nil
}

// shownCalls is the number of calls that String shows.
const shownCalls = 4

// quoteASCII returns text as fault.Quote does, in ASCII: a message holds text
// of strangers, and letters such as those written from right to left change how
// a terminal shows the rest of the line.
func quoteASCII(text string) string { return strconv.QuoteToASCII(fault.Clip(text)) }
