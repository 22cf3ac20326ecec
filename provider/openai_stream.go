package provider

import (
	"slices"

	"github.com/agentstate/state/internal/jsontext"
)

func (openAI) assemble() assembler { return &chatStream{} }

// chatStream puts the chunks of a response together: those of the choice with
// index 0.
type chatStream struct {
	begun       bool
	id, created []byte
	choices     bool // there has been a chunk of the choice
	finish      []byte
	message     chatDelta
}

func (s *chatStream) event(data []byte) error {
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	chunk := jsontext.Object(members)
	s.begun = true
	setUnlessEmpty(&s.id, chunk.Get("id"))
	setUnlessEmpty(&s.created, chunk.Get("created"))
	list := chunk.Get("choices")
	if kind := jsontext.Kind(list); kind == "nothing" || kind == "null" {
		return nil
	}
	choices, err := elementsAt("$.choices", list)
	if err != nil {
		return err
	}
	for i, value := range choices {
		path := jsontext.Index("$.choices", i)
		choice, err := membersAt(path, value)
		if err != nil {
			return err
		}
		if index := choice.Get("index"); jsontext.Kind(index) == "number" && string(index) != "0" {
			continue
		}
		s.choices = true
		setUnlessEmpty(&s.finish, choice.Get("finish_reason"))
		if err := s.message.add(path+".delta", choice.Get("delta")); err != nil {
			return err
		}
	}
	return OpenAI.reported(chunk)
}

func (s *chatStream) result() (body jsontext.Object, complete bool) {
	if !s.begun {
		return nil, false
	}
	body = jsontext.Object{}.WithString("object", "chat.completion").With("id", s.id).With("created", s.created)
	if !s.choices {
		return body.With("choices", []byte("[]")), false
	}
	choice := jsontext.Object{}.With("message", s.message.object().JSON()).With("finish_reason", s.finish)
	complete = len(s.finish) > 0 && !isEmpty(s.finish)
	return body.With("choices", jsontext.Array([][]byte{choice.JSON()})), complete
}

// chatDelta is what the deltas of an object have come to: a message, a call of
// its, or an object in one of these.
type chatDelta struct {
	names   []string
	members map[string]*chatMember
}

// chatMember is a member of a message that comes in pieces: one of the following.
type chatMember struct {
	value []byte     // the latest
	text  []byte     // all texts, after the parts
	parts [][]byte   // all elements
	inner *chatDelta // an object
	calls *chatCallsDelta
}

// add adds a delta, which may be null or missing.
func (d *chatDelta) add(path string, delta []byte) error {
	if kind := jsontext.Kind(delta); kind == "nothing" || kind == "null" {
		return nil
	}
	members, err := membersAt(path, delta)
	if err != nil {
		return err
	}
	if d.members == nil {
		d.members = map[string]*chatMember{}
	}
	for _, m := range members {
		if m.Name == "index" { // only streams have it
			continue
		}
		member := d.members[m.Name]
		if member == nil {
			member = &chatMember{}
			d.names, d.members[m.Name] = append(d.names, m.Name), member
		}
		if err := member.add(jsontext.Path(path, m.Name), m); err != nil {
			return err
		}
	}
	return nil
}

// pieces are the members whose texts come piece by piece. Others come whole, and
// some providers repeat them.
var pieces = []string{"content", "refusal", "reasoning", "reasoning_content", "reasoning_text", "arguments", "input", "transcript", "data"}

