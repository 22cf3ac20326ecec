package provider

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// noSignature is what Google documents for calls that Gemini did not make: from
// Gemini 3 on, the first call of a content is refused without a signature. See
// https://ai.google.dev/gemini-api/docs/thought-signatures.
const noSignature = `"skip_thought_signature_validator"`

func (g gemini) conversation(e *encoder, msgs []state.Message) (jsontext.Object, error) {
	w := geminiWriter{encoder: e}
	for i, m := range msgs {
		w.message(i, m, msgs[i+1:])
	}
	w.end()
	var members jsontext.Object
	for _, in := range w.instructions {
		if in.value == nil {
			in.value = geminiContent(nil, in.kept, nil, in.parts)
		}
		members = members.With(in.name, in.value)
	}
	contents := jsontext.Array(w.contents)
	if w.only && len(w.contents) == 1 {
		contents = w.contents[0]
	}
	return members.With("contents", contents), nil
}

// geminiWriter puts parts together to contents.
type geminiWriter struct {
	*encoder
	gemini
	instructions []geminiInstruction
	contents     [][]byte
	only         bool // the content was no element of an array

	// The content that has not ended yet.
	before state.Message   // its last message, nil if there is no content
	head   jsontext.Object // its members but for the parts
	rest   jsontext.Object // what was kept of it
	fresh  []string        // members that are not as they were kept
	parts  [][]byte
	called bool // there is a call among the parts
}

// geminiInstruction is a system instruction.
type geminiInstruction struct {
	name  string
	value []byte // as it came, if nothing was added
	kept  jsontext.Object
	parts [][]byte
}

// instruct adds a system instruction to the one of the name. What came from other
// formats has none and goes to the first, or where Google documents it.
func (w *geminiWriter) instruct(in geminiInstruction) {
	at := 0
	for in.name != "" && at < len(w.instructions) && w.instructions[at].name != in.name {
		at++
	}
	if at < len(w.instructions) {
		first := &w.instructions[at]
		first.value, first.parts = nil, append(first.parts, in.parts...)
		return
	}
	if in.name == "" {
		in.name = inInstruction
	}
	w.instructions = append(w.instructions, in)
}

// message writes a message. rest are those after it.
func (w *geminiWriter) message(i int, m state.Message, rest []state.Message) {
	kept, own := w.kept(m)
	joined := w.joins(w.before, m, own)
	switch m := m.(type) {
	case state.UnknownMessage:
		format, typ := origin.Unknown(m)
		item, ok := m.Extra(origin.Item)
		switch {
		case !ok || format != origin.Gemini:
			w.omit(i, "message of type "+m.Type())
		case geminiInstructs(typ):
			members, _ := jsontext.Members([]byte(item))
			whole := jsontext.Object(members)
			parts, _ := jsontext.Elements(whole.Get("parts"))
			kept = kept.With(more, whole.Without("parts").JSON())
			w.instruct(geminiInstruction{name: typ, kept: kept, parts: parts})
		default:
			w.end()
			w.contents, w.only = append(w.contents, []byte(item)), typ == inContents
		}
	case state.TextMessage:
		parts := w.said(i, m, own)
		first := len(w.contents) == 0 && w.before == nil
		system := m.Role() == "system" || m.Role() == "developer"
		if in := stringOf(kept.Get(keptIn)); first && system && (!own && len(parts) > 0 || geminiInstructs(in)) {
			instruction := geminiInstruction{name: in, kept: kept, parts: parts}
			if string(kept.Get(keptBare)) == "true" {
				instruction.value = []byte(m.Content())
			}
			w.instruct(instruction)
			return
		}
		if !own && (len(parts) == 0 || geminiBlank(parts) && w.beside(m, joined, rest)) {
			return
		}
		w.add(m, kept, joined, parts)
	case state.ToolCallMessage:
		calls := m.Calls()
		parts := make([][]byte, len(calls))
		for n, c := range calls {
			if own {
				held, _ := w.keptOf(c)
				parts[n] = geminiWrap("functionCall", w.call(c.ID, c.Name, geminiValue(c.Input)), held)
			} else {
				parts[n] = w.foreignCall(c, n == 0 && !(joined && w.called))
			}
		}
		if len(parts) > 0 {
			w.add(m, kept, joined, parts)
			w.called = true
		}
	case state.ToolResultMessage:
		var part []byte
		if c := m.Call(); own {
			part = geminiWrap("functionResponse", w.reply(c.ID, c.Name, geminiValue(m.Content())), kept)
		} else {
			part = w.foreignResult(i, m)
		}
		w.add(m, kept, joined, [][]byte{part})
	}
}

