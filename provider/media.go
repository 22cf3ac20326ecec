package provider

import (
	"encoding/base64"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// media is an image, a sound or a file in a part of a message, in no
// provider's words, for a format to say it in its own.
type media struct {
	kind string // "image", "audio" or "file"
	mime string // "" if unknown
	data string // base64, or "" if there is only a url
	url  string
	name string // of a file, "" if unknown
}

// mediaOf reads a part of any format's. It returns false for parts of other
// kinds and for those that only the provider they came from can resolve, as by
// the identifier of a file it holds.
func mediaOf(part jsontext.Object) (media, bool) {
	var m media
	switch typ := stringOf(part.Get("type")); typ {
	case "image_url", "input_image": // OpenAI, where it is an object, and OpenAIResponses
		m = media{kind: "image", url: stringOf(part.Get("image_url"))}
		if m.url == "" {
			m.url = stringOf(inside(part, "image_url").Get("url"))
		}
	case "input_audio":
		audio := inside(part, "input_audio")
		m = media{kind: "audio", data: stringOf(audio.Get("data"))}
		if format := stringOf(audio.Get("format")); format != "" {
			m.mime = "audio/" + format
		}
	case "file":
		m = openAIFile(inside(part, "file"))
	case "input_file":
		m = openAIFile(part)
	case "image", "document": // Anthropic
		source := inside(part, "source")
		m = media{kind: "image", name: stringOf(part.Get("title")), mime: stringOf(source.Get("media_type"))}
		if typ == "document" {
			m.kind = "file"
		}
		switch stringOf(source.Get("type")) {
		case "base64":
			m.data = stringOf(source.Get("data"))
		case "url":
			m.url = stringOf(source.Get("url"))
		case "text":
			m.data = base64.StdEncoding.EncodeToString([]byte(stringOf(source.Get("data"))))
		case "content":
			m.mime = "text/plain"
			m.data = base64.StdEncoding.EncodeToString([]byte(plainText(source.Get("content"))))
		}
	case "": // Gemini
		var held jsontext.Object
		for _, name := range []string{"inlineData", "inline_data", "fileData", "file_data"} {
			if held == nil {
				held = inside(part, name)
			}
		}
		m = media{
			kind: "file",
			mime: stringOf(either(held, "mimeType", "mime_type")),
			data: stringOf(held.Get("data")),
			url:  stringOf(either(held, "fileUri", "file_uri")),
			name: stringOf(either(held, "displayName", "display_name")),
		}
		if kind, _, _ := strings.Cut(m.mime, "/"); kind == "image" || kind == "audio" {
			m.kind = kind
		}
	}
	if rest, ok := strings.CutPrefix(m.url, "data:"); ok { // it holds what it names
		if mime, data, ok := strings.Cut(rest, ";base64,"); ok {
			m.url, m.data, m.mime = "", data, mime
		}
	}
	return m, m.data != "" || m.url != ""
}

// openAIFile reads the members that both formats of OpenAI have for a file. Its
// data is a data URL, or just base64.
func openAIFile(file jsontext.Object) media {
	m := media{kind: "file", url: stringOf(file.Get("file_url")), name: stringOf(file.Get("filename"))}
	if data := stringOf(file.Get("file_data")); strings.Contains(data, ":") {
		m.url = data
	} else {
		m.data = data
	}
	return m
}

// plainText returns the text of content that is a text or parts that all are,
// "" for any other.
func plainText(content []byte) string {
	parts, err := jsontext.Elements(content)
	if err != nil {
		return stringOf(content)
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		members, _ := jsontext.Members(part) // none if it is no object
		text := jsontext.Object(members).Get("text")
		if jsontext.Kind(text) != "string" {
			return ""
		}
		texts[i] = jsontext.Unquote(text)
	}
	return strings.Join(texts, "\n")
}

// dataURL returns the url, or a data URL for what is there as base64.
func (m media) dataURL() string {
	if m.data == "" {
		return m.url
	}
	mime := m.mime
	if mime == "" {
		mime = "application/octet-stream"
	}
	return "data:" + mime + ";base64," + m.data
}

// stringOf returns the content of a JSON string, "" for anything else.
func stringOf(value []byte) string {
	if jsontext.Kind(value) != "string" {
		return ""
	}
	return jsontext.Unquote(value)
}

// inside returns the members of a member that is an object.
func inside(o jsontext.Object, name string) jsontext.Object {
	members, err := jsontext.Members(o.Get(name))
	if err != nil {
		return nil
	}
	return members
}

// either returns the value of a member that has one of two spellings.
func either(o jsontext.Object, name, other string) []byte {
	if value := o.Get(name); value != nil {
		return value
	}
	return o.Get(other)
}
