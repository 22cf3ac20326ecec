package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// conversation returns the entries. All results of what an assistant calls must
// follow the entry with the calls, so what it says in between is in there too.
func (c openAI) conversation(e *encoder, msgs []state.Message) (jsontext.Object, error) {
	var entries [][]byte
	var open chatEntry // that more may join
	var before state.Message
	end := func() {
		if entry := open.object(); entry != nil {
			entries = append(entries, entry.JSON())
		}
		open = chatEntry{}
	}
	begin := func(m state.Message) {
		if !open.used || open.role != m.Role() || !origin.Joins(before, m) {
			end()
		}
		open.used, open.role = true, m.Role()
		if kept, _ := e.kept(m); len(open.kept) == 0 {
			open.kept = kept
		}
	}
	for i, m := range msgs {
		switch m := m.(type) {
		case state.UnknownMessage:
			format, _ := origin.Unknown(m)
			item, ok := m.Extra(origin.Item)
			if format != e.format.mark || !ok {
				e.omit(i, "message of type "+m.Type())
				continue // as if it were not there
			}
			end()
			entries = append(entries, []byte(item))
		case state.ToolResultMessage:
			end()
			entries = append(entries, c.resultEntry(e, i, m).JSON())
		case state.TextMessage:
			content, ok := chatSaid(m.Content()), true
			if _, own := e.kept(m); !own {
				content, ok = e.chatContent(i, m.Role(), content)
			}
			if !ok {
				continue // all of it is left out, as if it were not there
			}
			begin(m)
			open.said = append(open.said, content)
		case state.ToolCallMessage:
			begin(m)
			open.addCalls(e, m)
		}
		before = m
	}
	end()
	return jsontext.Object{{Name: "messages", Value: jsontext.Array(entries)}}, nil
}

// resultEntry returns the entry of a result.
func (openAI) resultEntry(e *encoder, i int, m state.ToolResultMessage) jsontext.Object {
	call := m.Call()
	kept, own := e.kept(m)
	kind := chatKind(kept, call.ID)
	content := chatSaid(m.Content())
	if !own {
		ofCall, _ := e.keptOf(call)
		kind = chatKind(ofCall, call.ID)
		content = e.chatOutput(i, m)
	}
	if m.IsError() {
		e.omit(i, "is_error")
	}
	var said []string
	if content != nil {
		said = []string{"content"}
	}
	said = unlessEmpty(said, "tool_call_id", call.ID)
	if kind == legacyCall {
		said = unlessEmpty(said, "name", call.Name)
	}
	return restore(chatResult(kind, call.ID, call.Name, content), kept, said...)
}

// chatEntry is an entry that somebody says or calls tools in.
type chatEntry struct {
	used   bool
	role   string
	kept   jsontext.Object // of the first message that keeps something
	said   [][]byte        // content
	calls  [][]byte
	legacy []byte // for function_call
}

// addCalls adds calls.
func (entry *chatEntry) addCalls(e *encoder, m state.ToolCallMessage) {
	for _, c := range m.Calls() {
		kind, object := e.chatCall(c)
		if kind == legacyCall && entry.legacy == nil {
			entry.legacy = object.JSON()
			continue
		}
		entry.calls = append(entry.calls, object.JSON())
	}
}

// chatSaid returns content, nil if it is missing.
func chatSaid(content state.JSON) []byte {
	if content == "" {
		return nil
	}
	return []byte(content)
}

// content returns what has been said: parts, if that was more than once.
func (entry *chatEntry) content() []byte {
	content := entry.said[0]
	var parts [][]byte
	for _, said := range entry.said {
		if isEmpty(said) {
			continue
		}
		content = said
		if said, err := jsontext.Elements(content); err == nil {
			parts = append(parts, said...)
		} else {
			parts = append(parts, chatText(content).JSON())
		}
	}
	if len(entry.said) > 1 && len(parts) > 1 {
		return jsontext.Array(parts)
	}
	return content
}

// object returns the entry, nil if there is nothing in it.
func (entry *chatEntry) object() jsontext.Object {
	if entry.said == nil && entry.calls == nil && entry.legacy == nil {
		return nil
	}
	plain := jsontext.Object{}.WithString("role", entry.role)
	var said []string
	if entry.said != nil {
		plain, said = plain.With("content", entry.content()), append(said, "content")
	} else {
		plain = plain.With("content", []byte("null"))
	}
	if entry.calls != nil {
		plain, said = plain.With("tool_calls", jsontext.Array(entry.calls)), append(said, "tool_calls")
	}
	if entry.legacy != nil {
		plain, said = plain.With(legacyCall, entry.legacy), append(said, legacyCall)
	}
	return restore(plain, entry.kept, said...)
}
