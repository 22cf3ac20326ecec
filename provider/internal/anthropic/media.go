package anthropic

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// mediaBlock returns the block of an image or a document, nil if the format
// cannot express it, and whether it has the name of the file.
func mediaBlock(p codec.Part) (block jsontext.Object, named bool) {
	mime, _, _ := strings.Cut(strings.ToLower(p.MIME), ";")
	if mime == "image/jpg" {
		mime = "image/jpeg"
	}
	source := codec.TypedObject("base64").WithString("media_type", mime).WithString("data", p.Data)
	if p.Data == "" {
		if !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://") {
			return nil, false
		}
		source = codec.TypedObject("url").WithString("url", p.URL)
	}
	unknown := mime == "" && p.Data == "" // the provider finds out
	typ := "document"
	switch {
	case mime == "image/png", mime == "image/jpeg", mime == "image/gif", mime == "image/webp",
		unknown && p.Kind == codec.PartImage:
		typ = "image"
	case mime == "application/pdf", unknown && p.Kind == codec.PartFile:
	case strings.HasPrefix(mime, "text/") && p.Data != "": // the format takes plain text only
		text, err := base64.StdEncoding.DecodeString(p.Data)
		if err != nil || !utf8.Valid(text) {
			return nil, false
		}
		source = codec.TypedObject("text").WithString("media_type", "text/plain")
		source = source.WithString("data", string(text))
	default:
		return nil, false
	}
	block = codec.TypedObject(typ).With("source", source.JSON())
	if named = typ == "document" && p.Name != ""; named {
		block = block.WithString("title", p.Name)
	}
	return block, named
}

// ReadPart reads a part in the notation of the format.
func ReadPart(part jsontext.Object) (codec.Part, bool) {
	p := codec.Part{Kind: codec.PartImage}
	switch part.String("type") {
	case "image":
	case "document":
		p.Kind = codec.PartFile
	default:
		return p, false
	}
	source := part.Object("source")
	p.Name, p.MIME = part.String("title"), source.String("media_type")
	p.NameAt, p.Read = "title", []string{"source.type", "source.media_type", "source.data", "source.url", "source.content"}
	switch source.String("type") {
	case "base64":
		p.Data = source.String("data")
	case "url":
		p.URL = source.String("url")
	case "text":
		p.Data = base64.StdEncoding.EncodeToString([]byte(source.String("data")))
	case "content":
		p.MIME = "text/plain"
		p.Data = base64.StdEncoding.EncodeToString([]byte(plainText(source.Get("content"))))
	}
	return p.AsMedia()
}

// plainText returns the text of content that is a text, or blocks that are all
// texts, "" for any other.
func plainText(content []byte) string {
	if jsontext.Kind(content) == "string" {
		return jsontext.Unquote(content)
	}
	blocks, _ := jsontext.Elements(content) // none if it is not an array
	texts := make([]string, len(blocks))
	for i, raw := range blocks {
		block, _ := jsontext.Members(raw) // none if it is not an object
		text := block.Get("text")
		if jsontext.Kind(text) != "string" {
			return ""
		}
		texts[i] = jsontext.Unquote(text)
	}
	return strings.Join(texts, "\n")
}
