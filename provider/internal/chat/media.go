package chat

import (
	"strings"

	"github.com/agentstate/state/internal/jsontext"
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

// encodePart returns a part as a role can say it, nil if it cannot. Only users
// send media.
func encodePart(role string, p codec.Part) (part jsontext.Object, written []string) {
	switch {
	case p.Kind == codec.PartText:
		return textPart(p.Text), nil
	case p.Kind == codec.PartRefusal && role == "assistant":
		return codec.TypedObject("refusal").With("refusal", p.Text), nil
	case role != "user":
		return nil, nil
	}
	switch format := audioFormat(p.MIME); {
	case p.Kind == codec.PartImage:
		url := jsontext.Object{}.WithString("url", p.DataURL())
		return codec.TypedObject("image_url").With("image_url", url.JSON()), nil
	case p.Kind == codec.PartAudio && p.Data != "" && format != "":
		audio := jsontext.Object{}.WithString("data", p.Data).WithString("format", format)
		return codec.TypedObject("input_audio").With("input_audio", audio.JSON()), nil
	case p.Kind == codec.PartFile && p.Data != "" && !p.IsVideo():
		file := jsontext.Object{}.WithString("filename", fileName(p)).WithString("file_data", p.DataURL())
		return codec.TypedObject("file").With("file", file.JSON()), []string{p.NameAt}
	}
	return nil, nil
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
