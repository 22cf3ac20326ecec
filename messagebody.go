package state

import (
	"hash/maphash"
	"strings"

	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// ToolCall is one call of a tool.
type ToolCall struct {
	ID    string // by which the provider knows the call; it may repeat, and is "" with some
	Name  string
	Input JSON // the arguments; "" if absent
	Extra JSON // an object of the call's other members as they came, or ""
	// Key identifies the call. [History.Append] draws it at random when the answer
	// is recorded, and it stays: in other processes, after a takeover, in exports.
	// It is 15 to 64 letters, digits, "-", "_" and ".". Before that, and in
	// messages that are no part of a recorded answer, it is "".
	Key string
}

const (
	typeText       = "text"
	typeToolCall   = "tool_call"
	typeToolResult = "tool_result"
)

var messageSeed = maphash.MakeSeed()

// messageBody is what the four types of messages share. It is complete before
// anyone else sees the message, and never changes. The strings are parts of
// raw, unless they have escapes: a message holds its text once.
type messageBody struct {
	raw     string
	sum     uint64 // the hash of the JSON value
	typ     string
	role    string
	content JSON // of a text or tool_result
	stop    JSON
	more    *messageMore // nil for most text messages
}

type messageMore struct {
	calls []ToolCall // of a tool_call; of a tool_result the one that it answers
	extra []messageMember
}

type messageMember struct {
	name  string
	value JSON
}

// Text returns "": a type of messages that say a text has a method of its own.
func (b *messageBody) Text() string { return "" }

// Role returns the role, and "" for the zero value.
func (b *messageBody) Role() string {
	if b == nil {
		return ""
	}
	return b.role
}

// Raw returns the whole message, and "" for the zero value.
func (b *messageBody) Raw() JSON {
	if b == nil {
		return ""
	}
	return JSON(b.raw)
}

// Extra returns a member of the message for which its type has no accessor.
func (b *messageBody) Extra(name string) (JSON, bool) {
	if b == nil || b.more == nil {
		return "", false
	}
	for _, m := range b.more.extra {
		if m.name == name {
			return m.value, true
		}
	}
	return "", false
}

func (b *messageBody) hasExtra(name string) bool { _, ok := b.Extra(name); return ok }

// extraMember returns the k-th member without an accessor.
func (b *messageBody) extraMember(k int) (name, value string, ok bool) {
	if b == nil || b.more == nil || k >= len(b.more.extra) {
		return "", "", false
	}
	m := b.more.extra[k]
	return m.name, string(m.value), true
}

// callExtra returns the Extra of the k-th call.
func (b *messageBody) callExtra(k int) (string, bool) {
	if calls := b.toolCalls(); k < len(calls) {
		return string(calls[k].Extra), true
	}
	return "", false
}

// MarshalJSON returns Raw, and null for the zero value.
func (b *messageBody) MarshalJSON() ([]byte, error) { return b.Raw().MarshalJSON() }

func (b *messageBody) hash() uint64 {
	if b == nil {
		return 0
	}
	return b.sum
}

func (b *messageBody) size() int {
	if b == nil {
		return 0
	}
	return len(b.raw)
}

func (b *messageBody) equal(other *messageBody) bool {
	return b.hash() == other.hash() && b.Raw().Equal(other.Raw())
}

func (b *messageBody) contentJSON() JSON {
	if b == nil {
		return ""
	}
	return b.content
}

// stopReason returns the content of a string, and the JSON of anything else:
// one provider sends numbers.
func (b *messageBody) stopReason() string {
	if b == nil || b.stop == "null" {
		return ""
	}
	return b.stop.text()
}

func (b *messageBody) toolCalls() []ToolCall { return *b.sharedCalls() }

func (b *messageBody) sharedCalls() *[]ToolCall {
	if b == nil || b.more == nil {
		return &noCalls
	}
	return &b.more.calls
}

var noCalls []ToolCall

// checkCalls returns an error if the message has too many calls.
func (b *messageBody) checkCalls() error { return checkCalls("$.tools", len(b.toolCalls())) }

// checkCalls returns an error if n calls at a place are too many.
func checkCalls(path string, n int) error {
	if n > messageCalls {
		return &fault.LimitError{Path: path, Name: "Calls", Limit: messageCalls, Got: n}
	}
	return nil
}

// newBody returns the body of a checked text. It does not retain data.
func newBody(data []byte) (*messageBody, error) { return newSharedBody(data, "") }

// newSharedBody is newBody for a text that the caller has as a string, too. The
// body shares it, if the text is compact. If shared is empty, the body makes the
// string.
func newSharedBody(data []byte, shared string) (*messageBody, error) {
	members := make([]memberPlace, 0, 8) // enough for most messages
	note := func(name, value jsontext.Span) { members = append(members, memberPlace{name, value}) }
	sum, compact, err := jsontext.HashMembers(messageSeed, data, note)
	if err == nil && !compact {
		data, shared = jsontext.AppendCompact(make([]byte, 0, len(data)), data), ""
		members = members[:0]
		sum, _, err = jsontext.HashMembers(messageSeed, data, note)
	}
	if err != nil {
		return nil, err
	}
	if shared == "" {
		shared = string(data)
	}
	return newMembersBody(bodyReader{data: data, raw: shared}, members, sum)
}

// newMembersBody returns the body of a text with these members and this hash.
func newMembersBody(r bodyReader, members []memberPlace, sum uint64) (_ *messageBody, err error) {
	var typ, role, tool, tools jsontext.Span
	for _, m := range members {
		switch r.name(m) {
		case "type":
			typ = m.value
		case "role":
			role = m.value
		case "tool":
			tool = m.value
		case "tools":
			tools = m.value
		}
	}
	b := &messageBody{raw: r.raw, sum: sum}
	if b.typ, err = r.text(typ, "$.type"); err != nil {
		return nil, err
	}
	if b.role, err = r.text(role, "$.role"); err != nil {
		if b.isKnown() {
			return nil, err
		}
		err = nil // an unknown type need not have a role
	}
	var calls []ToolCall
	switch b.typ {
	case typeToolCall:
		calls, err = r.toolCalls(tools)
	case typeToolResult:
		calls = make([]ToolCall, 1)
		calls[0], err = r.toolCall(tool)
		err = fault.Under("$.tool", err)
	}
	if err != nil {
		return nil, err
	}
	extra, err := r.otherMembers(b, members)
	if err != nil {
		return nil, err
	}
	if calls != nil || extra != nil {
		b.more = &messageMore{calls, extra}
	}
	return b, nil
}

// isKnown reports whether the type has accessors.
func (b *messageBody) isKnown() bool {
	return b.typ == typeText || b.typ == typeToolCall || b.typ == typeToolResult
}

// A bodyReader reads the parts of a message. A part is a place in the text:
// what is read shares the memory of raw where possible.
type bodyReader struct {
	data []byte
	raw  string // the same text
}

// memberPlace is the place of a member of the message: that of its name, with
// the quotes, and that of its value.
type memberPlace struct{ name, value jsontext.Span }

func (r *bodyReader) name(m memberPlace) string { return r.json(m.name).text() }

// json returns a part as it is.
func (r *bodyReader) json(part jsontext.Span) JSON { return JSON(r.raw[part.From:part.To]) }

// want returns an error unless a part is of the kind. The zero Span is a
// missing part.
func (r *bodyReader) want(kind string, part jsontext.Span, path string) error {
	if got := jsontext.Kind(part.In(r.data)); got != kind {
		return &fault.Error{Path: path, Want: kind, Got: got}
	}
	return nil
}

// text returns the content of a string.
func (r *bodyReader) text(part jsontext.Span, path string) (string, error) {
	if err := r.want("string", part, path); err != nil {
		return "", err
	}
	return r.json(part).text(), nil
}

// otherMembers reads the content and the stop reason into b, and returns the
// members without an accessor. The members of an unknown type have an unknown
// meaning: only type and role have accessors there.
func (r *bodyReader) otherMembers(b *messageBody, members []memberPlace) (extra []messageMember, err error) {
	for _, m := range members {
		name, value := r.name(m), m.value
		hasAccessor := false
		switch name {
		case "type", "role":
			hasAccessor = true
		case "tools":
			hasAccessor = b.typ == typeToolCall
		case "tool":
			hasAccessor = b.typ == typeToolResult
		case "stop_reason":
			if hasAccessor = b.isKnown(); hasAccessor {
				b.stop = r.json(value)
			}
		case "content":
			if hasAccessor = b.typ == typeText || b.typ == typeToolResult; hasAccessor {
				b.content = r.json(value)
			}
			if b.typ == typeText {
				err = checkContent(value.In(r.data))
			}
		case "is_error":
		default:
			err = checkCase(name, "type", "role", "content", "tools", "tool", "stop_reason", "is_error")
		}
		if err != nil {
			return nil, err
		}
		if !hasAccessor {
			extra = append(extra, messageMember{name, r.json(value)})
		}
	}
	return extra, nil
}

// checkCase returns an error for a member whose name differs only in case from
// one that counts: readers that ignore case would take it for that one.
func checkCase(name string, known ...string) error {
	for _, k := range known {
		if strings.EqualFold(name, k) {
			return &fault.Error{Path: jsontext.Path("$", name), Want: k, Got: "it in another case"}
		}
	}
	return nil
}

func (r *bodyReader) toolCalls(tools jsontext.Span) ([]ToolCall, error) {
	if err := r.want("array", tools, "$.tools"); err != nil {
		return nil, err
	}
	calls := []ToolCall{} // not nil, even if there are none
	err := jsontext.EachElement(tools.In(r.data), func(element jsontext.Span) error {
		call, err := r.toolCall(element.Within(tools))
		if err != nil {
			return fault.Under(jsontext.Index("$.tools", len(calls)), err)
		}
		calls = append(calls, call)
		return nil
	})
	return calls, err
}

// toolCall reads a call. Its id and name may be missing or null: some providers
// send no id. The paths of errors begin at the call.
func (r *bodyReader) toolCall(tool jsontext.Span) (call ToolCall, err error) {
	if err := r.want("object", tool, "$"); err != nil {
		return call, err
	}
	var extra []byte
	err = jsontext.EachMember(tool.In(r.data), func(name []byte, value jsontext.Span) (err error) {
		value = value.Within(tool)
		text := r.json(value)
		switch string(name) {
		case "input":
			call.Input = text
			return nil
		case "id":
			if text != "null" {
				call.ID, err = r.text(value, "$.id")
			}
			return err
		case "name":
			if text != "null" {
				call.Name, err = r.text(value, "$.name")
			}
			return err
		case "type":
			if text == `"tool"` {
				return nil // as in every message that this library makes
			}
		case "key":
			if key := text.text(); jsontext.Kind(value.In(r.data)) == "string" && callkey.Valid(key) {
				call.Key = key
				return nil
			}
		default:
			if err := checkCase(string(name), "type", "id", "name", "input"); err != nil {
				return err
			}
		}
		if extra == nil {
			extra = append(make([]byte, 0, len(name)+len(text)+len(`{"":}`)), '{')
		}
		extra = jsontext.AppendMember(extra, string(name), value.In(r.data))
		return nil
	})
	if extra != nil {
		call.Extra = JSON(append(extra, '}'))
	}
	return call, err
}

// checkContent checks the content of a text message: a string, null, or parts.
// The parts of type text must have a text.
func checkContent(content []byte) error {
	switch kind := jsontext.Kind(content); kind {
	case "string", "null":
		return nil
	case "array":
	default:
		return &fault.Error{Path: "$.content", Want: "string or array", Got: kind}
	}
	i := 0
	return jsontext.EachElement(content, func(element jsontext.Span) error {
		if err := checkPart(element.In(content)); err != nil {
			return fault.Under(jsontext.Index("$.content", i), err)
		}
		i++
		return nil
	})
}

// checkPart checks a part of the content.
func checkPart(part []byte) error {
	var typ, text []byte
	err := jsontext.EachMember(part, func(name []byte, value jsontext.Span) error {
		switch string(name) {
		case "type":
			typ = value.In(part)
		case "text":
			text = value.In(part)
		}
		return nil
	})
	if err != nil || !jsontext.IsText(typ, typeText) {
		return err
	}
	return jsontext.Object{{Name: "text", Value: text}}.Want("text", "string")
}

func isTextPart(part jsontext.Object) bool { return jsontext.IsText(part.Get("type"), typeText) }

// appendCall appends a call. Its input and its extra members may have so many
// levels.
func appendCall(b []byte, call ToolCall, depth int) []byte {
	var extra jsontext.Object
	if call.Extra != "" {
		if data := []byte(call.Extra); jsontext.Check(data, jsontext.Limits{Depth: depth + 1}) == nil {
			extra, _ = jsontext.Members(data) // none if it is not an object
		}
	}
	b = append(b, '{')
	if extra.Get("type") == nil {
		b = append(b, `"type":"tool",`...)
	}
	b = append(b, `"id":`...)
	b = jsontext.AppendQuote(b, call.ID)
	b = append(b, `,"name":`...)
	b = jsontext.AppendQuote(b, call.Name)
	if call.Input != "" {
		b = append(b, `,"input":`...)
		b = appendJSON(b, call.Input, depth)
	}
	for _, m := range extra.Without("id", "name", "input") {
		if m.Name == "key" && call.Key != "" {
			continue
		}
		b = append(b, ',')
		b = jsontext.AppendQuote(b, m.Name)
		b = append(b, ':')
		b = jsontext.AppendCompact(b, m.Value)
	}
	if callkey.Valid(call.Key) {
		b = appendKey(b, call.Key)
	}
	return append(b, '}')
}

// appendJSON appends j, or its text as a string if j is not JSON of at most
// that depth.
func appendJSON(b []byte, j JSON, depth int) []byte {
	n := len(b)
	b = append(b, j...)
	if jsontext.Check(b[n:], jsontext.Limits{Depth: depth}) != nil {
		return jsontext.AppendQuote(b[:n], string(j))
	}
	return jsontext.AppendCompact(b[:n], b[n:]) // which writes nothing that it has not read
}
