package responses

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// itemWriter makes items of messages.
type itemWriter struct {
	*codec.Encoder
	types map[string]string // the types of the calls so far by their id, "" or none of functions
}

func (w *itemWriter) add(i int, m state.Message) {
	w.Entries.Cut(i)
	switch m := m.(type) {
	case state.TextMessage:
		if kept, own := w.Kept(m); own {
			w.addItem(textItem(m, kept))
		} else if content := w.foreignContent(i, m); content != nil {
			w.addItem(jsontext.Object{}.WithString("role", m.Role()).With("content", content))
		}
	case state.ToolCallMessage:
		for _, c := range m.Calls() {
			w.addCall(i, c)
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
		plain := plainOutput(typ, jsontext.AppendQuote(nil, m.Call().ID), codec.ValueOrNil(m.Content()))
		item := codec.Restore(plain, kept)
		if id := answered(typ, item); jsontext.Kind(id) == "string" && jsontext.Unquote(id) != m.Call().ID {
			item = codec.Restore(plain, kept, "call_id", "id") // the id was changed since
		}
		w.addItem(item)
	case state.UnknownMessage:
		if item, _, ok := w.KeptItem(i, m); ok {
			w.Entries.Add(item)
		}
	}
}

func (w *itemWriter) addItem(item jsontext.Object) { w.Entries.Add(item.JSON()) }

func textItem(m state.TextMessage, kept jsontext.Object) jsontext.Object {
	content := codec.ValueOrNil(m.Content())
	plain := plainMessage(jsontext.AppendQuote(nil, m.Role()), itemContent(m.Role(), content))
	item := codec.Restore(plain, kept)
	if sent, _, _ := messageContent(m.Role(), item.Get("content")); !codec.EqualJSON(sent, content) {
		// The message was changed since.
		item = codec.Restore(plain, kept, "content")
	}
	return item
}

func (w *itemWriter) addCall(i int, c state.ToolCall) {
	kept, _ := w.KeptOfCall(c)
	typ := kept.String("type")
	if w.types[c.ID] != typ {
		w.setType(c.ID, typ)
		w.Entries.SetType(i, c.ID, typ)
	}
	if typ == "" {
		typ = functionCall
	}
	plain := plainCall(typ, jsontext.AppendQuote(nil, c.ID), jsontext.AppendQuote(nil, c.Name),
		callArguments(typ, c.Input))
	item := codec.Restore(plain, kept)
	sent, _ := callOf(typ, item)
	if sent.ID != c.ID || sent.Name != c.Name || !codec.EqualJSON(sent.Input, codec.ValueOrNil(c.Input)) {
		// The call was changed since.
		item = codec.Restore(plain, kept, "call_id", "name", "arguments", "input")
	}
	w.addItem(item)
}

func (w *itemWriter) setType(id, typ string) {
	if w.types == nil {
		w.types = map[string]string{}
	}
	w.types[id] = typ
}

// foreignContent returns the content for a text that does not come from the
// format, nil if there is none.
func (w *itemWriter) foreignContent(i int, m state.TextMessage) []byte {
	content := []byte(m.Content())
	if jsontext.Kind(content) == "string" {
		return content
	}
	parts := w.ReadParts(m, m.Role(), content)
	if len(parts) == 0 {
		w.Omit(i, "text without content")
	}
	return w.encodeParts(i, m.Role(), parts)
}

// encodeParts returns the content for the parts that a role can say. If it can
// say none of them, a text stands for them. Only users send media.
func (w *itemWriter) encodeParts(i int, role string, parts []codec.Part) []byte {
	encoded, omitted := w.EncodeParts(i, role, parts, encodePart)
	if len(encoded) == 0 {
		return codec.Placeholder(omitted)
	}
	return jsontext.Array(encoded)
}

// encodePart returns a part as a role can say it, nil if it cannot, and the path
// of the name of a file that it has.
func encodePart(role string, p codec.Part) (part jsontext.Object, written []string) {
	switch {
	case p.Kind == codec.PartText:
		return codec.TypedObject(textType(role)).With("text", p.Text), nil
	case p.Kind == codec.PartRefusal && role == "assistant":
		return codec.TypedObject("refusal").With("refusal", p.Text), nil
	case !p.IsMedia() || p.Kind == codec.PartAudio || p.IsVideo() || role == "assistant":
		return nil, nil
	case p.Kind == codec.PartImage:
		return codec.TypedObject("input_image").WithString("image_url", p.DataURL()), nil
	}
	file := codec.TypedObject("input_file")
	if p.Data == "" {
		return file.WithString("file_url", p.URL), nil
	}
	if p.Name != "" {
		file, written = file.WithString("filename", p.Name), []string{p.NameAt}
	}
	return file.WithString("file_data", p.DataURL()), written
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
	if typ != outputType("shell_call") && typ != outputType("apply_patch_call") {
		w.OmitIsError(i, m)
	}
	content, text := codec.ValueOrNil(m.Content()), jsontext.AppendQuote(nil, m.Content().Text())
	switch typ {
	case outputType(functionCall), outputType(customCall):
		if parts := w.ReadParts(m, origin.RoleTool, content); codec.AreParts(parts) {
			content = w.encodeParts(i, origin.RoleTool, parts)
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
		w.addItem(plainOutput(typ, jsontext.AppendQuote(nil, c.ID), text).WithString("status", status))
		return
	case searchOutput:
		if jsontext.Kind(content) != "array" {
			w.Omit(i, "result that is not a list of tools")
			content = []byte("[]")
		}
	}
	w.addItem(plainOutput(typ, jsontext.AppendQuote(nil, c.ID), content))
}

// shellOutput returns the output of a shell for a result that is not in its
// words: that of one command.
func shellOutput(m state.ToolResultMessage) []byte {
	stdout, stderr, code := m.Content().Text(), "", "0"
	if m.IsError() {
		stdout, stderr, code = "", stdout, "1"
	}
	outcome := codec.TypedObject("exit").With("exit_code", []byte(code))
	run := jsontext.Object{}.WithString("stdout", stdout).WithString("stderr", stderr)
	return jsontext.Array([][]byte{run.With("outcome", outcome.JSON()).JSON()})
}
