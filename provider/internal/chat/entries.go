package chat

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// ownMembers are what providers with the format have in an entry besides its
// content and calls.
var ownMembers = []string{"name", "refusal", "audio", "reasoning", "reasoning_content", "reasoning_details"}

// OwnMembers returns the members of a message that an entry has, and those of a
// tool.
func (Format) OwnMembers(typ string) []string {
	switch typ {
	case codec.TypeText, codec.TypeCall:
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

// EncodeMessages returns the entries. All results of the calls of an entry must
// follow that entry, so it also has what the assistant says between its calls.
func (Format) EncodeMessages(e *codec.Encoder, msgs []state.Message) jsontext.Object {
	w := entryWriter{Encoder: e}
	for i, m := range msgs {
		w.add(i, m)
	}
	w.endEntry()
	return jsontext.Object{{Name: "messages", Value: jsontext.Array(w.entries)}}
}

// entryWriter makes entries of messages.
type entryWriter struct {
	*codec.Encoder
	entries [][]byte
	open    *entry        // which more messages may join, nil if there is none
	before  state.Message // the message before, unless it was left out
}

// entry says something, calls tools, or does both.
type entry struct {
	role     string
	kept     jsontext.Object // of the first message that keeps something
	added    jsontext.Object // kept by more messages, and their own members
	contents [][]byte        // of its texts
	calls    [][]byte
	legacy   []byte // for function_call
}

func (w *entryWriter) add(i int, m state.Message) {
	switch m := m.(type) {
	case state.UnknownMessage:
		item, _, ok := w.KeptItem(i, m)
		if !ok {
			return
		}
		w.endEntry()
		w.entries = append(w.entries, item)
	case state.ToolResultMessage:
		w.endEntry()
		w.entries = append(w.entries, w.result(i, m).JSON())
	case state.TextMessage:
		content := codec.ValueOrNil(m.Content())
		if _, own := w.Kept(m); !own && jsontext.Kind(content) == "array" {
			if content = foreignContent(w.Encoder, i, m); content == nil {
				w.OmitOwnMembers(i, m, ownMembers)
				return
			}
		}
		entry := w.entryFor(m)
		entry.contents = append(entry.contents, content)
	case state.ToolCallMessage:
		w.entryFor(m).addCalls(w.Encoder, m)
	}
	w.before = m
}

// parsedContent returns the JSON in a text, or the text if a program has
// replaced it by another.
func parsedContent(text []byte) []byte {
	parsed := state.JSON(state.JSON(text).Text())
	if parsed.Valid() && jsontext.Kind([]byte(parsed)) == "object" {
		return []byte(parsed)
	}
	return text
}

// entryFor returns the entry for a message: the open one if the message joins
// it.
func (w *entryWriter) entryFor(m state.Message) *entry {
	if w.open == nil || w.open.role != m.Role() || !origin.Joins(w.before, m) {
		w.endEntry()
		w.open = &entry{role: m.Role()}
	}
	kept, _ := w.Kept(m)
	if len(w.open.kept)+len(w.open.added) == 0 {
		w.open.kept = kept
	} else {
		w.open.added = append(w.open.added, codec.Added(kept)...)
	}
	w.open.added = append(w.open.added, codec.OwnMembers(m, ownMembers)...)
	return w.open
}

func (w *entryWriter) endEntry() {
	if w.open != nil && !w.open.isEmpty() {
		w.entries = append(w.entries, w.open.object().JSON())
	}
	w.open = nil
}

// result returns the entry of a result.
func (w *entryWriter) result(i int, m state.ToolResultMessage) jsontext.Object {
	call := m.Call()
	kept, own := w.Kept(m)
	kind, content := keptKind(kept, call.ID), codec.ValueOrNil(m.Content())
	if !own {
		keptOfCall, _ := w.KeptOfCall(call)
		kind, content = keptKind(keptOfCall, call.ID), foreignOutput(w.Encoder, i, m)
	}
	w.OmitIsError(i, m)
	var changed []string
	if content != nil {
		changed = append(changed, "content")
	}
	changed = unlessEmpty(changed, "tool_call_id", call.ID)
	if kind == legacyCall {
		changed = unlessEmpty(changed, "name", call.Name)
	}
	by := call.ID
	if kind == legacyCall {
		by = call.Name
	}
	return codec.Restore(plainResult(kind, jsontext.AppendQuote(nil, by), content), kept, changed...)
}

func (en *entry) addCalls(e *codec.Encoder, m state.ToolCallMessage) {
	for _, c := range m.Calls() {
		kind, object := encodeCall(e, c)
		if kind == legacyCall && en.legacy == nil {
			en.legacy = object.JSON()
			continue
		}
		en.calls = append(en.calls, object.JSON())
	}
}

func (en *entry) isEmpty() bool { return en.contents == nil && en.calls == nil && en.legacy == nil }

func (en *entry) object() jsontext.Object {
	plain := jsontext.Object{}.WithString("role", en.role)
	var changed []string
	if en.contents != nil {
		plain, changed = plain.With("content", en.content()), append(changed, "content")
	} else {
		plain = plain.With("content", []byte("null"))
	}
	if en.calls != nil {
		plain, changed = plain.With("tool_calls", jsontext.Array(en.calls)), append(changed, "tool_calls")
	}
	if en.legacy != nil {
		plain, changed = plain.With(legacyCall, en.legacy), append(changed, legacyCall)
	}
	return codec.Restore(plain, codec.More(en.kept, en.added), changed...)
}

// content returns the content of the texts: parts, if more than one of them
// says something.
func (en *entry) content() []byte {
	content := en.contents[0]
	if len(en.contents) == 1 {
		if string(en.kept.Get("parsed")) == "true" {
			return parsedContent(content)
		}
		return content
	}
	var parts [][]byte
	for _, c := range en.contents {
		if isEmpty(c) {
			continue
		}
		content = c
		if elements, err := jsontext.Elements(c); err == nil {
			parts = append(parts, elements...)
		} else {
			parts = append(parts, textPart(c).JSON())
		}
	}
	if len(parts) > 1 {
		return jsontext.Array(parts)
	}
	return content
}
