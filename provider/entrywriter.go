package provider

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// entryWriter makes entries of messages, for a codec.
type entryWriter struct {
	foreign
	*codec.Encoder
	entries []Entry
	count   int // of entries before a codec splits them

	open   *Entry          // which more messages may join, nil if there is none
	kept   jsontext.Object // of its first message
	from   []int           // its messages
	before state.Message   // the last of them
}

func (f foreign) newWriter(e *codec.Encoder) *entryWriter {
	return &entryWriter{foreign: f, Encoder: e}
}

// encodeEntries returns the entries of messages, with their JSON.
func (f foreign) encodeEntries(e *codec.Encoder, msgs []state.Message) []Entry {
	w := f.newWriter(e)
	for i, m := range msgs {
		w.add(i, m)
	}
	w.endEntry()
	return w.entries
}

func (w *entryWriter) add(i int, m state.Message) {
	kept, own := w.Kept(m)
	switch m := m.(type) {
	case state.UnknownMessage:
		if item, _, ok := w.KeptItem(i, m); ok {
			w.endEntry()
			w.count++
			w.entries = append(w.entries, Entry{Role: m.Role(), JSON: state.JSON(item)})
		}
	case state.TextMessage:
		if parts := w.textParts(i, m, own); len(parts) > 0 {
			w.join(i, m, m.Role(), parts)
		}
	case state.ToolCallMessage:
		role := roleAssistant
		if own {
			role = m.Role()
		}
		var parts []Part
		for _, c := range m.Calls() {
			kept, _ := w.KeptOfCall(c)
			parts = append(parts, w.encode(role, callPart(c.ID, c.Name, c.Input), kept))
		}
		w.join(i, m, role, parts)
	case state.ToolResultMessage:
		role := RoleTool
		if jsontext.Kind(kept.Get("role")) == "string" {
			role = kept.String("role")
		}
		w.join(i, m, role, []Part{w.encode(role, w.result(i, m, kept, own), kept.Object("part"))})
	}
}

// join adds the parts of a message to the open entry, or to a new one.
func (w *entryWriter) join(i int, m state.Message, role string, parts []Part) {
	if w.open == nil || w.open.Role != role || !isJoined(w.before, m) {
		w.endEntry()
		w.kept, _ = w.Kept(m)
		w.open = &Entry{Role: role}
	}
	w.before, w.from = m, append(w.from, i)
	w.open.Parts = append(w.open.Parts, parts...)
}

// isJoined reports whether a message belongs to the entry of the message before
// it, if both have the same role. Results go together unless they say that they
// do not.
func isJoined(before, m state.Message) bool {
	if joined, said := origin.Joined(m); said {
		return joined
	}
	if _, ok := m.(state.ToolResultMessage); ok {
		return before.Type() == codec.TypeResult
	}
	return origin.Joins(before, m)
}

// endEntry ends the open entry.
func (w *entryWriter) endEntry() {
	if w.open == nil {
		return
	}
	e := *w.open
	encoded := w.EncodeEntry(e)
	for k, element := range encoded {
		if e.JSON = element; k == 0 {
			e.JSON = state.JSON(codec.Apply([]byte(element), w.kept.Object("entry")))
		}
		w.entries = append(w.entries, e)
	}
	if len(encoded) == 0 {
		for _, i := range w.from {
			w.Omit(i, "message of role "+e.Role)
		}
	} else {
		w.count++
	}
	w.open, w.from = nil, nil
}

// encode returns a part with its JSON.
func (w *entryWriter) encode(role string, p Part, kept jsontext.Object) Part {
	text, _ := w.EncodePart(role, p)
	p.JSON = state.JSON(codec.Apply([]byte(text), kept))
	return p
}

// textParts returns the parts of a text message, as far as the codec can express
// them. If nothing is left, a text stands for them.
func (w *entryWriter) textParts(i int, m state.TextMessage, own bool) []Part {
	content := []byte(m.Content())
	switch jsontext.Kind(content) {
	case "string":
		return []Part{{Kind: PartText, Text: jsontext.Unquote(content)}}
	case "array":
		parts, omitted := w.encodeParts(i, m, m.Role(), content, own)
		if placeholder := codec.Placeholder(omitted); len(parts) == 0 && placeholder != nil {
			parts = []Part{{Kind: PartText, Text: jsontext.Unquote(placeholder)}}
		}
		return parts
	}
	return nil
}

// encodeParts returns the parts of the content of a message with their JSON, and
// those that the codec cannot express, which it has reported.
func (w *entryWriter) encodeParts(i int, m state.Message, role string, content []byte, own bool) (parts []Part, omitted []codec.Part) {
	for _, p := range w.ReadParts(m, role, content) {
		kept := p.Members.Object(w.mark)
		part := partOf(p)
		if item := kept.Get(origin.Item); item != nil {
			parts = append(parts, Part{Kind: PartOther, Name: p.Members.String("type"), JSON: state.JSON(item)})
			continue
		}
		if own && p.Members.String("type") == "thinking" {
			part = Part{Kind: PartThinking, Text: p.Members.String("thinking")}
			p.Read = []string{"thinking"}
		}
		var text state.JSON
		ok := part.Kind != PartOther
		if ok {
			text, ok = w.EncodePart(role, part)
		}
		if !ok {
			omitted = append(omitted, p)
			continue
		}
		part.JSON = state.JSON(codec.Apply([]byte(text), kept))
		parts = append(parts, part)
		var written []string
		if p.Name != "" && strings.Contains(string(text), strings.Trim(string(state.JSONText(p.Name)), `"`)) {
			written = append(written, p.NameAt)
		}
		w.OmitRest(i, p, written...)
	}
	w.OmitParts(i, omitted)
	return parts, omitted
}

// result returns the part for a result.
func (w *entryWriter) result(i int, m state.ToolResultMessage, kept jsontext.Object, own bool) Part {
	call := m.Call()
	p := Part{Kind: PartResult, ID: call.ID, Name: call.Name, Content: m.Content(), IsError: m.IsError()}
	content := []byte(p.Content)
	if jsontext.Kind(content) != "array" || kept.Bool("data") {
		return p
	}
	if !own && !w.isContent(m, content) {
		return p
	}
	parts, omitted := w.encodeParts(i, m, RoleTool, content, own)
	p.Content, p.Parts = "", parts
	if len(parts) == 0 {
		p.Content = state.JSON(codec.Placeholder(omitted))
	}
	return p
}

// isContent reports whether the array of a result of another format is parts: its
// format has parts there, or all of it are parts.
func (w *entryWriter) isContent(m state.Message, content []byte) bool {
	for _, format := range []string{origin.OpenAI, origin.OpenAIResponses, origin.Anthropic} {
		if _, ok := origin.Of(m, format); ok {
			return true
		}
	}
	return codec.AreParts(w.ReadParts(m, RoleTool, content))
}
