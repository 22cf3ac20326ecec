package codec

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// Encoder gives a format what it needs to write messages.
type Encoder struct {
	Mark        string                         // of the format
	Omit        func(message int, what string) // reports what the format cannot express
	PartReaders []PartReader                   // one for each format
	Entries     Entries                        // of what was written so far
}

// Kept returns what the message keeps for the format. own is false for a
// message that did not come from the format. Its content is not in the format's
// words.
func (e *Encoder) Kept(m state.Message) (kept jsontext.Object, own bool) {
	return origin.Of(m, e.Mark)
}

// KeptOfCall is [Encoder.Kept] for a call.
func (e *Encoder) KeptOfCall(c state.ToolCall) (kept jsontext.Object, own bool) {
	if c.Extra == "" {
		return nil, false
	}
	extra, _ := jsontext.Members([]byte(c.Extra)) // checked with the message
	kept, err := jsontext.Members(extra.Get(e.Mark))
	return kept, err == nil
}

// KeptItem returns the entry that an unknown message of the format holds, and
// the type of the entry. Other unknown messages are reported.
func (e *Encoder) KeptItem(i int, m state.UnknownMessage) (item []byte, typ string, ok bool) {
	format, typ := origin.ItemType(m)
	held, _ := m.Extra(origin.Item)
	if format != e.Mark || jsontext.Kind([]byte(held)) != "object" {
		e.Omit(i, "message of type "+m.Type())
		return nil, "", false
	}
	return []byte(held), typ, true
}

// ReadParts returns the parts of the content of a message that does not come
// from the format, for a role of the format. There are none if the content is
// not an array. A part that is in the words of the format stays as it is, if
// a program made the message. A part of another format is converted even if
// both formats have its type, because its other members may be unknown to the
// format, and an element of a result may be data that looks like a text.
func (e *Encoder) ReadParts(m state.Message, role string, content []byte) []Part {
	elements, err := jsontext.Elements(content)
	if err != nil {
		return nil
	}
	byHand := origin.IsHandmade(m)
	parts := make([]Part, len(elements))
	for i, element := range elements {
		p := e.part(element)
		p.Index = i
		isData := p.Kind == PartText && role == origin.RoleTool
		p.AsIs = (byHand && !isData || p.IsMedia() && !isForeign(p.Members)) && origin.InWords(e.Mark, role, p.Members)
		parts[i] = p
	}
	return parts
}

// isForeign reports whether a part keeps something for a format of another
// module, which no provider knows.
func isForeign(part jsontext.Object) bool {
	return slices.ContainsFunc(part, func(m jsontext.Member) bool { return origin.IsForeign(m.Name) })
}

func (e *Encoder) part(element []byte) Part {
	members, err := jsontext.Members(element)
	if err != nil {
		return Part{}
	}
	for _, read := range e.PartReaders {
		if part, ok := read(members); ok {
			part.Members = members
			return part
		}
	}
	return Part{Members: members}
}

// HasParts reports whether the content of a result is parts because its format
// has them there. Otherwise an array may be data.
func (e *Encoder) HasParts(m state.Message, content []byte) bool {
	return jsontext.Kind(content) == "array" && slices.ContainsFunc(
		[]string{origin.OpenAI, origin.OpenAIResponses, origin.Anthropic},
		func(format string) bool { _, ok := origin.Of(m, format); return ok },
	)
}

// EncodeParts returns the parts of a message of another format as encode has
// them, and those that it does not have, which were reported.
func (e *Encoder) EncodeParts(
	i int, role string, parts []Part, encode func(role string, p Part) (jsontext.Object, []string),
) (encoded [][]byte, omitted []Part) {
	for _, p := range parts {
		if p.AsIs {
			encoded = append(encoded, p.Members.JSON())
			continue
		}
		part, written := encode(role, p)
		if part == nil {
			omitted = append(omitted, p)
			continue
		}
		encoded = append(encoded, part.JSON())
		e.OmitRest(i, p, written...)
	}
	e.OmitParts(i, omitted)
	return encoded, omitted
}
