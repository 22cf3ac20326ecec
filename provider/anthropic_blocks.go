package provider

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
)

// anthropicCall returns the plain block of a call, whose input has to be an
// object.
func anthropicCall(id, name string, input []byte) jsontext.Object {
	switch jsontext.Kind(input) {
	case "object":
	case "nothing", "null":
		input = []byte("{}")
	default:
		input = jsontext.Object{{Name: "arguments", Value: input}}.JSON()
	}
	return jsontext.Object{}.WithString("type", "tool_use").WithString("id", id).WithString("name", name).With("input", input)
}

// anthropicResult returns the plain block of a result.
func anthropicResult(id string, content, isError []byte) jsontext.Object {
	return jsontext.Object{}.WithString("type", "tool_result").WithString("tool_use_id", id).
		With("content", content).With("is_error", isError)
}

// anthropicOutput returns the content of a result: a text or blocks as they are,
// the text of any other value.
func anthropicOutput(value []byte) []byte {
	switch jsontext.Kind(value) {
	case "string", "array":
		return value
	case "nothing", "null":
		return nil
	}
	return jsontext.AppendQuote(nil, string(value))
}

// anthropicText returns the block of a text that is a JSON string.
func anthropicText(text []byte) []byte {
	return jsontext.Object{}.WithString("type", "text").With("text", text).JSON()
}

// anthropicBlocks returns the blocks for parts of another format, and what of
// them the format cannot express. A text that is empty says nothing.
func anthropicBlocks(parts []byte, media bool) (blocks [][]byte, unsaid []string) {
	elements, _ := jsontext.Elements(parts) // checked by the message
	for _, element := range elements {
		members, _ := jsontext.Members(element) // none if it is no object
		part := jsontext.Object(members)
		typ, text := stringOf(part.Get("type")), part.Get("text")
		if typ == "refusal" {
			text = part.Get("refusal")
		}
		switch typ {
		case "text", "input_text", "output_text", "refusal":
			if jsontext.Kind(text) == "string" {
				if string(text) != `""` {
					blocks = append(blocks, anthropicText(text))
				}
				continue
			}
		}
		if m, ok := mediaOf(part); ok && media {
			if block := anthropicMedia(m); block != nil {
				blocks = append(blocks, block.JSON())
				continue
			}
		}
		if typ == "" {
			unsaid = append(unsaid, "part without a type")
			continue
		}
		unsaid = append(unsaid, "part of type "+typ)
	}
	return blocks, unsaid
}

// anthropicMedia returns the block of an image or a document, nil if the format
// does not have such.
func anthropicMedia(m media) jsontext.Object {
	mime, _, _ := strings.Cut(strings.ToLower(m.mime), ";")
	if mime == "image/jpg" {
		mime = "image/jpeg"
	}
	source := jsontext.Object{}.WithString("type", "base64").WithString("media_type", mime).WithString("data", m.data)
	if m.data == "" {
		if !strings.HasPrefix(m.url, "https://") && !strings.HasPrefix(m.url, "http://") {
			return nil
		}
		source = jsontext.Object{}.WithString("type", "url").WithString("url", m.url)
	}
	typ := "document"
	kind, _, _ := strings.Cut(mime, "/")
	switch {
	case mime == "image/png", mime == "image/jpeg", mime == "image/gif", mime == "image/webp",
		mime == "" && m.data == "" && m.kind == "image":
		typ = "image"
	case mime == "application/pdf", mime == "" && m.data == "" && m.kind == "file":
	case kind == "text" && m.data != "": // of whatever kind, it is plain here
		text, err := base64.StdEncoding.DecodeString(m.data)
		if err != nil || !utf8.Valid(text) {
			return nil
		}
		source = jsontext.Object{}.WithString("type", "text").WithString("media_type", "text/plain").WithString("data", string(text))
	default:
		return nil
	}
	block := jsontext.Object{}.WithString("type", typ).With("source", source.JSON())
	if typ == "document" && m.name != "" {
		block = block.WithString("title", m.name)
	}
	return block
}
