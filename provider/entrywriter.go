package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// entryWriter makes entries of messages, for a [MessageCodec].
type entryWriter struct {
	keeper
	*codec.Encoder
	members   []string // of a message that an entry has
	oneResult bool     // whether each result is an entry
	fileNames bool     // whether the name of a file is written

	entries []writtenEntry
	before  state.Message // the last message of the last entry, nil if no other may join it
}

// writtenEntry is an entry that was made of messages.
type writtenEntry struct {
	Entry
	kept jsontext.Object // of the first message
	from []int           // the messages
}

// write returns the entries of messages. Their parts have what the codec restores.
func (w *entryWriter) write(msgs []state.Message) []writtenEntry {
	for i, m := range msgs {
		w.add(i, m)
	}
	return w.entries
}

// omit reports the messages of an entry that the codec cannot express.
func (w *writtenEntry) omit(e *codec.Encoder) {
	for _, i := range w.from {
		e.Omit(i, "message of role "+w.Role)
	}
}

func (w *entryWriter) add(i int, m state.Message) {
	kept, own := w.Kept(m)
	switch m := m.(type) {
	case state.UnknownMessage:
		if item, _, ok := w.KeptItem(i, m); ok {
			if string(item) == "{}" {
				item = nil
			}
			e := Entry{Role: m.Role(), Extra: Extra{json: state.JSON(item)}}
			w.entries, w.before = append(w.entries, writtenEntry{Entry: e, from: []int{i}}), nil
		}
	case state.TextMessage:
		if parts := w.textParts(i, m, own); len(parts) > 0 {
			w.join(i, m, m.Role(), kept, parts)
		} else {
			w.OmitOwnMembers(i, m, w.members)
		}
	case state.ToolCallMessage:
		role := roleAssistant
		if own {
			role = m.Role()
		}
		calls := inside.SharedCalls(m)
		parts := make([]Part, 0, len(calls))
		for _, c := range calls {
			kept, ownCall := w.KeptOfCall(c)
			p, _ := w.restore(role, Part{Kind: PartCall, ID: c.ID, Name: c.Name, Input: c.Input}, kept, own || ownCall)
			parts = append(parts, p)
		}
		w.join(i, m, role, kept, parts)
	case state.ToolResultMessage:
		role := RoleTool
		if jsontext.Kind(kept.Get("role")) == "string" {
			role = kept.String("role")
		}
		p, _ := w.restore(role, w.result(i, m, kept, own), kept.Object("part"), own)
		w.join(i, m, role, kept, []Part{p})
	}
}

// join adds the parts of a message to the last entry, or to a new one.
func (w *entryWriter) join(i int, m state.Message, role string, kept jsontext.Object, parts []Part) {
	last := len(w.entries) - 1
	if w.before == nil || w.entries[last].Role != role || !w.isJoined(w.before, m) {
		last++
		w.entries = append(w.entries, writtenEntry{Entry: Entry{Role: role}, kept: kept})
	}
	e := &w.entries[last]
	e.from, e.Parts, w.before = append(e.from, i), append(e.Parts, parts...), m
	w.setMembers(i, m, e)
}

// setMembers sets what an entry says besides its parts.
func (w *entryWriter) setMembers(i int, m state.Message, e *writtenEntry) {
	if reason := origin.StopReason(m); reason != "" {
		e.StopReason = reason
	}
	for _, name := range w.members {
		to := &e.Name
		if name == memberReasoning {
			to = &e.Reasoning
		}
		value, ok := m.Extra(name)
		switch {
		case !ok:
		case jsontext.Kind([]byte(value)) == "string" && *to == "":
			*to = value.Text()
		default:
			w.OmitOwnMembers(i, m, []string{name})
		}
	}
}

// isJoined reports whether a message belongs to the entry of the message before
// it, if both have the same role. Results go together unless they say that they
// do not.
func (w *entryWriter) isJoined(before, m state.Message) bool {
	if w.oneResult && m.Type() == codec.TypeResult {
		return false
	}
	if joined, said := origin.Joined(m); said {
		return joined
	}
	if _, ok := m.(state.ToolResultMessage); ok {
		return before.Type() == codec.TypeResult
	}
	return origin.Joins(before, m)
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
func (w *entryWriter) encodeParts(
	i int, m state.Message, role string, content []byte, own bool,
) (parts []Part, omitted []codec.Part) {
	for _, p := range w.ReadParts(m, role, content) {
		kept := p.Members.Object(w.Mark)
		part := partOf(p)
		if item := kept.Get(origin.Item); item != nil {
			parts = append(parts, Part{Kind: PartOther, Name: p.Members.String("type"), JSON: state.JSON(item)})
			continue
		}
		if own && p.Members.String("type") == "thinking" {
			part = Part{Kind: PartThinking, Text: p.Members.String("thinking")}
			p.Read = []string{"thinking"}
		}
		ok := part.Kind != PartOther
		if ok {
			part, ok = w.restore(role, part, kept, own)
		}
		if !ok {
			omitted = append(omitted, p)
			continue
		}
		parts = append(parts, part)
		var written []string
		if p.Name != "" && w.fileNames {
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
	if !own && !w.HasParts(m, content) && !codec.AreParts(w.ReadParts(m, RoleTool, content)) {
		return p
	}
	parts, omitted := w.encodeParts(i, m, RoleTool, content, own)
	p.Content, p.Parts = "", parts
	if len(parts) == 0 {
		p.Content = state.JSON(codec.Placeholder(omitted))
	}
	return p
}
