package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// itemWriter makes items of messages.
type itemWriter struct {
	e     *encoder
	items [][]byte
	types map[string]string // of the calls so far by their id, unless they are functions
}

func (w *itemWriter) add(item jsontext.Object) { w.items = append(w.items, item.JSON()) }

func (w *itemWriter) message(i int, m state.Message) {
	kept, own := w.e.kept(m)
	switch m := m.(type) {
	case state.TextMessage:
		if own {
			w.text(m, kept)
		} else if content := w.content(i, m); content != nil {
			w.add(jsontext.Object{}.WithString("role", m.Role()).With("content", content))
		}
	case state.ToolCallMessage:
		for _, c := range m.Calls() {
			w.call(c)
		}
	case state.ToolResultMessage:
		if own {
			typ := stringOf(kept.Get("type"))
			if typ == "" {
				typ = resultType("")
			}
			w.add(restore(resultItem(typ, m.Call().ID, orNil(m.Content())), kept))
		} else {
			w.result(i, m)
		}
	default:
		item, ok := m.Extra(origin.Item)
		if format, _ := origin.Unknown(m); !ok || format != w.e.format.mark {
			w.e.omit(i, "message of type "+m.Type())
			return
		}
		w.items = append(w.items, []byte(item))
	}
}

func (w *itemWriter) text(m state.TextMessage, kept jsontext.Object) {
	said := orNil(m.Content())
	plain := messageItem(m.Role(), said)
	item := restore(plain, kept)
	if sent, _ := itemContent(m.Role(), item.Get("content")); !equal(sent, said) { // it was changed since
		item = restore(plain, kept, "content")
	}
	w.add(item)
}

func (w *itemWriter) call(c state.ToolCall) {
	kept, _ := w.e.keptOf(c)
	typ := stringOf(kept.Get("type"))
	delete(w.types, c.ID)
	if typ == "" {
		typ = itemFunction
	} else {
		w.types[c.ID] = typ
	}
	plain := callItem(typ, c.ID, c.Name, c.Input)
	item := restore(plain, kept)
	sent, _ := itemCall(typ, item)
	if sent.id != c.ID || sent.name != c.Name || !equal(sent.input, orNil(c.Input)) { // it was changed since
		item = restore(plain, kept, "call_id", "name", "arguments", "input")
	}
	w.add(item)
}

// content returns the content for a text of another origin, nil if there is none.
func (w *itemWriter) content(i int, m state.TextMessage) []byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "string" {
		return content
	}
	elements, _ := jsontext.Elements(content)
	if len(elements) == 0 {
		w.e.omit(i, "text without content")
		return nil
	}
	if parts := w.parts(i, m.Role(), elements); len(parts) > 0 {
		return jsontext.Array(parts)
	}
	return nil
}

// parts returns parts of any format in the words of this one.
func (w *itemWriter) parts(i int, role string, elements [][]byte) [][]byte {
	var parts [][]byte
	for _, element := range elements {
		members, _ := jsontext.Members(element) // of a checked part
		part := jsontext.Object(members)
		typ := stringOf(part.Get("type"))
		held, ok := mediaOf(part)
		switch {
		case typ == "text", typ == "" && part.Get("text") != nil && string(part.Get("thought")) != "true":
			parts = append(parts, jsontext.Object{}.WithString("type", itemTextType(role)).With("text", part.Get("text")).JSON())
		case typ == itemTextType(role), role == "assistant" && typ == "refusal",
			role != "assistant" && (typ == "input_image" || typ == "input_file"):
			parts = append(parts, element)
		case ok && held.kind != "audio" && role != "assistant":
			parts = append(parts, mediaItem(held).JSON())
		case typ == "":
			w.e.omit(i, "part without a type")
		default:
			w.e.omit(i, "part of type "+typ)
		}
	}
	return parts
}

func mediaItem(m media) jsontext.Object {
	if m.kind == "image" {
		return jsontext.Object{}.WithString("type", "input_image").WithString("image_url", m.dataURL())
	}
	file := jsontext.Object{}.WithString("type", "input_file")
	if m.data == "" {
		return file.WithString("file_url", m.url)
	}
	if m.name != "" {
		file = file.WithString("filename", m.name)
	}
	return file.WithString("file_data", m.dataURL())
}

// result writes a result of another origin, for a call of any.
func (w *itemWriter) result(i int, m state.ToolResultMessage) {
	c := m.Call()
	kept, own := w.e.keptOf(c)
	typ := stringOf(kept.Get("type"))
	if !own {
		typ = w.types[c.ID]
	}
	content, text := orNil(m.Content()), jsontext.AppendQuote(nil, m.Text())
	typ = resultType(typ)
	switch typ {
	case resultType(itemFunction), resultType(itemCustom):
		elements, _ := jsontext.Elements(content)
		if content = text; areItemParts(elements) {
			content = jsontext.Array(w.parts(i, "user", elements))
		}
	case resultType("shell_call"):
		if jsontext.Kind(content) != "array" {
			content = shellOutput(m)
		}
	case resultType("apply_patch_call"):
		status := "completed"
		if m.IsError() {
			status = "failed"
		}
		w.add(resultItem(typ, c.ID, text).WithString("status", status))
		return
	case itemSearchOutput:
		if jsontext.Kind(content) != "array" {
			w.e.omit(i, "result that is no list of tools")
			content = []byte("[]")
		}
	}
	w.add(resultItem(typ, c.ID, content))
}

// orNil returns a value, nil if it is missing.
func orNil(value state.JSON) []byte {
	if value == "" {
		return nil
	}
	return []byte(value)
}

// areItemParts reports whether the elements of a content are texts and media.
func areItemParts(elements [][]byte) bool {
	for _, element := range elements {
		members, err := jsontext.Members(element)
		if err != nil {
			return false
		}
		part := jsontext.Object(members)
		if _, ok := mediaOf(part); !ok && (stringOf(part.Get("type")) != "text" || jsontext.Kind(part.Get("text")) != "string") {
			return false
		}
	}
	return len(elements) > 0
}

// shellOutput returns the output of a shell that had one command.
func shellOutput(m state.ToolResultMessage) []byte {
	out, errors, code := m.Text(), "", "0"
	if m.IsError() {
		out, errors, code = "", m.Text(), "1"
	}
	outcome := jsontext.Object{}.WithString("type", "exit").With("exit_code", []byte(code))
	run := jsontext.Object{}.WithString("stdout", out).WithString("stderr", errors).With("outcome", outcome.JSON())
	return jsontext.Array([][]byte{run.JSON()})
}
