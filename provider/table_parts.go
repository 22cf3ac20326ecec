package provider

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// store returns a part in words that every format reads. It keeps the difference
// of the part, or the part as an item if only the API can express it.
func (f *foreign) store(p *codec.TablePart) []byte {
	neutral, plain := f.neutral(p.Members)
	if neutral == nil {
		item := jsontext.Object{{Name: origin.Item, Value: p.Raw}}
		return codec.TypedObject(otherName(p.Members.String("type"), p.Members)).With(f.mark, item.JSON()).JSON()
	}
	if kept := codec.Difference(p.Members, plain); kept != nil {
		neutral = neutral.With(f.mark, kept.JSON())
	}
	return neutral.JSON()
}

// neutral returns a part in words that every format reads, and the plain part
// for it. It returns nil for a part that only the API can express.
func (f *foreign) neutral(part jsontext.Object) (neutral, plain jsontext.Object) {
	if f.IsText(part) {
		text := jsontext.Member{Name: "text", Value: part.Get("text")}
		return append(codec.TypedObject("text"), text), f.TextPart(text.Value)
	}
	read, ok := f.t.ReadPart(state.JSON(part.JSON()))
	if !ok || read.Kind == PartText {
		return nil, nil
	}
	neutral = neutralPart(read)
	return neutral, f.plainPart("", neutral)
}

// plainPart returns the plain part of the API for one in words that every format
// reads.
func (f *foreign) plainPart(role string, neutral jsontext.Object) jsontext.Object {
	p := partOf(readPart(neutral))
	if neutral.String("type") == "thinking" {
		p = Part{Kind: PartThinking, Text: neutral.String("thinking")}
	}
	switch p.Kind {
	case PartText:
		return f.TextPart(jsontext.AppendQuote(nil, p.Text))
	case PartOther:
		return nil
	}
	text, ok := f.t.WritePart(role, p)
	if !ok {
		return nil
	}
	plain, _ := readText(text, "$") // none if the table is wrong
	return plain
}

// load reverses store. What was kept holds as long as the part says what was
// read from it.
func (f *foreign) load(stored []byte) []byte {
	members, _ := jsontext.Members(stored) // checked with the message
	kept := members.Object(f.mark)
	if item := kept.Get(origin.Item); item != nil {
		return item
	}
	plain := f.plainPart("", members)
	if plain == nil {
		return stored // in the words of the API
	}
	restored := codec.Restore(plain, kept)
	if again, _ := f.neutral(restored); len(kept) == 0 || codec.EqualJSON(again.JSON(), members.Without(f.mark).JSON()) {
		return restored.JSON()
	}
	return plain.JSON()
}

// part returns the part of the API for one of another format.
func (f *foreign) part(role string, p codec.Part) (part jsontext.Object, written []string) {
	switch read := partOf(p); read.Kind {
	case PartText:
		return f.TextPart(p.Text), nil
	case PartImage, PartAudio, PartFile:
		text, ok := f.t.WritePart(role, read)
		if !ok {
			return nil, nil
		}
		if p.Name != "" && strings.Contains(string(text), strings.Trim(string(state.JSONText(p.Name)), `"`)) {
			written = []string{p.NameAt}
		}
		part, _ = readText(text, "$") // none if the table is wrong
	}
	return part, written
}

// readContent reads the value of a result that is parts. One that is a text, or
// a value, and nothing else is that value.
func (f *foreign) readContent(sent []byte) (value, plain []byte) {
	elements, err := jsontext.Elements(sent)
	if err != nil || len(elements) == 0 {
		return nil, f.writeContent(nil)
	}
	stored := make([][]byte, len(elements))
	for i, raw := range elements {
		p := codec.TablePart{Raw: raw}
		if p.Members, err = jsontext.Members(raw); err != nil {
			return sent, nil
		}
		stored[i] = f.store(&p)
		only := p.Members.Get(f.t.Result.JSON)
		if f.IsText(p.Members) {
			only = p.Members.Get("text")
		}
		if len(elements)+len(p.Members) == 2 && !jsontext.IsNull(only) {
			return only, f.writeContent(only)
		}
	}
	value = jsontext.Array(stored)
	return value, f.writeContent(value)
}

// writeContent returns the parts for the value of a result.
func (f *foreign) writeContent(value []byte) []byte {
	elements, err := jsontext.Elements(value)
	if err != nil || !f.areStored(elements) {
		return f.adoptValue(value)
	}
	for i, element := range elements {
		elements[i] = f.load(element)
	}
	return jsontext.Array(elements)
}

// areStored reports whether the elements of an array are parts.
func (f *foreign) areStored(elements [][]byte) bool {
	for _, element := range elements {
		members, _ := jsontext.Members(element) // none if it is not an object
		if members.Get(f.mark) == nil && f.plainPart("", members) == nil {
			return false
		}
	}
	return len(elements) > 0
}

// adoptContent returns the parts for the value of a result of another format.
func (f *foreign) adoptContent(value []byte) []byte {
	if jsontext.Kind(value) == "array" { // parts of the API already
		return value
	}
	return f.adoptValue(value)
}

// adoptValue returns the only part for a value.
func (f *foreign) adoptValue(value []byte) []byte {
	part := jsontext.Object{}
	switch kind := jsontext.Kind(value); {
	case kind == "nothing", kind == "null":
		return []byte("[]")
	case kind == "string":
		part = f.TextPart(value)
	case f.t.Result.JSON != "" && (kind == "object" || kind == "array"):
		part = part.With(f.t.Result.JSON, value)
	default:
		part = f.TextPart(jsontext.AppendQuote(nil, string(value)))
	}
	return jsontext.Array([][]byte{part.JSON()})
}