// beside reports whether a text belongs to a content that has something else to
// say.
func (w *geminiWriter) beside(m state.Message, joined bool, rest []state.Message) bool {
	for _, next := range rest {
		if _, unknown := next.(state.UnknownMessage); !unknown {
			_, own := w.kept(next)
			return joined || next.Type() == "tool_call" && w.joins(m, next, own)
		}
	}
	return joined
}

// joins reports whether a message is of the same content as the one before it.
// Results always are, since Gemini wants the ones for all calls in one content,
// and nothing else there.
func (w *geminiWriter) joins(before, m state.Message, own bool) bool {
	if before == nil {
		return false
	}
	joined, said := origin.Joined(m)
	result, after := m.Type() == "tool_result", before.Type() == "tool_result"
	switch {
	case own && said:
		return joined && w.role(before) == w.role(m)
	case result || after:
		return result && after
	case said:
		return joined && before.Role() == m.Role()
	}
	return origin.Joins(before, m)
}

// role returns the role of the content that a message is in.
func (w *geminiWriter) role(m state.Message) string {
	kept, _ := w.kept(m)
	if role := stringOf(kept.Get(keptRole)); role != "" {
		return role
	}
	return geminiRole(m.Type(), m.Role())
}

// add adds parts to the content that has not ended, or begins one.
func (w *geminiWriter) add(m state.Message, kept jsontext.Object, joined bool, parts [][]byte) {
	if !joined {
		w.end()
		w.head, w.rest, w.fresh = jsontext.Object{}.WithString("role", geminiRole(m.Type(), m.Role())), kept, nil
		if m.Type() != "tool_result" && m.Role() != geminiSaidAs(kept, m.Role()) {
			w.fresh = []string{"role"}
		}
		in := stringOf(kept.Get(keptIn))
		if geminiInstructs(in) { // it is elsewhere now
			w.rest = nil
		}
		w.only = w.only || in == inContents
	}
	w.before, w.parts = m, append(w.parts, parts...)
}

// end ends the content.
func (w *geminiWriter) end() {
	if w.before != nil {
		w.contents = append(w.contents, geminiContent(w.head, w.rest, w.fresh, w.parts))
	}
	w.before, w.parts, w.called = nil, nil, false
}

// geminiInstructs reports whether a place is that of a system instruction.
func geminiInstructs(in string) bool { return in == inInstruction || in == inInstruction2 }

// geminiContent returns a content as it was kept, with parts; but for the members
// in fresh, which have changed since.
func geminiContent(head, kept jsontext.Object, fresh []string, parts [][]byte) []byte {
	if len(parts) == 0 {
		return restore(head.With("parts", []byte("[]")), kept, fresh...).JSON()
	}
	return restore(head, kept, fresh...).With("parts", jsontext.Array(parts)).JSON()
}

// geminiSaidAs returns the role that a message got from a content of which the
// role was kept, or else the other one.
func geminiSaidAs(kept jsontext.Object, other string) string {
	role := inside(kept, more).Get("role")
	switch {
	case role == nil && !strings.Contains(string(kept.Get(without)), `"role"`):
		return other
	case stringOf(role) == "model":
		return "assistant"
	case jsontext.Kind(role) == "string":
		return stringOf(role)
	}
	return "user" // it was missing, or null
}

// geminiWrap returns a part with a call or a result, as it was kept.
func geminiWrap(name string, inner, kept jsontext.Object) []byte {
	if as := stringOf(kept.Get(keptAs)); as != "" {
		name = as
	}
	inner = restore(inner, inside(kept, keptBlock))
	return restore(jsontext.Object{}.With(name, inner.JSON()), inside(kept, keptPart)).JSON()
}

// geminiValue returns nil for what is absent.
func geminiValue(value state.JSON) []byte {
	if value == "" {
		return nil
	}
	return []byte(value)
}