func (m *chatMember) add(path string, sent jsontext.Member) error {
	switch kind := jsontext.Kind(sent.Value); {
	case kind == "array" && sent.Name == "tool_calls":
		if m.calls == nil {
			m.calls = &chatCallsDelta{}
		}
		return m.calls.add(path, sent.Value)
	case kind == "object" && slices.Contains([]string{"function", "custom", legacyCall, "audio"}, sent.Name):
		if m.inner == nil {
			m.inner = &chatDelta{}
		}
		return m.inner.add(path, sent.Value)
	case kind == "array":
		elements, err := jsontext.Elements(sent.Value)
		if err != nil {
			return err
		}
		m.flush()
		if m.parts == nil {
			m.parts = [][]byte{}
		}
		m.parts = append(m.parts, elements...)
	case kind == "string" && slices.Contains(pieces, sent.Name):
		if m.text == nil {
			m.text = []byte{}
		}
		m.text = append(m.text, jsontext.Unquote(sent.Value)...)
	case m.value == nil || !isEmpty(sent.Value):
		m.value = sent.Value
	}
	return nil
}

// flush makes what has been said a part before other parts.
func (m *chatMember) flush() {
	if len(m.text) > 0 {
		m.parts = append(m.parts, chatText(jsontext.AppendQuote(nil, string(m.text))).JSON())
	}
	m.text = nil
}

// json returns what the member has come to.
func (m *chatMember) json() []byte {
	switch {
	case m.calls != nil:
		return m.calls.json()
	case m.inner != nil:
		return m.inner.object().JSON()
	case m.parts != nil:
		parts := m.parts
		if len(m.text) > 0 {
			parts = append(parts, chatText(jsontext.AppendQuote(nil, string(m.text))).JSON())
		}
		return jsontext.Array(parts)
	case m.text != nil:
		return jsontext.AppendQuote(nil, string(m.text))
	}
	return m.value
}

func (d *chatDelta) object() jsontext.Object {
	object := make(jsontext.Object, len(d.names))
	for i, name := range d.names {
		object[i] = jsontext.Member{Name: name, Value: d.members[name].json()}
	}
	return object
}

// chatCallsDelta is the calls so far, in the order in which they began.
type chatCallsDelta struct {
	calls   []*chatCallDelta
	byIndex map[string]*chatCallDelta // the latest of each
	byID    map[string]*chatCallDelta
}

type chatCallDelta struct {
	id string
	chatDelta
}

// add adds to the calls what elements of tool_calls say.
func (c *chatCallsDelta) add(path string, list []byte) error {
	elements, err := jsontext.Elements(list)
	if err != nil {
		return err
	}
	for i, element := range elements {
		at := jsontext.Index(path, i)
		delta, err := membersAt(at, element)
		if err != nil {
			return err
		}
		if err := c.of(delta).add(at, element); err != nil {
			return err
		}
	}
	return nil
}

// of returns the call that a delta is of. The index tells, but some providers
// send none, and some send the same with every call: then a new identifier
// tells, if it comes with a name.
func (c *chatCallsDelta) of(delta jsontext.Object) *chatCallDelta {
	index, id := string(delta.Get("index")), stringOf(delta.Get("id"))
	var found *chatCallDelta
	switch {
	case jsontext.Kind([]byte(index)) == "number":
		found = c.byIndex[index]
		named := stringOf(inside(delta, "function").Get("name")) + stringOf(inside(delta, "custom").Get("name"))
		if found != nil && id != "" && found.id != "" && found.id != id && named != "" {
			found = nil
		}
	case id != "":
		found = c.byID[id]
	case len(c.calls) > 0:
		found = c.calls[len(c.calls)-1]
	}
	if found == nil {
		found = &chatCallDelta{}
		c.calls = append(c.calls, found)
	}
	if c.byID == nil {
		c.byIndex, c.byID = map[string]*chatCallDelta{}, map[string]*chatCallDelta{}
	}
	c.byIndex[index] = found
	if id != "" {
		found.id, c.byID[id] = id, found
	}
	return found
}

func (c *chatCallsDelta) json() []byte {
	calls := make([][]byte, len(c.calls))
	for i, call := range c.calls {
		calls[i] = call.object().JSON()
	}
	return jsontext.Array(calls)
}

// setUnlessEmpty sets dst to a value that says something, or to the first.
func setUnlessEmpty(dst *[]byte, value []byte) {
	if *dst == nil || !isEmpty(value) {
		*dst = value
	}
}
