package gemini

import (
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// mediaPart returns the part of a medium, nil if the format cannot express it.
// Gemini takes data with its MIME type, and a URL that it can fetch.
func mediaPart(p codec.Part) jsontext.Object {
	var blob jsontext.Object
	if p.MIME != "" {
		blob = blob.WithString("mimeType", p.MIME)
	}
	switch {
	case p.Data != "" && p.MIME != "":
		return jsontext.Object{}.With("inlineData", blob.WithString("data", p.Data).JSON())
	case p.Data == "" && p.URL != "":
		return jsontext.Object{}.With("fileData", blob.WithString("fileUri", p.URL).JSON())
	}
	return nil
}

// store marks the parts that readers see as texts by the type text. Parts of the
// API have no type.
func store(p *codec.TablePart) []byte {
	if jsontext.Kind(p.Members.Get("text")) != "string" || p.Members.Bool("thought") {
		return p.Raw
	}
	return append(codec.TypedObject("text"), p.Members...).JSON()
}

// load reverses store.
func load(stored []byte) []byte {
	if part, _ := jsontext.Members(stored); part.String("type") == "text" { // checked with the message
		return part.Without("type").JSON()
	}
	return stored
}

var textMembers = []string{"text", "thought"}

// ReadPart reads a part in the notation of the format, which has no types.
func ReadPart(part jsontext.Object) (codec.Part, bool) {
	if part.String("type") != "" || part.Bool("thought") {
		return codec.Part{}, false
	}
	if p, ok := codec.TextPart(codec.PartText, part, "text"); ok {
		p.Read = textMembers
		return p, true
	}
	var blob jsontext.Object
	var at string
	for _, name := range []string{"inlineData", "inline_data", "fileData", "file_data"} {
		if blob == nil {
			blob, at = part.Object(name), name+"."
		}
	}
	p := codec.Part{
		Kind: codec.PartFile,
		MIME: eitherMember(blob, "mimeType", "mime_type"),
		Data: blob.String("data"),
		URL:  eitherMember(blob, "fileUri", "file_uri"),
		Name: eitherMember(blob, "displayName", "display_name"),
	}
	for _, name := range []string{"mimeType", "mime_type", "data", "fileUri", "file_uri"} {
		p.Read = append(p.Read, at+name)
	}
	p.NameAt = at + "displayName"
	if blob.Get("display_name") != nil {
		p.NameAt = at + "display_name"
	}
	switch kind, _, _ := strings.Cut(p.MIME, "/"); kind {
	case "image":
		p.Kind = codec.PartImage
	case "audio":
		p.Kind = codec.PartAudio
	}
	return p.AsMedia()
}

// eitherMember returns the text of a member that has two spellings.
func eitherMember(o jsontext.Object, name, other string) string {
	if o.Get(name) != nil {
		return o.String(name)
	}
	return o.String(other)
}
