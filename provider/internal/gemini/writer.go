package gemini

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// ownMembers are what the part of a call may have.
var ownMembers = []string{"thoughtSignature"}

// OwnMembers returns the members of a call that its part has, and those of a
// tool.
func (Format) OwnMembers(typ string) []string {
	switch typ {
	case codec.TypeOneCall:
		return ownMembers
	case codec.TypeOffered:
		return ownOfTool
	}
	return nil
}

// EncodeRequest returns the body of a request.
func (f Format) EncodeRequest(e *codec.Encoder, r codec.Request, msgs []state.Message) (jsontext.Object, error) {
	return r.Body(f.EncodeTools, f.EncodeMessages(e, msgs))
}

// EncodeMessages returns the system instructions and the contents.
func (Format) EncodeMessages(e *codec.Encoder, msgs []state.Message) jsontext.Object {
	w := contentWriter{Encoder: e}
	for i, m := range msgs {
		switch m := m.(type) {
		case state.UnknownMessage:
			w.addItem(i, m)
		case state.TextMessage:
			w.addText(i, m, msgs[i+1:])
		case state.ToolCallMessage:
			w.addCalls(m)
		case state.ToolResultMessage:
			w.addResult(i, m)
		}
	}
	w.endContent()
	var members jsontext.Object
	for _, in := range w.instructions {
		if in.value == nil {
			in.value = in.content.json()
		}
		members = members.With(in.name, in.value)
	}
	contents := jsontext.Array(w.contents)
	if w.bare && len(w.contents) == 1 {
		contents = w.contents[0]
	}
	return members.With("contents", contents)
}

// contentWriter makes contents of messages.
type contentWriter struct {
	*codec.Encoder
	instructions []instruction
	contents     [][]byte
	bare         bool          // the only content was not in an array
	open         *content      // which more messages may join, nil if there is none
	before       state.Message // the last message of the open content, nil if there is none
}

// instruction is a system instruction.
type instruction struct {
	name    string // of its member, "" if it does not come from the format
	value   []byte // as it came, nil if something was added
	content content
}

// content is a content in the making.
type content struct {
	plain   jsontext.Object // without the parts
	kept    jsontext.Object
	changed []string // the members that differ from what was kept
	parts   [][]byte
	hasCall bool
}

func (c *content) json() []byte {
	if len(c.parts) == 0 {
		return codec.Restore(c.plain.With("parts", []byte("[]")), c.kept, c.changed...).JSON()
	}
	parts := jsontext.Array(c.parts)
	if len(c.parts) == 1 && c.kept.Bool(keptLone) {
		parts = c.parts[0]
	}
	return codec.Restore(c.plain, c.kept, c.changed...).With("parts", parts).JSON()
}

// addItem adds a content that was kept whole.
func (w *contentWriter) addItem(i int, m state.UnknownMessage) {
	item, in, ok := w.KeptItem(i, m)
	switch {
	case !ok:
	case isInstruction(in):
		members, _ := jsontext.Members(item)    // checked with the message
		parts, err := members.Elements("parts") // a content without parts is not kept whole
		if err != nil {
			parts = [][]byte{members.Get("parts")} // one that is not in an array
		}
		kept := codec.Difference(members.Without("parts"), nil)
		w.instruct(instruction{name: in, value: item, content: content{kept: kept, parts: parts}})
	default:
		w.endContent()
		w.contents, w.bare = append(w.contents, item), in == inContents
	}
}

// addText adds a text. rest are the messages after it.
func (w *contentWriter) addText(i int, m state.TextMessage, rest []state.Message) {
	kept, own := w.Kept(m)
	parts := w.encodeParts(i, m, own)
	in := kept.String(keptIn)
	begins := len(w.contents) == 0 && w.open == nil
	if begins && origin.IsSystem(m) && (!own && len(parts) > 0 || isInstruction(in)) {
		added := instruction{name: in, content: content{kept: kept, parts: parts}}
		if kept.Bool(keptBare) {
			added.value = []byte(m.Content())
		}
		w.instruct(added)
		return
	}
	joined := w.isJoined(w.before, m)
	if !own && (len(parts) == 0 || isBlank(parts) && w.hasCompany(m, joined, rest)) {
		return
	}
	c := w.contentFor(m, joined)
	c.parts = append(c.parts, parts...)
}

