package responses

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// itemWriter makes items of messages.
type itemWriter struct {
	*codec.Encoder
	items [][]byte
	types map[string]string // the types of the calls so far by their id, unless they are functions
}

func (w *itemWriter) add(i int, m state.Message) {
	switch m := m.(type) {
	case state.TextMessage:
		if kept, own := w.Kept(m); own {
			w.addItem(textItem(m, kept))
		} else if content := w.foreignContent(i, m); content != nil {
			w.addItem(jsontext.Object{}.WithString("role", m.Role()).With("content", content))
		}
	case state.ToolCallMessage:
		for _, c := range m.Calls() {
			w.addCall(c)
		}
	case state.ToolResultMessage:
		kept, own := w.Kept(m)
		if !own {
			w.addForeignResult(i, m)
			return
		}
		typ := kept.String("type")
		if typ == "" {
			typ = outputType(functionCall)
		}
		w.addItem(codec.Restore(plainOutput(typ, m.Call().ID, codec.ValueOrNil(m.Content())), kept))
	case state.UnknownMessage:
		if item, _, ok := w.KeptItem(i, m); ok {
			w.items = append(w.items, item)
		}
	}
}

func (w *itemWriter) addItem(item jsontext.Object) { w.items = append(w.items, item.JSON()) }

func textItem(m state.TextMessage, kept jsontext.Object) jsontext.Object {
	content := codec.ValueOrNil(m.Content())
	plain := plainMessage(m.Role(), content)
	item := codec.Restore(plain, kept)
	if sent, _ := messageContent(m.Role(), item.Get("content")); !codec.EqualJSON(sent, content) {
		// The message was changed since.
		item = codec.Restore(plain, kept, "content")
	}
	return item
}

func (w *itemWriter) addCall(c state.ToolCall) {
	kept, _ := w.KeptOfCall(c)
	typ := kept.String("type")
	delete(w.types, c.ID)
	if typ == "" {
		typ = functionCall
	} else {
		w.types[c.ID] = typ
	}
	plain := plainCall(typ, c.ID, c.Name, c.Input)
	item := codec.Restore(plain, kept)
	sent, _ := callOf(item)
	if sent.ID != c.ID || sent.Name != c.Name || !codec.EqualJSON(sent.Input, codec.ValueOrNil(c.Input)) {
		// The call was changed since.
		item = codec.Restore(plain, kept, "call_id", "name", "arguments", "input")
	}
	w.addItem(item)
}

// foreignContent returns the content for a text that does not come from the
// format, nil if there is none.
func (w *itemWriter) foreignContent(i int, m state.TextMessage) []byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "string" {
		return content
	}
	parts := w.ReadParts(content)
	if len(parts) == 0 {
		w.Omit(i, "text without content")
		return nil
	}
	if encoded := w.encodeParts(i, m.Role(), parts); len(encoded) > 0 {
		return jsontext.Array(encoded)
	}
	return nil
}

// encodeParts returns the parts that a role can say. Only users send media.
func (w *itemWriter) encodeParts(i int, role string, parts []codec.Part) [][]byte {
	var encoded [][]byte
	for _, p := range parts {
		switch typ := p.Members.String("type"); {
		case typ == textType(role), role == "assistant" && typ == "refusal",
			role != "assistant" && (typ == "input_image" || typ == "input_file"):
			encoded = append(encoded, p.Members.JSON()) // the words of the format
		case p.Kind == codec.PartText:
			text := codec.TypedObject(textType(role)).With("text", p.Text)
			encoded = append(encoded, text.JSON())
		case p.IsMedia() && p.Kind != codec.PartAudio && role != "assistant":
			encoded = append(encoded, mediaPart(p).JSON())
		default:
			w.OmitPart(i, p)
		}
	}
	return encoded
}

func mediaPart(p codec.Part) jsontext.Object {
	if p.Kind == codec.PartImage {
		return codec.TypedObject("input_image").WithString("image_url", p.DataURL())
	}
	file := codec.TypedObject("input_file")
	if p.Data == "" {
		return file.WithString("file_url", p.URL)
	}
	if p.Name != "" {
		file = file.WithString("filename", p.Name)
	}
	return file.WithString("file_data", p.DataURL())
}

// addForeignResult adds a result that does not come from the format. Its call
// may come from the format.
func (w *itemWriter) addForeignResult(i int, m state.ToolResultMessage) {
	c := m.Call()
	kept, own := w.KeptOfCall(c)
	typ := kept.String("type")
	if !own {
		typ = w.types[c.ID]
	}
	typ = outputType(typ)
	content, text := codec.ValueOrNil(m.Content()), jsontext.AppendQuote(nil, m.Text())
	switch typ {
	case outputType(functionCall), outputType(customCall):
		if parts := w.ReadParts(content); codec.AreParts(parts) {
			content = jsontext.Array(w.encodeParts(i, "user", parts))
		} else {
			content = text
		}
	case outputType("shell_call"):
		if jsontext.Kind(content) != "array" {
			content = shellOutput(m)
		}
	case outputType("apply_patch_call"):
		status := "completed"
		if m.IsError() {
			status = "failed"
		}
		w.addItem(plainOutput(typ, c.ID, text).WithString("status", status))
		return
	case searchOutput:
		if jsontext.Kind(content) != "array" {
			w.Omit(i, "result that is not a list of tools")
			content = []byte("[]")
		}
	}
	w.addItem(plainOutput(typ, c.ID, content))
}

// shellOutput returns the output of a shell for a result that is not in its
// words: that of one command.
func shellOutput(m state.ToolResultMessage) []byte {
	stdout, stderr, code := m.Text(), "", "0"
	if m.IsError() {
		stdout, stderr, code = "", m.Text(), "1"
	}
	outcome := codec.TypedObject("exit").With("exit_code", []byte(code))
	run := jsontext.Object{}.WithString("stdout", stdout).WithString("stderr", stderr)
	return jsontext.Array([][]byte{run.With("outcome", outcome.JSON()).JSON()})
}
