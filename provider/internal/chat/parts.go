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
		return codec.TextPart(codec.PartText, part.Get("text"))
	case "refusal":
		return codec.TextPart(codec.PartRefusal, part.Get("refusal"))
	case "image_url":
		return codec.OpenAIImage(part)
	case "file":
		return codec.OpenAIFile(part.Object("file"))
	case "input_audio":
		audio := part.Object("input_audio")
		p := codec.Part{Kind: codec.PartAudio, Data: audio.String("data")}
		if format := audio.String("format"); format != "" {
			p.MIME = "audio/" + format
		}
		return p.AsMedia()
	}
	return codec.Part{}, false
}

// foreignContent returns the content for parts that are not in the notation of
// the format, nil if it can express none of them.
func foreignContent(e *codec.Encoder, i int, role string, content []byte) []byte {
	parts := e.ReadParts(content)
	if len(parts) == 0 {
		e.Omit(i, "message without content")
	}
	return joinParts(encodeParts(e, i, role, parts))
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
		parts := e.ReadParts(content)
		if !ofAnthropic && !ofResponses && !codec.AreParts(parts) {
			break
		}
		if encoded := encodeParts(e, i, "tool", parts); len(encoded) > 0 {
			return joinParts(encoded)
		}
		return []byte(`""`)
	}
	return jsontext.AppendQuote(nil, m.Text())
}

// encodeParts returns the parts that a role can say.
func encodeParts(e *codec.Encoder, i int, role string, parts []codec.Part) []jsontext.Object {
	var encoded []jsontext.Object
	for _, p := range parts {
		if object := encodePart(role, p); object != nil {
			encoded = append(encoded, object)
		} else {
			e.OmitPart(i, p)
		}
	}
	return encoded
}

// joinParts returns parts as content, or nil without parts. A single text is a
// string, which more providers accept than accept parts.
func joinParts(parts []jsontext.Object) []byte {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		if text := parts[0].Get("text"); text != nil {
			return text
		}
	}
	elements := make([][]byte, len(parts))
	for i, part := range parts {
		elements[i] = part.JSON()
	}
	return jsontext.Array(elements)
}

// encodePart returns a part as a role can say it, nil if it cannot. Only users
// send media.
func encodePart(role string, p codec.Part) jsontext.Object {
	switch p.Kind {
	case codec.PartText:
		return textPart(p.Text)
	case codec.PartRefusal:
		if role == "assistant" {
			return codec.TypedObject("refusal").With("refusal", p.Text)
		}
	}
	if role != "user" {
		return nil
	}
	typ := p.Members.String("type")
	switch format := audioFormat(p.MIME); {
	case typ == "image_url", typ == "input_audio", typ == "file":
		return p.Members // the words of the format
	case p.Kind == codec.PartImage:
		url := jsontext.Object{}.WithString("url", p.DataURL())
		return codec.TypedObject("image_url").With("image_url", url.JSON())
	case p.Kind == codec.PartAudio && p.Data != "" && format != "":
		audio := jsontext.Object{}.WithString("data", p.Data).WithString("format", format)
		return codec.TypedObject("input_audio").With("input_audio", audio.JSON())
	case p.Kind == codec.PartFile && p.Data != "":
		file := jsontext.Object{}.WithString("filename", fileName(p)).WithString("file_data", p.DataURL())
		return codec.TypedObject("file").With("file", file.JSON())
	}
	return nil
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
