package codec

import (
	"path"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// PartKind says what a [Part] is.
type PartKind int

// The kinds of parts.
const (
	PartOther PartKind = iota // what only its format can express
	PartText
	PartRefusal // a text with which the model refuses
	PartImage
	PartAudio
	PartFile
)

// Part is a part of the content of a message in no format's words. An image, a
// sound or a file has Data or a URL.
type Part struct {
	Members jsontext.Object // the part as it is in the message
	Index   int             // its place in the content
	AsIs    bool            // the format that is written has the part as it is
	Read    []string        // the paths of the members that the rest was read from
	Kind    PartKind
	Text    []byte // a JSON string
	MIME    string // "" if unknown
	Data    string // base64
	URL     string
	Name    string // of a file, "" if unknown
	NameAt  string // the path of the member with the name
}

// A PartReader reads a part in the notation of one format. It returns false for
// any other part, and for one that only its provider can resolve, such as a
// file that the provider stores.
type PartReader func(part jsontext.Object) (Part, bool)

// IsMedia reports whether the part is an image, a sound or a file.
func (p Part) IsMedia() bool { return p.Kind >= PartImage }

// IsVideo reports whether the part is a file with moving pictures, which only Gemini
// takes.
func (p Part) IsVideo() bool { return p.Kind == PartFile && strings.HasPrefix(p.MIME, "video/") }

// AreParts reports whether the elements of an array are all texts, media, and
// parts in the words of the format. The result of a tool may also be an array
// of anything else.
func AreParts(parts []Part) bool {
	for _, p := range parts {
		if p.Kind != PartText && !p.IsMedia() && !p.AsIs {
			return false
		}
	}
	return len(parts) > 0
}

// TypedObject returns an object with the member type, as parts and entries are.
func TypedObject(typ string) jsontext.Object {
	return jsontext.Object{{Name: "type", Value: jsontext.AppendQuote(nil, typ)}}
}

// TextPart returns the part of a member that is a text, false if it is not.
func TextPart(kind PartKind, part jsontext.Object, name string) (Part, bool) {
	text := part.Get(name)
	return Part{Kind: kind, Text: text, Read: textMembers[name]}, jsontext.Kind(text) == "string"
}

var textMembers = map[string][]string{"text": {"text"}, "refusal": {"refusal"}}

// AsMedia returns the part, and whether it has data or a URL. A data URL with
// base64 becomes data.
func (p Part) AsMedia() (Part, bool) {
	if rest, ok := strings.CutPrefix(p.URL, "data:"); ok {
		if mime, data, ok := strings.Cut(rest, ";base64,"); ok {
			p.URL, p.Data, p.MIME = "", data, mime
		}
	}
	return p, p.Data != "" || p.URL != ""
}

// DataURL returns the URL of a medium, a data URL if it has data.
func (p Part) DataURL() string {
	if p.Data == "" {
		return p.URL
	}
	mime := p.MIME
	if mime == "" {
		mime = "application/octet-stream"
	}
	return "data:" + mime + ";base64," + p.Data
}

// URLPart reads a member that is a URL, or an object with one, as both formats
// of OpenAI have them.
func URLPart(kind PartKind, part jsontext.Object, name string) (Part, bool) {
	p := Part{Kind: kind, URL: part.String(name), Read: []string{name}}
	if p.URL == "" {
		p.URL, p.Read = part.Object(name).String("url"), []string{name + ".url"}
	}
	return p.AsMedia()
}

// OpenAIFile reads the members that both formats of OpenAI have for a file,
// whose data is a data URL or just base64. The paths of the members begin with
// prefix.
func OpenAIFile(file jsontext.Object, prefix string) (Part, bool) {
	p := Part{Kind: PartFile, URL: file.String("file_url"), Name: file.String("filename")}
	p.Read, p.NameAt = []string{prefix + "file_url", prefix + "file_data"}, prefix+"filename"
	if data := file.String("file_data"); strings.Contains(data, ":") {
		p.URL = data
	} else {
		p.Data = data
	}
	return p.AsMedia()
}

// kindName names what the part is in a text for a model.
func (p Part) kindName() string {
	kind, _, _ := strings.Cut(p.MIME, "/")
	if kind == "" || kind == "application" {
		kind = p.typeName()
	}
	switch {
	case p.Kind == PartImage, strings.Contains(kind, "image"):
		return "image"
	case p.Kind == PartAudio, strings.Contains(kind, "audio"):
		return "audio"
	case strings.Contains(kind, "video"):
		return "video"
	case p.Kind == PartFile, strings.Contains(strings.ToLower(kind), "file"), strings.Contains(kind, "document"), strings.HasPrefix(kind, "resource"):
		return "file"
	}
	return "content"
}

// typeName names the type of the part: that of a part without the member type
// is its first member.
func (p Part) typeName() string {
	switch {
	case p.Members.Get("type") != nil:
		return p.Members.String("type")
	case p.Members.Bool("thought"):
		return "thought"
	case len(p.Members) > 0:
		return p.Members[0].Name
	}
	return "unknown"
}

// ReadMCPPart reads the content of the Model Context Protocol, which tools
// return: images, sounds, resources and links to resources. A resource with a
// text is that text, and a link is a text with its name and its address, which
// only the client can open. See
// https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool-result.
func ReadMCPPart(part jsontext.Object) (Part, bool) {
	switch part.String("type") {
	case "image", "audio":
		p := Part{
			Kind: PartImage, MIME: part.String("mimeType"), Data: part.String("data"),
			Read: []string{"mimeType", "data"},
		}
		if part.String("type") == "audio" {
			p.Kind = PartAudio
		}
		return p, p.Data != ""
	case "resource":
		return readResource(part.Object("resource"))
	case "resource_link":
		uri, name := part.String("uri"), part.String("name")
		p := Part{Kind: PartText, Read: []string{"uri", "name"}}
		p.Text = jsontext.AppendQuote(nil, strings.TrimPrefix(name+": "+uri, ": "))
		return p, uri != ""
	}
	return Part{}, false
}

func readResource(resource jsontext.Object) (Part, bool) {
	if text := resource.Get("text"); jsontext.Kind(text) == "string" {
		return Part{Kind: PartText, Text: text, Read: []string{"resource.text", "resource.mimeType"}}, true
	}
	p := Part{Kind: PartFile, MIME: resource.String("mimeType"), Data: resource.String("blob")}
	p.Read, p.NameAt = []string{"resource.blob", "resource.mimeType"}, "resource.uri"
	switch kind, _, _ := strings.Cut(p.MIME, "/"); kind {
	case "image":
		p.Kind = PartImage
	case "audio":
		p.Kind = PartAudio
	}
	if uri := resource.String("uri"); uri != "" {
		p.Name = path.Base(uri)
	}
	return p, p.Data != ""
}
