package state

import (
	"bytes"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

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

func (b *messageBody) toolCalls() []ToolCall {
	if b == nil || b.more == nil {
		return nil
	}
	return b.more.calls
}

// newBody returns the body of a checked, compact text.
func newBody(data []byte) (*messageBody, error) {
	r := bodyReader{data: data, raw: string(data)}
	var typ, role, tool, tools jsontext.Span
	if err := jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		switch string(name) {
		case "type":
			typ = value
		case "role":
			role = value
		case "tool":
			tool = value
		case "tools":
			tools = value
		}
		return nil
	}); err != nil {
		return nil, err
	}
	b := &messageBody{raw: r.raw, sum: jsontext.Hash(messageSeed, data)}
	var err error
	if b.typ, err = r.text(typ, "$.type"); err != nil {
		return nil, err
	}
	if b.role, err = r.text(role, "$.role"); err != nil {
		if b.isKnown() {
			return nil, err
		}
		err = nil // an unknown type need not have a role
	}
	var more messageMore
	switch b.typ {
	case typeToolCall:
		more.calls, err = r.toolCalls(tools, "$.tools")
	case typeToolResult:
		more.calls = make([]ToolCall, 1)
		more.calls[0], err = r.toolCall(tool, "$.tool")
	}
	if err != nil {
		return nil, err
	}
	if more.extra, err = r.otherMembers(b); err != nil {
		return nil, err
	}
	if more.calls != nil || more.extra != nil {
		b.more = &more
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
func (r *bodyReader) otherMembers(b *messageBody) (extra []messageMember, err error) {
	err = jsontext.EachMember(r.data, func(name []byte, value jsontext.Span) error {
		if err := checkCase(name, "$", "type", "role", "content", "tools", "tool", "stop_reason", "is_error"); err != nil {
			return err
		}
		hasAccessor := false
		switch string(name) {
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
				return checkContent(value.In(r.data))
			}
		}
		if !hasAccessor {
			extra = append(extra, messageMember{string(name), r.json(value)})
		}
		return nil
	})
	return extra, err
}

// checkCase returns an error for a member whose name differs only in case from
// one that counts: readers that ignore case would take it for that one.
func checkCase(name []byte, path string, known ...string) error {
	if slices.Contains(known, string(name)) {
		return nil
	}
	for _, k := range known {
		if bytes.EqualFold(name, []byte(k)) {
			return &fault.Error{Path: jsontext.Path(path, string(name)), Want: k, Got: "it in another case"}
		}
	}
	return nil
}

func (r *bodyReader) toolCalls(tools jsontext.Span, path string) ([]ToolCall, error) {
	if err := r.want("array", tools, path); err != nil {
		return nil, err
	}
	calls := []ToolCall{} // not nil, even if there are none
	err := jsontext.EachElement(tools.In(r.data), func(element jsontext.Span) error {
		call, err := r.toolCall(element.Within(tools), jsontext.Index(path, len(calls)))
		calls = append(calls, call)
		return err
	})
	return calls, err
}

// toolCall reads a call. Its id and name may be missing or null: some providers
// send no id.
func (r *bodyReader) toolCall(tool jsontext.Span, path string) (call ToolCall, err error) {
	if err := r.want("object", tool, path); err != nil {
		return call, err
	}
	var extra jsontext.Object
	err = jsontext.EachMember(tool.In(r.data), func(name []byte, value jsontext.Span) error {
		if err := checkCase(name, path, "type", "id", "name", "input"); err != nil {
			return err
		}
		value = value.Within(tool)
		text := r.json(value)
		var err error
		switch string(name) {
		case "input":
			call.Input = text
			return nil
		case "id":
			if text != "null" {
				call.ID, err = r.text(value, path+".id")
			}
			return err
		case "name":
			if text != "null" {
				call.Name, err = r.text(value, path+".name")
			}
			return err
		case "type":
			if text == `"tool"` {
				return nil // as in every message that this library makes
			}
		}
		extra = append(extra, jsontext.Member{Name: string(name), Value: value.In(r.data)})
		return nil
	})
	if extra != nil {
		call.Extra = JSON(extra.JSON())
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
		part, err := jsontext.Members(element.In(content))
		if err == nil && isTextPart(part) {
			err = part.Want("text", "string")
		}
		err = fault.Under(jsontext.Index("$.content", i), err)
		i++
		return err
	})
}

func isTextPart(part jsontext.Object) bool { return part.String("type") == typeText }

// appendCall appends a call. Its input and its extra members may have so many
// levels.
func appendCall(b []byte, call ToolCall, depth int) []byte {
	var extra jsontext.Object
	if data := []byte(call.Extra); jsontext.Check(data, jsontext.Limits{Depth: depth + 1}) == nil {
		extra, _ = jsontext.Members(data) // none if it is not an object
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
		b = append(b, ',')
		b = jsontext.AppendQuote(b, m.Name)
		b = append(b, ':')
		b = jsontext.AppendCompact(b, m.Value)
	}
	return append(b, '}')
}

// appendJSON appends j, or its text as a string if j is not JSON of at most
// that depth.
func appendJSON(b []byte, j JSON, depth int) []byte {
	data := []byte(j)
	if jsontext.Check(data, jsontext.Limits{Depth: depth}) != nil {
		return jsontext.AppendQuote(b, string(j))
	}
	return jsontext.AppendCompact(b, data)
}
