package chat

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// ReadPart reads a part in the notation of the format.
func ReadPart(part jsontext.Object) (codec.Part, bool) {
	switch part.String("type") {
	case "text":
		return codec.TextPart(codec.PartText, part, "text")
	case "refusal":
		return codec.TextPart(codec.PartRefusal, part, "refusal")
	case "image_url":
		return codec.URLPart(codec.PartImage, part, "image_url")
	case "document_url":
		return codec.URLPart(codec.PartFile, part, "document_url")
	case "file":
		return codec.OpenAIFile(part.Object("file"), "file.")
	case "input_audio":
		audio := part.Object("input_audio")
		p := codec.Part{Kind: codec.PartAudio, Data: audio.String("data")}
		p.Read = []string{"input_audio.data", "input_audio.format"}
		if format := audio.String("format"); format != "" {
			p.MIME = "audio/" + format
		}
		return p.AsMedia()
	}
	return codec.Part{}, false
}

// foreignContent returns the content for parts that are not in the notation of
// the format, nil if there is nothing to send.
func foreignContent(e *codec.Encoder, i int, m state.TextMessage) []byte {
	parts := e.ReadParts(m, m.Role(), []byte(m.Content()))
	if len(parts) == 0 {
		e.Omit(i, "message without content")
	}
	return encodeParts(e, i, m.Role(), parts)
}

// foreignOutput returns the content for a result that does not come from the
// format: a text, or parts that are texts.
func foreignOutput(e *codec.Encoder, i int, m state.ToolResultMessage) []byte {
	content := []byte(m.Content())
	switch jsontext.Kind(content) {
	case "nothing", "null":
		return []byte(`""`)
	case "string":
		return content
	case "array":
		_, ofAnthropic := origin.Of(m, origin.Anthropic)
		_, ofResponses := origin.Of(m, origin.OpenAIResponses)
		parts := e.ReadParts(m, origin.RoleTool, content)
		if !ofAnthropic && !ofResponses && !codec.AreParts(parts) {
			break
		}
		if encoded := encodeParts(e, i, origin.RoleTool, parts); encoded != nil {
			return encoded
		}
		return []byte(`""`)
	}
	return jsontext.AppendQuote(nil, m.Content().Text())
}

// encodeParts returns the content for the parts that a role can say. If it can
// say none of them, a text stands for them.
func encodeParts(e *codec.Encoder, i int, role string, parts []codec.Part) []byte {
	var encoded []jsontext.Object
	var omitted []codec.Part
	for _, p := range parts {
		object, named := encodePart(role, p)
		if object == nil {
			omitted = append(omitted, p)
			continue
		}
		encoded = append(encoded, object)
		switch {
		case p.AsIs:
		case named:
			e.OmitRest(i, p, p.NameAt)
		default:
			e.OmitRest(i, p)
		}
	}
	e.OmitParts(i, omitted)
	if len(encoded) == 0 {
		return codec.Placeholder(omitted)
	}
	return joinParts(encoded)
}

// joinParts returns parts as content. A single text is a string, which more
// providers accept than accept parts.
func joinParts(parts []jsontext.Object) []byte {
	if text := parts[0].Get("text"); len(parts) == 1 && len(parts[0]) == 2 && text != nil {
		return text
	}
	elements := make([][]byte, len(parts))
	for i, part := range parts {
		elements[i] = part.JSON()
	}
	return jsontext.Array(elements)
}

// encodePart returns a part as a role can say it, nil if it cannot, and whether
// it has the name of the file. Only users send media.
func encodePart(role string, p codec.Part) (part jsontext.Object, named bool) {
	switch {
	case p.AsIs:
		return p.Members, true
	case p.Kind == codec.PartText:
		return textPart(p.Text), false
	case p.Kind == codec.PartRefusal && role == "assistant":
		return codec.TypedObject("refusal").With("refusal", p.Text), false
	case role != "user":
		return nil, false
	}
	switch format := audioFormat(p.MIME); {
	case p.Kind == codec.PartImage:
		url := jsontext.Object{}.WithString("url", p.DataURL())
		return codec.TypedObject("image_url").With("image_url", url.JSON()), false
	case p.Kind == codec.PartAudio && p.Data != "" && format != "":
		audio := jsontext.Object{}.WithString("data", p.Data).WithString("format", format)
		return codec.TypedObject("input_audio").With("input_audio", audio.JSON()), false
	case p.Kind == codec.PartFile && p.Data != "":
		file := jsontext.Object{}.WithString("filename", fileName(p)).WithString("file_data", p.DataURL())
		return codec.TypedObject("file").With("file", file.JSON()), true
	}
	return nil, false
}

func textPart(text []byte) jsontext.Object {
	return codec.TypedObject("text").With("text", text)
}

// audioFormat returns OpenAI's name for a format, "" if it has none.
func audioFormat(mime string) string {
	switch mime {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mp3", "audio/mpeg":
		return "mp3"
	}
	return ""
}

// fileName returns a name for a file, which OpenAI requires, with an extension
// where that is plain.
func fileName(p codec.Part) string {
	if p.Name != "" {
		return p.Name
	}
	if _, extension, _ := strings.Cut(p.MIME, "/"); extension == "pdf" {
		return "file.pdf"
	}
	return "file"
}
