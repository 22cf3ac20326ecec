package provider

import (
	"strconv"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// anthropicStream puts the events of a stream together. A stream can have
// several messages: the response has the blocks of all of them, the identifier
// of the first and the stop reason of the last.
type anthropicStream struct {
	first   jsontext.Object            // the first message, as it began
	stop    []byte                     // why the latest message stopped
	blocks  []*anthropicBlock          // of all messages
	current map[string]*anthropicBlock // of the latest message, by index; nil before it
	ended   bool                       // the latest message has
}

func (s *anthropicStream) event(data []byte) error {
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	event := jsontext.Object(members)
	index := string(event.Get("index"))
	switch stringOf(event.Get("type")) {
	case "message_start":
		return s.start(event.Get("message"))
	case "content_block_start":
		return s.startBlock(index, "$.content_block", event.Get("content_block"))
	case "content_block_delta":
		block := s.current[index]
		if block == nil {
			return &fault.Error{Path: "$.index", Got: "no block of that index has begun"}
		}
		return block.add(event.Get("delta"))
	case "message_delta":
		if reason := inside(event, "delta").Get("stop_reason"); reason != nil {
			s.stop = reason
		}
	case "message_stop":
		s.ended = true
	}
	return nil // the others say nothing about the content
}

// start begins a message, which may have blocks already.
func (s *anthropicStream) start(data []byte) error {
	if err := want("$.message", data, "object"); err != nil {
		return err
	}
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	message := jsontext.Object(members)
	if s.current == nil {
		s.first = message
	}
	s.current, s.stop, s.ended = map[string]*anthropicBlock{}, message.Get("stop_reason"), false
	blocks, _ := jsontext.Elements(message.Get("content")) // none if it has none
	for i, block := range blocks {
		if err := s.startBlock(strconv.Itoa(i), jsontext.Index("$.message.content", i), block); err != nil {
			return err
		}
	}
	return nil
}

func (s *anthropicStream) startBlock(index, path string, data []byte) error {
	if err := want(path, data, "object"); err != nil {
		return err
	}
	if s.current == nil {
		return &fault.Error{Path: "$.type", Got: "no message has begun"}
	}
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	block := &anthropicBlock{byName: map[string]*anthropicMember{}}
	for _, m := range members {
		block.member(m.Name).value = m.Value
	}
	s.blocks, s.current[index] = append(s.blocks, block), block
	return nil
}

func (s *anthropicStream) result() (jsontext.Object, bool) {
	if s.current == nil {
		return nil, false
	}
	blocks := make([][]byte, len(s.blocks))
	for i, block := range s.blocks {
		blocks[i] = block.json()
	}
	body := jsontext.Object{}.With("id", s.first.Get("id")).With("role", s.first.Get("role")).
		With("content", jsontext.Array(blocks)).With("stop_reason", s.stop)
	return body, s.ended
}

// anthropicBlock is a block that grows.
type anthropicBlock struct {
	members []*anthropicMember
	byName  map[string]*anthropicMember
	input   []byte // of a call, the fragments of its JSON
}

// anthropicMember is a member of a block that grows. It is a value, or a text or
// a list in pieces.
type anthropicMember struct {
	name  string
	value []byte
	text  []byte   // nil if it is none, or has not grown
	list  [][]byte // the same
}

// member returns the member of a name, one without value if it is new.
func (b *anthropicBlock) member(name string) *anthropicMember {
	m := b.byName[name]
	if m == nil {
		m = &anthropicMember{name: name}
		b.members, b.byName[name] = append(b.members, m), m
	}
	return m
}

// add adds a delta. Those of a call's input and of citations have a way of their
// own; in all others, known or not, a text goes on and anything else is the
// member's new value.
func (b *anthropicBlock) add(data []byte) error {
	if err := want("$.delta", data, "object"); err != nil {
		return err
	}
	delta, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	switch object := jsontext.Object(delta); stringOf(object.Get("type")) {
	case "input_json_delta":
		fragment := object.Get("partial_json")
		if err := want("$.delta.partial_json", fragment, "string"); err != nil {
			return err
		}
		b.input = append(b.input, jsontext.Unquote(fragment)...)
		return nil
	case "citations_delta":
		if err := want("$.delta.citation", object.Get("citation"), "object"); err != nil {
			return err
		}
		b.member("citations").extend(object.Get("citation"))
		return nil
	}
	for _, d := range delta {
		switch m := b.member(d.Name); {
		case d.Name == "type":
		case jsontext.Kind(d.Value) == "string":
			m.goOn(jsontext.Unquote(d.Value))
		case jsontext.Kind(d.Value) != "null" || m.value == nil && m.text == nil:
			m.value, m.text, m.list = d.Value, nil, nil
		}
	}
	return nil
}

// goOn adds to a text.
func (m *anthropicMember) goOn(text string) {
	if m.text == nil {
		m.text = append([]byte{}, stringOf(m.value)...)
	}
	m.text = append(m.text, text...)
}

// extend adds to a list.
func (m *anthropicMember) extend(element []byte) {
	if m.list == nil {
		m.list, _ = jsontext.Elements(m.value) // none if it is no list
	}
	m.list = append(m.list, element)
}

// json returns the block as it would have come whole. The input of a call is
// what the fragments make; if that is no JSON, as when the model was cut short,
// it is their text.
func (b *anthropicBlock) json() []byte {
	if len(b.input) > 0 {
		input := b.input
		if jsontext.Check(input, jsontext.Limits{Depth: inputDepth - 3}) != nil {
			input = jsontext.AppendQuote(nil, string(input))
		}
		b.member("input").value = input
	}
	block := make(jsontext.Object, len(b.members))
	for i, m := range b.members {
		value := m.value
		switch {
		case m.text != nil:
			value = jsontext.AppendQuote(nil, string(m.text))
		case m.list != nil:
			value = jsontext.Array(m.list)
		}
		block[i] = jsontext.Member{Name: m.name, Value: value}
	}
	return block.JSON()
}
