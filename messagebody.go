package state

import (
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// messageBody is what the messages share. All of it is set before the message
// is seen by anyone. The strings are parts of raw, unless they have escapes.
type messageBody struct {
	raw     string
	sum     uint64
	typ     string
	role    string
	content JSON // text and tool_result
	stop    JSON
	more    *messageMore // nil for a text message with nothing special
}

type messageMore struct {
	calls []ToolCall // of a tool_call; of a tool_result the one it answers
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

// stopReason returns the text of a string and the JSON of anything else: one
// provider sends a number.
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

// newBody makes the body of a checked, compact text.
func newBody(data []byte) (*messageBody, error) {
	members, err := jsontext.Members(data)
	if err != nil {
		return nil, err
	}
	r := bodyReader{data: data, raw: string(data)}
	b := &messageBody{raw: r.raw, sum: jsontext.Hash(messageSeed, data)}
	if b.typ, err = r.text(member(members, "type"), "$.type"); err != nil {
		return nil, err
	}
	known := b.typ == typeText || b.typ == typeToolCall || b.typ == typeToolResult
	if b.role, err = r.text(member(members, "role"), "$.role"); err != nil && known {
		return nil, err
	}
	var more messageMore
	if b.typ == typeToolResult {
		call, err := r.call(member(members, "tool"), "$.tool")
		if err != nil {
			return nil, err
		}
		more.calls = []ToolCall{call}
	}
	if tools := member(members, "tools"); b.typ == typeToolCall {
		if more.calls, err = r.calls(tools); err != nil {
			return nil, err
		}
	}
	for _, m := range members {
		if err := exactly(m.Name, "$", "type", "role", "content", "tools", "tool", "stop_reason", "is_error"); err != nil {
			return nil, err
		}
		switch {
		case m.Name == "type", m.Name == "role":
		case m.Name == "stop_reason" && known:
			b.stop = r.json(m.Value)
		case m.Name == "content" && b.typ == typeText:
			if err := checkContent(m.Value); err != nil {
				return nil, err
			}
			b.content = r.json(m.Value)
		case m.Name == "content" && b.typ == typeToolResult:
			b.content = r.json(m.Value)
		case m.Name == "tools" && b.typ == typeToolCall, m.Name == "tool" && b.typ == typeToolResult:
		default:
			more.extra = append(more.extra, messageMember{m.Name, r.json(m.Value)})
		}
	}
	if more.calls != nil || more.extra != nil {
		b.more = &more
	}
	return b, nil
}

// exactly returns an error for a member whose name differs from one that counts
// only in case: other readers would take it for that one.
func exactly(name, path string, known ...string) error {
	for _, k := range known {
		if name != k && strings.EqualFold(name, k) {
			return &fault.Error{Path: jsontext.Path(path, name), Want: k, Got: "it in another case"}
		}
	}
	return nil
}

func member(members []jsontext.Member, name string) []byte {
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// bodyReader reads the parts of a message. What it returns shares memory with
// raw where possible.
type bodyReader struct {
	data []byte
	raw  string // the same text
}

// json returns a part of data as the same part of raw. A part keeps the
// capacity of the whole, which tells where it is.
func (r *bodyReader) json(part []byte) JSON {
	at := cap(r.data) - cap(part)
	return JSON(r.raw[at : at+len(part)])
}

// text returns the content of a JSON string.
func (r *bodyReader) text(part []byte, path string) (string, error) {
	if err := want("string", part, path); err != nil {
		return "", err
	}
	return r.json(part).text(), nil
}

func (r *bodyReader) calls(tools []byte) ([]ToolCall, error) {
	if err := want("array", tools, "$.tools"); err != nil {
		return nil, err
	}
	elements, err := jsontext.Elements(tools)
	if err != nil {
		return nil, err
	}
	calls := make([]ToolCall, len(elements))
	for i, element := range elements {
		if calls[i], err = r.call(element, jsontext.Index("$.tools", i)); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// call reads a call. Its id and name may be missing or null: some providers
// send no id.
func (r *bodyReader) call(tool []byte, path string) (ToolCall, error) {
	var call ToolCall
	if err := want("object", tool, path); err != nil {
		return call, err
	}
	members, err := jsontext.Members(tool)
	if err != nil {
		return call, err
	}
	var extra []byte
	for _, m := range members {
		if err := exactly(m.Name, path, "type", "id", "name", "input"); err != nil {
			return call, err
		}
		switch {
		case m.Name == "id" && string(m.Value) != "null":
			call.ID, err = r.text(m.Value, path+".id")
		case m.Name == "name" && string(m.Value) != "null":
			call.Name, err = r.text(m.Value, path+".name")
		case m.Name == "input":
			call.Input = r.json(m.Value)
		case m.Name == "id", m.Name == "name", m.Name == "type" && string(m.Value) == `"tool"`:
		default:
			if extra == nil {
				extra = []byte{'{'}
			} else {
				extra = append(extra, ',')
			}
			extra = jsontext.AppendQuote(extra, m.Name)
			extra = append(extra, ':')
			extra = append(extra, m.Value...)
		}
		if err != nil {
			return call, err
		}
	}
	if extra != nil {
		call.Extra = JSON(append(extra, '}'))
	}
	return call, nil
}

// checkContent checks the content of a text message: a string, null, or parts,
// of which the ones of type text have a text.
func checkContent(content []byte) error {
	switch jsontext.Kind(content) {
	case "string", "null":
		return nil
	case "array":
	default:
		return want("string or array", content, "$.content")
	}
	parts, err := jsontext.Elements(content)
	if err != nil {
		return err
	}
	for i, part := range parts {
		path := jsontext.Index("$.content", i)
		if err := want("object", part, path); err != nil {
			return err
		}
		members, err := jsontext.Members(part)
		if err != nil {
			return err
		}
		if isTextPart(members) {
			if err := want("string", member(members, "text"), path+".text"); err != nil {
				return err
			}
		}
	}
	return nil
}

func isTextPart(members []jsontext.Member) bool {
	typ := member(members, "type")
	return jsontext.Kind(typ) == "string" && jsontext.Unquote(typ) == typeText
}

// want returns an error unless part is of the kind.
func want(kind string, part []byte, path string) error {
	if got := jsontext.Kind(part); got != kind {
		return &fault.Error{Path: path, Want: kind, Got: got}
	}
	return nil
}

// appendCall appends a call whose input and extra members may have depth
// levels.
func appendCall(b []byte, call ToolCall, depth int) []byte {
	var extra []jsontext.Member
	if data := []byte(call.Extra); jsontext.Check(data, jsontext.Limits{Depth: depth + 1}) == nil {
		extra, _ = jsontext.Members(data) // none if it is no object
	}
	b = append(b, '{')
	if member(extra, "type") == nil {
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
	for _, m := range extra {
		switch m.Name {
		case "id", "name", "input":
			continue
		}
		b = append(b, ',')
		b = jsontext.AppendQuote(b, m.Name)
		b = append(b, ':')
		b = jsontext.AppendCompact(b, m.Value)
	}
	return append(b, '}')
}

// appendJSON appends j, or if it is no JSON of that depth its text.
func appendJSON(b []byte, j JSON, depth int) []byte {
	data := []byte(j)
	if jsontext.Check(data, jsontext.Limits{Depth: depth}) != nil {
		return jsontext.AppendQuote(b, string(j))
	}
	return jsontext.AppendCompact(b, data)
}
