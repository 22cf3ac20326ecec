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
	message     codec.Growing
	calls       callFinder
}

// Add takes a chunk.
func (a *assembler) Add(chunk jsontext.Object) error {
	a.begun = true
	setUnlessEmpty(&a.id, chunk.Get("id"))
	setUnlessEmpty(&a.created, chunk.Get("created"))
	if err := chunk.EachObject("choices", a.addChoice); err != nil {
		return err
	}
	return codec.ReportedFailure(chunk)
}

func (a *assembler) addChoice(_ []byte, choice jsontext.Object) error {
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
	return fault.Under("$.delta", a.addDelta(&a.message, members))
}

// Result returns the response.
func (a *assembler) Result() (body jsontext.Object, complete bool) {
	if !a.begun {
		return nil, false
	}
	body = jsontext.Object{}.WithString("object", "chat.completion").
		With("id", a.id).With("created", a.created)
	if !a.choices {
		return body.With("choices", []byte("[]")), false
	}
	choice := jsontext.Object{}.With("message", a.message.Object().JSON()).With("finish_reason", a.finish)
	return body.With("choices", jsontext.Array([][]byte{choice.JSON()})), !isEmpty(a.finish)
}

// setUnlessEmpty sets dst to a value that says something, or to the first one.
func setUnlessEmpty(dst *[]byte, value []byte) {
	if *dst == nil || !isEmpty(value) {
		*dst = value
	}
}

// Texts of the members in pieces come piece by piece. Any other text comes
// whole, and some providers repeat it. The members in objects are objects whose
// own members come in pieces.
var (
	pieces = []string{
		"content", "refusal", "reasoning", "reasoning_content", "reasoning_text",
		"arguments", "input", "transcript", "data",
	}
	objects = []string{"function", "custom", legacyCall, "audio"}
)

// addDelta adds the delta of a message, of a call, or of an object in one of
// these.
func (a *assembler) addDelta(object *codec.Growing, delta jsontext.Object) error {
	for _, m := range delta {
		if m.Name == "index" { // only streams have it
			continue
		}
		if err := a.addMember(object.Member(m.Name), delta, m); err != nil {
			return err
		}
	}
	return nil
}

// addMember adds a member of a delta.
func (a *assembler) addMember(member *codec.Growing, delta jsontext.Object, sent jsontext.Member) error {
	switch kind := jsontext.Kind(sent.Value); {
	case kind == "array" && sent.Name == "tool_calls":
		calls := member.AsList()
		return delta.EachObject(sent.Name, func(_ []byte, call jsontext.Object) error {
			return a.addDelta(a.calls.find(calls, call), call)
		})
	case kind == "object" && slices.Contains(objects, sent.Name):
		err := a.addDelta(member.AsObject(), delta.Object(sent.Name))
		return fault.Under(jsontext.Path("$", sent.Name), err)
	case kind == "array":
		elements, _ := delta.Elements(sent.Name)
		appendParts(member, elements)
	case kind == "string" && slices.Contains(pieces, sent.Name):
		appendText(member, jsontext.Unquote(sent.Value))
	case member.IsEmpty(), member.IsWhole() && !isEmpty(sent.Value):
		member.Set(sent.Value)
	}
	return nil
}

// appendParts appends parts. A text before them becomes a part.
func appendParts(member *codec.Growing, parts [][]byte) {
	if member.IsText() {
		text := member.JSON()
		member.Set([]byte("[]"))
		if !isEmpty(text) {
			member.Append(textPart(text).JSON())
		}
	}
	member.Append(parts...)
}

// appendText appends to a text. After parts, the text is one of them.
func appendText(member *codec.Growing, text string) {
	if !member.IsList() {
		member.AppendText(text)
		return
	}
	if text == "" {
		return
	}
	n := member.Len()
	if n > 0 && !member.Element(n-1).IsWhole() {
		n--
	}
	part := member.Element(n)
	if part.IsEmpty() {
		part.Member("type").Set([]byte(`"text"`))
	}
	part.Member("text").AppendText(text)
}

// callFinder finds the call to which a delta belongs.
type callFinder struct {
	last    *streamedCall
	byIndex map[string]*streamedCall // the latest of each
	byID    map[string]*streamedCall
}

type streamedCall struct {
	id string
	*codec.Growing
}

// find returns the call of a delta, or a new call. The index identifies a call.
// Some providers send no index, and some send the same one with every call:
// then a new id begins a call, if it comes with a name.
func (f *callFinder) find(calls *codec.Growing, delta jsontext.Object) *codec.Growing {
	index, id := string(delta.Get("index")), delta.String("id")
	var found *streamedCall
	switch {
	case jsontext.Kind([]byte(index)) == "number":
		found = f.byIndex[index]
		if found != nil && id != "" && found.id != "" && found.id != id && isNamed(delta) {
			found = nil
		}
	case id != "":
		found = f.byID[id]
	default:
		found = f.last
	}
	if found == nil {
		found = &streamedCall{Growing: calls.Element(calls.Len()).AsObject()}
		f.last = found
	}
	if f.byID == nil {
		f.byIndex, f.byID = map[string]*streamedCall{}, map[string]*streamedCall{}
	}
	f.byIndex[index] = found
	if id != "" {
		found.id, f.byID[id] = id, found
	}
	return found.Growing
}

func isNamed(delta jsontext.Object) bool {
	return delta.Object("function").String("name") != "" || delta.Object("custom").String("name") != ""
}
