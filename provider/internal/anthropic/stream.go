package anthropic

import (
	"strconv"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// NewAssembler returns an assembler for a streamed response.
func (Format) NewAssembler() codec.Assembler { return &assembler{} }

// assembler puts the events of a stream together. A stream can have several
// messages: the response has the blocks of all of them, the id of the first and
// the stop reason of the last.
type assembler struct {
	first   jsontext.Object           // the first message, as it began
	stop    []byte                    // why the latest message stopped
	blocks  []*streamedBlock          // of all messages
	current map[string]*streamedBlock // of the latest message, by index; nil before the first
	ended   bool                      // the latest message has ended
}

// Add takes an event. Events of other types say nothing about the content.
func (a *assembler) Add(event jsontext.Object) error {
	switch event.String("type") {
	case "message_start":
		message, err := event.Members("message")
		if err != nil {
			return err
		}
		return fault.Under("$.message", a.start(message))
	case "content_block_start":
		block, err := event.Members("content_block")
		if err != nil {
			return err
		}
		return a.startBlock(string(event.Get("index")), block)
	case "content_block_delta":
		block := a.current[string(event.Get("index"))]
		if block == nil {
			return &fault.Error{Path: "$.index", Got: "no block of that index has begun"}
		}
		delta, err := event.Members("delta")
		if err != nil {
			return err
		}
		return fault.Under("$.delta", block.add(delta))
	case "message_delta":
		if reason := event.Object("delta").Get("stop_reason"); reason != nil {
			a.stop = reason
		}
	case "message_stop":
		a.ended = true
	}
	return nil
}

// start begins a message, which may have blocks already.
func (a *assembler) start(message jsontext.Object) error {
	if a.current == nil {
		a.first = message
	}
	a.current, a.stop, a.ended = map[string]*streamedBlock{}, message.Get("stop_reason"), false
	blocks, _ := message.Elements("content") // none if it has none
	for i, raw := range blocks {
		block, err := jsontext.Members(raw)
		if err != nil {
			return fault.Under(jsontext.Index("$.content", i), err)
		}
		if err := a.startBlock(strconv.Itoa(i), block); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembler) startBlock(index string, members jsontext.Object) error {
	if a.current == nil {
		return &fault.Error{Path: "$.type", Got: "no message has begun"}
	}
	block := &streamedBlock{byName: map[string]*streamedMember{}}
	for _, m := range members {
		block.member(m.Name).value = m.Value
	}
	a.blocks, a.current[index] = append(a.blocks, block), block
	return nil
}

// Result returns the response.
func (a *assembler) Result() (jsontext.Object, bool) {
	if a.current == nil {
		return nil, false
	}
	blocks := make([][]byte, len(a.blocks))
	for i, block := range a.blocks {
		blocks[i] = block.json()
	}
	body := jsontext.Object{}.With("id", a.first.Get("id")).With("role", a.first.Get("role")).
		With("content", jsontext.Array(blocks)).With("stop_reason", a.stop)
	return body, a.ended
}

// streamedBlock is a block as far as it has come.
type streamedBlock struct {
	members []*streamedMember
	byName  map[string]*streamedMember
	input   []byte // of a call, the fragments of its JSON
}

// streamedMember is a member of a block: a value, or a text or a list that grows.
type streamedMember struct {
	name  string
	value []byte
	text  []byte   // nil unless it has grown
	list  [][]byte // nil unless it has grown
}

// member returns the member of a name, a new one without a value if there is
// none.
func (b *streamedBlock) member(name string) *streamedMember {
	m := b.byName[name]
	if m == nil {
		m = &streamedMember{name: name}
		b.members, b.byName[name] = append(b.members, m), m
	}
	return m
}

// add takes a delta. The input of a call and citations have deltas of their own.
// In any other delta, known or not, a text continues that of the member, and
// anything else is the member's new value.
func (b *streamedBlock) add(delta jsontext.Object) error {
	switch delta.String("type") {
	case "input_json_delta":
		if err := delta.Want("partial_json", "string"); err != nil {
			return err
		}
		b.input = append(b.input, delta.String("partial_json")...)
		return nil
	case "citations_delta":
		if err := delta.Want("citation", "object"); err != nil {
			return err
		}
		b.member("citations").appendElement(delta.Get("citation"))
		return nil
	}
	for _, d := range delta {
		if d.Name == "type" {
			continue
		}
		switch m := b.member(d.Name); {
		case jsontext.Kind(d.Value) == "string":
			m.appendText(jsontext.Unquote(d.Value))
		case jsontext.Kind(d.Value) != "null" || m.value == nil && m.text == nil:
			m.value, m.text, m.list = d.Value, nil, nil
		}
	}
	return nil
}

func (m *streamedMember) appendText(text string) {
	if m.text == nil {
		m.text = []byte{}
		if jsontext.Kind(m.value) == "string" {
			m.text = append(m.text, jsontext.Unquote(m.value)...)
		}
	}
	m.text = append(m.text, text...)
}

func (m *streamedMember) appendElement(element []byte) {
	if m.list == nil {
		m.list, _ = jsontext.Elements(m.value) // none if it is not a list
	}
	m.list = append(m.list, element)
}

// json returns the block as it would have come whole. The input of a call is
// what the fragments make. If that is not JSON, as when the model was cut short,
// it is their text.
func (b *streamedBlock) json() []byte {
	if len(b.input) > 0 {
		input := b.input
		if jsontext.Check(input, jsontext.Limits{Depth: codec.InputDepth - 3}) != nil {
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
