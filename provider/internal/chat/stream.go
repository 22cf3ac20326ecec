package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// NewAssembler returns an assembler for a streamed response.
func (Format) NewAssembler(emit func(codec.Delta)) codec.Assembler { return &assembler{emit: emit} }

// assembler puts the chunks of a response together: those of the choice with
// index 0.
type assembler struct {
	begun       bool
	id, created []byte
	choices     bool // there has been a chunk of the choice
	finish      []byte
	message     codec.Growing
	calls       callFinder
	emit        func(codec.Delta)
	reasoning   string // the member with the reasoning that is emitted: some providers send it twice
}

// Ended returns false: after the last choice, the usage and "[DONE]" follow.
func (a *assembler) Ended() bool { return false }

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
	return fault.Under("$.delta", a.addDelta(&a.message, members, nil))
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
	message := a.message.Object()
	if message.Get("content") == nil { // as a whole response has it
		message = message.With("content", []byte("null"))
	}
	choice := jsontext.Object{}.With("message", message.JSON()).With("finish_reason", a.finish)
	return body.With("choices", jsontext.Array([][]byte{choice.JSON()})), !codec.IsEmpty(a.finish)
}

// setUnlessEmpty sets dst to a value that says something, or to the first one.
func setUnlessEmpty(dst *[]byte, value []byte) {
	if *dst == nil || !codec.IsEmpty(value) {
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

	// members are those of a message, of a call, and of the objects in these, that
	// whole responses have. Any other that is no object and no list is of a delta
	// only, such as Groq's channel, and servers refuse it in a message.
	members = append([]string{
		"role", "reasoning_opaque", "thought_signature", // those of reasoning are as GitHub and Google send them
		"id", "type", "name", "expires_at",
	}, append(objects, pieces...)...)
)

// addDelta adds the delta of a message, of a call, or of an object in one of
// these. Within a call, the call is given.
func (a *assembler) addDelta(object *codec.Growing, delta jsontext.Object, call *streamedCall) error {
	for _, m := range delta {
		kind := jsontext.Kind(m.Value)
		if kind != "object" && kind != "array" && !isMember(m) {
			continue
		}
		if err := a.addMember(object.Member(m.Name), delta, m, call); err != nil {
			return err
		}
	}
	return nil
}

// isMember reports whether a member may be one of a message. Lists that a whole
// response has may be null in it.
func isMember(m jsontext.Member) bool {
	switch m.Name {
	case "tool_calls", "annotations", "images", "reasoning_details":
		return jsontext.IsNull(m.Value)
	}
	return slices.Contains(members, m.Name)
}

// addMember adds a member of a delta.
func (a *assembler) addMember(
	member *codec.Growing, delta jsontext.Object, sent jsontext.Member, call *streamedCall,
) error {
	switch kind := jsontext.Kind(sent.Value); {
	case kind == "array" && sent.Name == "tool_calls":
		calls := member.AsList()
		return delta.EachObject(sent.Name, func(_ []byte, delta jsontext.Object) error {
			call := a.calls.find(calls, delta)
			if call == nil { // it has come
				return nil
			}
			a.emitBegin(call)
			return a.addDelta(call.Growing, delta, call)
		})
	case kind == "object" && slices.Contains(objects, sent.Name):
		inside := delta.Object(sent.Name)
		if sent.Name == legacyCall {
			if call = a.calls.findLegacy(inside); call.repeats(member, inside) {
				return nil
			}
			a.emitBegin(call)
		}
		return fault.Under(jsontext.Path("$", sent.Name), a.addDelta(member.AsObject(), inside, call))
	case kind == "array":
		elements, _ := delta.Elements(sent.Name)
		appendParts(member, elements)
		a.emitParts(sent.Name, elements)
	case kind == "string" && slices.Contains(pieces, sent.Name):
		text := jsontext.Unquote(sent.Value)
		appendText(member, text)
		a.emitText(sent.Name, text, call)
	case member.IsEmpty(), member.IsWhole() && !codec.IsEmpty(sent.Value):
		member.Set(sent.Value)
		if kind == "object" && sent.Name == "arguments" && call != nil {
			a.emitInput(call, string(sent.Value))
		}
	}
	return nil
}

// emitText emits a piece of the text of a member.
func (a *assembler) emitText(name, text string, call *streamedCall) {
	switch {
	case text == "":
	case call != nil:
		if name == "arguments" || name == "input" {
			a.emitInput(call, text)
		}
	case name == "content" || name == "refusal":
		a.emit(codec.Delta{Kind: codec.DeltaText, Text: text})
	case strings.HasPrefix(name, "reasoning"):
		if a.reasoning == "" {
			a.reasoning = name
		}
		if a.reasoning == name {
			a.emit(codec.Delta{Kind: codec.DeltaThinking, Text: text})
		}
	}
}

// emitBegin emits that a call has begun, once.
func (a *assembler) emitBegin(call *streamedCall) {
	if !call.begun {
		call.begun = true
		a.emitInput(call, "")
	}
}

func (a *assembler) emitInput(call *streamedCall, text string) {
	a.emit(codec.Delta{Kind: codec.DeltaInput, Text: text, Call: call.number, ID: call.id, Name: call.name})
}

// emitParts emits the texts of parts. Mistral sends thinking as a part that has
// a list of texts.
func (a *assembler) emitParts(name string, parts [][]byte) {
	if name != "content" {
		return
	}
	for _, raw := range parts {
		part, _ := jsontext.Members(raw) // none if it is not an object
		switch part.String("type") {
		case "text":
			a.emitText(name, part.String("text"), nil)
		case "thinking":
			texts, _ := part.Elements("thinking")
			for _, raw := range texts {
				text, _ := jsontext.Members(raw)
				a.emitText("reasoning", text.String("text"), nil)
			}
		}
	}
}

// callFinder finds the call to which a delta belongs.
type callFinder struct {
	last    *streamedCall
	legacy  *streamedCall
	byIndex map[string]*streamedCall // the latest of each
	byID    map[string]*streamedCall
}

type streamedCall struct {
	id, name string
	number   int  // of calls before it
	begun    bool // its begin has been emitted
	*codec.Growing
}

// find returns the call of a delta, or a new call, and nil for one that has come
// whole, as some servers send each twice. The index identifies a call.
// Some providers send no index, and some send the same one with every call:
// then a new id begins a call, if it comes with a name.
func (f *callFinder) find(calls *codec.Growing, delta jsontext.Object) *streamedCall {
	index, id := string(delta.Get("index")), delta.String("id")
	var found *streamedCall
	switch {
	case jsontext.Kind([]byte(index)) == "number":
		found = f.byIndex[index]
		if found != nil && id != "" && found.id != "" && found.id != id && nameOf(delta) != "" {
			found = nil
		}
		if found != nil && (id == "" || id == found.id) {
			function := delta.Object("function")
			switch has := found.Member("function"); {
			case found.repeats(has, function):
				return nil
			case id == "" && nameOf(delta) != "" && isObject(has.Member("arguments").JSON()) &&
				isObject(function.Get("arguments")):
				found = nil // another one, of a server without ids
			}
		}
	case id != "":
		found = f.byID[id]
	default:
		found = f.last
	}
	if found == nil {
		found = &streamedCall{number: calls.Len(), Growing: calls.Element(calls.Len()).AsObject()}
		f.last = found
	}
	if f.byID == nil {
		f.byIndex, f.byID = map[string]*streamedCall{}, map[string]*streamedCall{}
	}
	f.byIndex[index] = found
	if id != "" {
		found.id, f.byID[id] = id, found
	}
	found.name = cmp.Or(found.name, nameOf(delta))
	return found
}

// findLegacy returns the only call of a message of the time before tools.
func (f *callFinder) findLegacy(delta jsontext.Object) *streamedCall {
	if f.legacy == nil {
		f.legacy = &streamedCall{name: delta.String("name")}
	}
	return f.legacy
}

// repeats reports whether the delta of a call that has begun is all of it once more.
func (c *streamedCall) repeats(has *codec.Growing, delta jsontext.Object) bool {
	return c.begun && delta.String("name") == c.name && isObject(delta.Get("arguments")) &&
		codec.EqualJSON(has.Member("arguments").JSON(), delta.Get("arguments"))
}

// isObject reports whether arguments are a text that is an object with members.
func isObject(arguments []byte) bool {
	input, _ := codec.ArgumentsInput(arguments)
	return jsontext.Kind(input) == "object" && len(input) > len("{}")
}

// nameOf returns the name of the tool in the delta of a call.
func nameOf(delta jsontext.Object) string {
	return cmp.Or(delta.Object("function").String("name"), delta.Object("custom").String("name"))
}
