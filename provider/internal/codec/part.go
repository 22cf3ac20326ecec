package codec

import (
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
	Kind    PartKind
	Text    []byte // a JSON string
	MIME    string // "" if unknown
	Data    string // base64
	URL     string
	Name    string // of a file, "" if unknown
}

// A PartReader reads a part in the notation of one format. It returns false for
// any other part, and for one that only its provider can resolve, such as a
// file that the provider stores.
type PartReader func(part jsontext.Object) (Part, bool)

// IsMedia reports whether the part is an image, a sound or a file.
func (p Part) IsMedia() bool { return p.Kind >= PartImage }

// AreParts reports whether the elements of an array are all texts and media.
// The result of a tool may also be an array of anything else.
func AreParts(parts []Part) bool {
	for _, p := range parts {
		if p.Kind != PartText && !p.IsMedia() {
			return false
		}
	}
	return len(parts) > 0
}

// TypedObject returns an object with the member type, as parts and entries are.
func TypedObject(typ string) jsontext.Object {
	return jsontext.Object{textMember("type", typ)}
}

// TextPart returns the part of a member that is a text, false if it is not.
func TextPart(kind PartKind, text []byte) (Part, bool) {
	return Part{Kind: kind, Text: text}, jsontext.Kind(text) == "string"
}

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

// OpenAIImage reads the member image_url. Both formats of OpenAI have it: a
// URL, or an object with one.
func OpenAIImage(part jsontext.Object) (Part, bool) {
	url := part.String("image_url")
	if url == "" {
		url = part.Object("image_url").String("url")
	}
	return Part{Kind: PartImage, URL: url}.AsMedia()
}

// OpenAIFile reads the members that both formats of OpenAI have for a file,
// whose data is a data URL or just base64.
func OpenAIFile(file jsontext.Object) (Part, bool) {
	p := Part{Kind: PartFile, URL: file.String("file_url"), Name: file.String("filename")}
	if data := file.String("file_data"); strings.Contains(data, ":") {
		p.URL = data
	} else {
		p.Data = data
	}
	return p.AsMedia()
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
