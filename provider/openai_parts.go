package provider

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// chatContent returns content that is in no provider's words, or in another's.
// It returns false if nothing of it can be said.
func (e *encoder) chatContent(i int, role string, content []byte) (value []byte, ok bool) {
	elements, err := jsontext.Elements(content)
	if err != nil { // a string, null, or missing
		return content, true
	}
	if len(elements) == 0 {
		e.omit(i, "message without content")
	}
	parts := e.chatParts(i, role, elements)
	return chatJoined(parts), len(parts) > 0
}

// chatOutput returns the content of a result that is in no provider's words, or
// in another's: text, or parts that are text.
func (e *encoder) chatOutput(i int, m state.ToolResultMessage) []byte {
	content := []byte(m.Content())
	switch jsontext.Kind(content) {
	case "nothing", "null":
		return []byte(`""`)
	case "string":
		return content
	}
	elements, err := jsontext.Elements(content)
	if err != nil || !isParts(m, elements) {
		return jsontext.AppendQuote(nil, m.Text())
	}
	parts := e.chatParts(i, "tool", elements)
	if len(parts) == 0 {
		return []byte(`""`)
	}
	return chatJoined(parts)
}

// chatParts returns those of the parts that a role can say.
func (e *encoder) chatParts(i int, role string, elements [][]byte) (parts [][]byte) {
	for _, element := range elements {
		part, _ := jsontext.Members(element)
		if said := chatPart(role, part); said != nil {
			parts = append(parts, said.JSON())
		} else {
			e.omit(i, "part of type "+partType(part))
		}
	}
	return parts
}

// isParts reports whether what a tool returned is parts, not just an array.
func isParts(m state.ToolResultMessage, elements [][]byte) bool {
	for _, format := range []string{origin.Anthropic, origin.OpenAIResponses} {
		if _, ok := origin.Of(m, format); ok {
			return true
		}
	}
	for _, element := range elements {
		part, err := jsontext.Members(element)
		if _, isMedia := mediaOf(part); err != nil || !isMedia && chatPart("tool", part) == nil {
			return false
		}
	}
	return len(elements) > 0
}

func chatText(text []byte) jsontext.Object {
	return jsontext.Object{}.WithString("type", "text").With("text", text)
}

// chatJoined returns parts as content. A single text is a string, which more
// providers take than they take parts.
func chatJoined(parts [][]byte) []byte {
	if len(parts) == 1 {
		part, _ := jsontext.Members(parts[0])
		if text := jsontext.Object(part).Get("text"); text != nil {
			return text
		}
	}
	return jsontext.Array(parts)
}

// chatPart returns a part as a role can say it, nil if it cannot. Only users
// send media.
func chatPart(role string, part jsontext.Object) jsontext.Object {
	typ, text := stringOf(part.Get("type")), part.Get("text")
	switch {
	case jsontext.Kind(text) == "string" && (typ == "text" || typ == "input_text" || typ == "output_text"):
		return chatText(text)
	case typ == "refusal" && role == "assistant" && jsontext.Kind(part.Get("refusal")) == "string":
		return jsontext.Object{}.WithString("type", typ).With("refusal", part.Get("refusal"))
	case role != "user":
		return nil
	case typ == "image_url" || typ == "input_audio" || typ == "file":
		return part // its own words
	}
	m, ok := mediaOf(part)
	switch format := m.audioFormat(); {
	case !ok:
		return nil
	case m.kind == "image":
		url := jsontext.Object{}.WithString("url", m.dataURL())
		return jsontext.Object{}.WithString("type", "image_url").With("image_url", url.JSON())
	case m.kind == "audio" && m.data != "" && format != "":
		audio := jsontext.Object{}.WithString("data", m.data).WithString("format", format)
		return jsontext.Object{}.WithString("type", "input_audio").With("input_audio", audio.JSON())
	case m.kind == "file" && m.data != "":
		file := jsontext.Object{}.WithString("filename", m.fileName()).WithString("file_data", m.dataURL())
		return jsontext.Object{}.WithString("type", "file").With("file", file.JSON())
	}
	return nil
}

// audioFormat returns the name OpenAI has for the format, "" if it has none.
func (m media) audioFormat() string {
	switch m.mime {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mp3", "audio/mpeg":
		return "mp3"
	}
	return ""
}

// fileName returns a name for the file, which OpenAI wants, with an extension
// where that is plain.
func (m media) fileName() string {
	if m.name != "" {
		return m.name
	}
	if _, extension, _ := strings.Cut(m.mime, "/"); extension == "pdf" {
		return "file.pdf"
	}
	return "file"
}

// partType names the type of a part: where there is no member type, the first
// member tells.
func partType(part jsontext.Object) string {
	if typ := part.Get("type"); typ != nil || len(part) == 0 {
		return stringOf(typ)
	}
	return part[0].Name
}