// instruct adds a system instruction to the one of the same name. One that does
// not come from the format has no name. It goes to the first instruction, or
// where Google documents it.
func (w *contentWriter) instruct(added instruction) {
	for i := range w.instructions {
		if same := &w.instructions[i]; added.name == "" || added.name == same.name {
			same.value, same.content.parts = nil, append(same.content.parts, added.content.parts...)
			return
		}
	}
	if added.name == "" {
		added.name = inInstruction
	}
	w.instructions = append(w.instructions, added)
}

// hasCompany reports whether the content of a text has something else to say.
func (w *contentWriter) hasCompany(m state.Message, joined bool, rest []state.Message) bool {
	for _, next := range rest {
		if _, unknown := next.(state.UnknownMessage); !unknown {
			return joined || next.Type() == codec.TypeCall && w.isJoined(m, next)
		}
	}
	return joined
}

func (w *contentWriter) addCalls(m state.ToolCallMessage) {
	calls := m.Calls()
	if len(calls) == 0 {
		return
	}
	_, own := w.Kept(m)
	c := w.contentFor(m, w.isJoined(w.before, m))
	for _, call := range calls {
		if own {
			kept, _ := w.KeptOfCall(call)
			plain := plainOf(call, "args", codec.ValueOrNil(call.Input))
			c.parts = append(c.parts, restorePart("functionCall", plain, kept))
		} else {
			c.parts = append(c.parts, foreignCall(call, w.OwnMembersOfCall(call, ownMembers), !c.hasCall))
		}
		c.hasCall = true
	}
}

// foreignCall returns the part of a call that does not come from the format.
func foreignCall(call state.ToolCall, own jsontext.Object, first bool) []byte {
	inner := plainOf(call, "args", codec.InputObject([]byte(call.Input)))
	part := append(jsontext.Object{}.With("functionCall", inner.JSON()), own...)
	if first && len(own) == 0 {
		part = part.WithString("thoughtSignature", origin.NoSignature)
	}
	return part.JSON()
}

func (w *contentWriter) addResult(i int, m state.ToolResultMessage) {
	kept, own := w.Kept(m)
	joined := w.isJoined(w.before, m)
	var part []byte
	if call := m.Call(); own {
		plain := plainOf(call, "response", codec.ValueOrNil(m.Content()))
		part = restorePart("functionResponse", plain, kept)
	} else {
		part = w.foreignResponse(i, m)
	}
	c := w.contentFor(m, joined)
	c.parts = append(c.parts, part)
}

// foreignResponse returns the part of a result that does not come from the
// format. Gemini takes an object: any other value goes where Google documents
// output and errors. Of texts and media, the texts are the value.
func (w *contentWriter) foreignResponse(i int, m state.ToolResultMessage) []byte {
	response := []byte(m.Content())
	var files [][]byte
	switch jsontext.Kind(response) {
	case "object", "nothing":
		w.OmitIsError(i, m)
		if len(response) == 0 {
			response = []byte("{}")
		}
	default:
		if parts := w.ReadParts(m, origin.RoleTool, response); codec.AreParts(parts) {
			response, files = w.textAndFiles(i, parts)
		}
		name := "output"
		if m.IsError() {
			name = "error"
		}
		response = jsontext.Object{}.With(name, response).JSON()
	}
	inner := plainOf(m.Call(), "response", response)
	if len(files) > 0 {
		inner = inner.With("parts", jsontext.Array(files))
	}
	return jsontext.Object{}.With("functionResponse", inner.JSON()).JSON()
}

func (w *contentWriter) textAndFiles(i int, parts []codec.Part) (text []byte, files [][]byte) {
	var texts []string
	var omitted []codec.Part
	for _, p := range parts {
		if p.Kind == codec.PartText {
			texts = append(texts, jsontext.Unquote(p.Text))
		} else if file := mediaPart(p); file != nil {
			files = append(files, file)
		} else {
			omitted = append(omitted, p)
			continue
		}
		w.OmitRest(i, p)
	}
	w.OmitParts(i, omitted)
	if text := codec.Placeholder(omitted); text != nil && len(texts)+len(files) == 0 {
		return text, nil
	}
	return jsontext.AppendQuote(nil, strings.Join(texts, "\n")), files
}

