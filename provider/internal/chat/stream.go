package chat

import (
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// NewAssembler returns an assembler for a streamed response.
func (Format) NewAssembler() codec.Assembler { return &assembler{} }

// assembler puts the chunks of a response together: those of the choice with
// index 0.
type assembler struct {
	begun       bool
	id, created []byte
	choices     bool // there has been a chunk of the choice
	finish      []byte
	message     delta
}

// Add takes a chunk.
func (a *assembler) Add(chunk jsontext.Object) error {
	a.begun = true
	setUnlessEmpty(&a.id, chunk.Get("id"))
	setUnlessEmpty(&a.created, chunk.Get("created"))
	if jsontext.IsNull(chunk.Get("choices")) {
		return nil
	}
	choices, err := chunk.Elements("choices")
	if err != nil {
		return err
	}
	for i, value := range choices {
		choice, err := jsontext.Members(value)
		if err == nil {
			err = a.addChoice(choice)
		}
		if err != nil {
			return fault.Under(jsontext.Index("$.choices", i), err)
		}
	}
	return codec.ReportedFailure(chunk)
}

func (a *assembler) addChoice(choice jsontext.Object) error {
	if index := choice.Get("index"); jsontext.Kind(index) == "number" && string(index) != "0" {
		return nil
	}
	a.choices = true
	setUnlessEmpty(&a.finish, choice.Get("finish_reason"))
	if jsontext.IsNull(choice.Get("delta")) {
		return nil
	}
	members, err := choice.Members("delta")
	if err != nil {
		return err
	}
	return fault.Under("$.delta", a.message.add(members))
}

// Result returns the response.
func (a *assembler) Result() (body jsontext.Object, complete bool) {
	if !a.begun {
		return nil, false
	}
	body = jsontext.Object{}.WithString("object", "chat.completion").With("id", a.id).With("created", a.created)
	if !a.choices {
		return body.With("choices", []byte("[]")), false
	}
	choice := jsontext.Object{}.With("message", a.message.json()).With("finish_reason", a.finish)
	return body.With("choices", jsontext.Array([][]byte{choice.JSON()})), !isEmpty(a.finish)
}

// setUnlessEmpty sets dst to a value that says something, or to the first one.
func setUnlessEmpty(dst *[]byte, value []byte) {
	if *dst == nil || !isEmpty(value) {
		*dst = value
	}
}

// delta is what the deltas of an object have come to: of a message, of a call,
// or of an object in one of these.
type delta struct {
	names   []string
	members map[string]*deltaMember
}

// deltaMember is a member that comes in pieces. It is one of these.
type deltaMember struct {
	value []byte   // the latest
	text  []byte   // all texts, after the parts
	parts [][]byte // all elements
	inner *delta   // an object
	calls *callsDelta
}

func (d *delta) add(members jsontext.Object) error {
	if d.members == nil {
		d.members = map[string]*deltaMember{}
	}
	for _, m := range members {
		if m.Name == "index" { // only streams have it
			continue
		}
		member := d.members[m.Name]
		if member == nil {
			member = &deltaMember{}
			d.names, d.members[m.Name] = append(d.names, m.Name), member
		}
		if err := member.add(m); err != nil {
			return fault.Under(jsontext.Path("$", m.Name), err)
		}
	}
	return nil
}

func (d *delta) json() []byte {
	object := make(jsontext.Object, len(d.names))
	for i, name := range d.names {
		object[i] = jsontext.Member{Name: name, Value: d.members[name].json()}
	}
	return object.JSON()
}

// Texts of the members in pieces come piece by piece. Any other text comes
// whole, and some providers repeat it. The members in objects are objects whose
// own members come in pieces.
var (
	pieces  = []string{"content", "refusal", "reasoning", "reasoning_content", "reasoning_text", "arguments", "input", "transcript", "data"}
	objects = []string{"function", "custom", legacyCall, "audio"}
)

func (m *deltaMember) add(sent jsontext.Member) error {
	switch kind := jsontext.Kind(sent.Value); {
	case kind == "array" && sent.Name == "tool_calls":
		if m.calls == nil {
			m.calls = &callsDelta{}
		}
		return m.calls.add(sent.Value)
	case kind == "object" && slices.Contains(objects, sent.Name):
		if m.inner == nil {
			m.inner = &delta{}
		}
		members, err := jsontext.Members(sent.Value)
		if err != nil {
			return err
		}
		return m.inner.add(members)
	case kind == "array":
		elements, err := jsontext.Elements(sent.Value)
		if err != nil {
			return err
		}
		m.parts, m.text = append(m.allParts(), elements...), nil
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

// allParts returns the parts, with the text after them as the last. It is not
// nil.
func (m *deltaMember) allParts() [][]byte {
	parts := m.parts
	if parts == nil {
		parts = [][]byte{}
	}
	if len(m.text) > 0 {
		parts = append(parts, textPart(jsontext.AppendQuote(nil, string(m.text))).JSON())
	}
	return parts
}

func (m *deltaMember) json() []byte {
	switch {
	case m.calls != nil:
		return m.calls.json()
	case m.inner != nil:
		return m.inner.json()
	case m.parts != nil:
		return jsontext.Array(m.allParts())
	case m.text != nil:
		return jsontext.AppendQuote(nil, string(m.text))
	}
	return m.value
}

// callsDelta is the calls so far, in the order in which they began.
type callsDelta struct {
	calls   []*callDelta
	byIndex map[string]*callDelta // the latest of each
	byID    map[string]*callDelta
}

type callDelta struct {
	id string
	delta
}

// add takes the elements of tool_calls.
func (c *callsDelta) add(list []byte) error {
	elements, err := jsontext.Elements(list)
	if err != nil {
		return err
	}
	for i, element := range elements {
		members, err := jsontext.Members(element)
		if err == nil {
			err = c.callOf(members).add(members)
		}
		if err != nil {
			return fault.Under(jsontext.Index("$", i), err)
		}
	}
	return nil
}

// callOf returns the call to which an element belongs. The index tells. Some
// providers send no index, and some send the same one with every call: then a
// new id tells, if it comes with a name.
func (c *callsDelta) callOf(element jsontext.Object) *callDelta {
	index, id := string(element.Get("index")), element.String("id")
	var found *callDelta
	switch {
	case jsontext.Kind([]byte(index)) == "number":
		found = c.byIndex[index]
		if found != nil && id != "" && found.id != "" && found.id != id && isNamed(element) {
			found = nil
		}
	case id != "":
		found = c.byID[id]
	case len(c.calls) > 0:
		found = c.calls[len(c.calls)-1]
	}
	if found == nil {
		found = &callDelta{}
		c.calls = append(c.calls, found)
	}
	if c.byID == nil {
		c.byIndex, c.byID = map[string]*callDelta{}, map[string]*callDelta{}
	}
	c.byIndex[index] = found
	if id != "" {
		found.id, c.byID[id] = id, found
	}
	return found
}

func isNamed(element jsontext.Object) bool {
	return element.Object("function").String("name") != "" || element.Object("custom").String("name") != ""
}

func (c *callsDelta) json() []byte {
	calls := make([][]byte, len(c.calls))
	for i, call := range c.calls {
		calls[i] = call.delta.json()
	}
	return jsontext.Array(calls)
}
