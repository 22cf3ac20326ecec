package codec

import (
	"path"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// ReadMCPPart reads the content of the Model Context Protocol, which tools
// return: images, sounds, resources and links to resources. A resource with a
// text is that text, and a link is a text with its name and its address, which
// only the client can open. See
// https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool-result.
func ReadMCPPart(part jsontext.Object) (Part, bool) {
	switch part.String("type") {
	case "image", "audio":
		p := Part{Kind: PartImage, MIME: part.String("mimeType"), Data: part.String("data"), Read: []string{"mimeType", "data"}}
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