// encodeParts returns the parts of a text message.
func (w *contentWriter) encodeParts(i int, m state.TextMessage, own bool) [][]byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "string" {
		return [][]byte{textPart(content)}
	}
	if own {
		return ownParts(content)
	}
	var encoded [][]byte
	var omitted []codec.Part
	for _, p := range w.ReadParts(m, m.Role(), content) {
		var part []byte
		switch {
		case p.AsIs:
			encoded = append(encoded, p.Members.JSON())
			continue
		case p.Kind == codec.PartText, p.Kind == codec.PartRefusal:
			part = textPart(p.Text)
		case p.IsMedia() && !origin.IsSystem(m):
			part = mediaPart(p)
		}
		if part == nil {
			omitted = append(omitted, p)
			continue
		}
		encoded = append(encoded, part)
		w.OmitRest(i, p)
	}
	w.OmitParts(i, omitted)
	if text := codec.Placeholder(omitted); text != nil && len(encoded) == 0 {
		return [][]byte{textPart(text)}
	}
	return encoded
}

// ownParts returns the parts that addText made content of.
func ownParts(content []byte) [][]byte {
	elements, _ := jsontext.Elements(content) // none if it is null or missing
	for i, element := range elements {
		if part, _ := jsontext.Members(element); part.String("type") == "text" {
			elements[i] = part.Without("type").JSON()
		}
	}
	return elements
}

func textPart(text []byte) []byte { return jsontext.Object{}.With("text", text).JSON() }

// isBlank reports whether the parts say nothing.
func isBlank(parts [][]byte) bool {
	for _, part := range parts {
		if string(part) != `{"text":""}` {
			return false
		}
	}
	return true
}

// isJoined reports whether a message belongs to the content of the message
// before it. Results always do, because Gemini requires the results of all
// calls in one content, with nothing else.
func (w *contentWriter) isJoined(before, m state.Message) bool {
	if before == nil {
		return false
	}
	_, own := w.Kept(m)
	joined, said := origin.Joined(m)
	isResult, afterResult := m.Type() == codec.TypeResult, before.Type() == codec.TypeResult
	switch {
	case own && said:
		return joined && w.roleOf(before) == w.roleOf(m)
	case isResult || afterResult:
		return isResult && afterResult
	case said:
		return joined && before.Role() == m.Role()
	}
	return origin.Joins(before, m)
}

// roleOf returns the role of the content of a message.
func (w *contentWriter) roleOf(m state.Message) string {
	kept, _ := w.Kept(m)
	if role := kept.String(keptRole); role != "" {
		return role
	}
	return contentRole(m.Type(), m.Role())
}

// contentFor returns the content for a message: the open one if the message
// joins it.
func (w *contentWriter) contentFor(m state.Message, joined bool) *content {
	if !joined {
		w.endContent()
		w.open = w.newContent(m)
	}
	w.before = m
	return w.open
}

func (w *contentWriter) newContent(m state.Message) *content {
	kept, _ := w.Kept(m)
	c := &content{kept: kept, plain: jsontext.Object{}.WithString("role", contentRole(m.Type(), m.Role()))}
	if m.Type() != codec.TypeResult && m.Role() != decodedRole(kept, m.Role()) {
		c.changed = []string{"role"}
	}
	in := kept.String(keptIn)
	if isInstruction(in) { // it is elsewhere now
		c.kept = nil
	}
	w.bare = w.bare || in == inContents
	return c
}

func (w *contentWriter) endContent() {
	if w.open != nil {
		w.contents = append(w.contents, w.open.json())
	}
	w.open, w.before = nil, nil
}

// isInstruction reports whether a place is that of a system instruction.
func isInstruction(in string) bool { return in == inInstruction || in == inSnakeInstruction }

// decodedRole returns the role that a message got when it was decoded, or other
// if the role of its content was not kept.
func decodedRole(kept jsontext.Object, other string) string {
	sent, differs := codec.SentMember(kept, "role")
	switch {
	case !differs:
		return other
	case jsontext.Kind(sent) != "string":
		return "user" // it was missing, or null
	case string(sent) == `"model"`:
		return "assistant"
	}
	return jsontext.Unquote(sent)
}