// said returns the parts of a text message.
func (w *geminiWriter) said(i int, m state.TextMessage, own bool) [][]byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "string" {
		return [][]byte{jsontext.Object{}.With("text", content).JSON()}
	}
	elements, err := jsontext.Elements(content)
	if err != nil {
		return nil // null, or missing
	}
	parts := elements[:0]
	for _, element := range elements {
		members, _ := jsontext.Members(element) // they are objects
		part := jsontext.Object(members)
		typ := stringOf(part.Get("type"))
		switch {
		case own && typ == "text":
			element = part.Without("type").JSON()
		case own:
		case typ == "text":
			element = jsontext.Object{}.With("text", part.Get("text")).JSON()
		default:
			if element = geminiMedia(part); element == nil {
				w.omit(i, geminiOmitted(part))
				continue
			}
		}
		parts = append(parts, element)
	}
	return parts
}

// geminiOmitted says what a part is.
func geminiOmitted(part jsontext.Object) string {
	if typ := stringOf(part.Get("type")); typ != "" {
		return "part of type " + typ
	}
	return "part without a type"
}

// geminiBlank reports whether the parts say nothing.
func geminiBlank(parts [][]byte) bool {
	for _, part := range parts {
		if string(part) != `{"text":""}` {
			return false
		}
	}
	return true
}

// geminiMedia returns the part for one of another format, nil if there is none.
// A file has to be what Gemini can fetch: a URL or a part's data with its type.
func geminiMedia(part jsontext.Object) []byte {
	m, ok := mediaOf(part)
	var held jsontext.Object
	if m.mime != "" {
		held = held.WithString("mimeType", m.mime)
	}
	switch {
	case ok && m.data != "" && m.mime != "":
		return jsontext.Object{}.With("inlineData", held.WithString("data", m.data).JSON()).JSON()
	case ok && m.data == "":
		return jsontext.Object{}.With("fileData", held.WithString("fileUri", m.url).JSON()).JSON()
	}
	return nil
}

// foreignCall returns the part for a call of another format.
func (w *geminiWriter) foreignCall(c state.ToolCall, first bool) []byte {
	args := []byte(c.Input)
	switch jsontext.Kind(args) {
	case "object":
	case "nothing", "null":
		args = []byte("{}")
	default:
		args = jsontext.Object{}.With("arguments", args).JSON()
	}
	part := jsontext.Object{}.With("functionCall", w.call(c.ID, c.Name, args).JSON())
	if first {
		part = part.With("thoughtSignature", []byte(noSignature))
	}
	return part.JSON()
}

// foreignResult returns the part for a result of another format. Gemini wants
// an object: what is none goes where Google says that output and errors go.
func (w *geminiWriter) foreignResult(i int, m state.ToolResultMessage) []byte {
	c, response, key := m.Call(), []byte(m.Content()), "output"
	if m.IsError() {
		key = "error"
	}
	var media [][]byte
	switch jsontext.Kind(response) {
	case "object":
	case "nothing":
		response = []byte("{}")
	case "array":
		text, files, ok := w.foreignParts(i, response)
		if ok {
			response, media = jsontext.AppendQuote(nil, text), files
		}
		fallthrough
	default:
		response = jsontext.Object{}.With(key, response).JSON()
	}
	inner := w.reply(c.ID, c.Name, response)
	if len(media) > 0 {
		inner = inner.With("parts", jsontext.Array(media))
	}
	return jsontext.Object{}.With("functionResponse", inner.JSON()).JSON()
}

// foreignParts returns what an array says if it consists of texts and media: a
// list of anything else is a value like others.
func (w *geminiWriter) foreignParts(i int, content []byte) (text string, media [][]byte, ok bool) {
	elements, err := jsontext.Elements(content)
	if err != nil || len(elements) == 0 {
		return "", nil, false
	}
	var texts, lost []string
	for _, element := range elements {
		members, err := jsontext.Members(element)
		if err != nil {
			return "", nil, false
		}
		part := jsontext.Object(members)
		if value := part.Get("text"); stringOf(part.Get("type")) == "text" && jsontext.Kind(value) == "string" {
			texts = append(texts, jsontext.Unquote(value))
			continue
		}
		if _, is := mediaOf(part); !is {
			return "", nil, false
		}
		if file := geminiMedia(part); file != nil {
			media = append(media, file)
		} else {
			lost = append(lost, geminiOmitted(part))
		}
	}
	for _, what := range lost {
		w.omit(i, what)
	}
	return strings.Join(texts, "\n"), media, true
}
