package gemini

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// The names of the members that a message keeps.
const (
	keptIn     = "in"
	keptBare   = "bare"
	keptLone   = "lone"
	keptJoined = "joined"
	keptRole   = "role"
	keptAs     = "as"
	keptBlock  = "block"
	keptPart   = "part"
)

// The places of a content.
const (
	inElement          = "message"  // an element of contents
	inContents         = "contents" // the only content, not in an array
	inInstruction      = "systemInstruction"
	inSnakeInstruction = "system_instruction"
)

// part is a part of a content.
type part struct {
	raw     []byte
	members jsontext.Object
	typ     string          // of the message that it becomes
	as      string          // the member with the call or the result
	inner   jsontext.Object // what is in that member
}

// readPart reads a part. A member that is null counts as missing.
func readPart(raw []byte, members jsontext.Object) (part, error) {
	p := part{raw: raw, members: members, typ: codec.TypeText}
	for _, m := range members {
		typ := ""
		switch m.Name {
		case "text":
			if err := members.Want("text", "string", "null"); err != nil {
				return p, err
			}
			continue
		case "functionCall", "function_call":
			typ = codec.TypeCall
		case "functionResponse", "function_response":
			typ = codec.TypeResult
		default:
			continue
		}
		if err := members.Want(m.Name, "object", "null"); err != nil {
			return p, err
		}
		if p.as == "" && !jsontext.IsNull(m.Value) {
			p.typ, p.as, p.inner = typ, m.Name, members.Object(m.Name)
		}
	}
	for _, name := range []string{"id", "name"} {
		if err := p.inner.Want(name, "string", "null", "nothing"); err != nil {
			return p, fault.Under(jsontext.Path("$", p.as), err)
		}
	}
	return p, nil
}

// id and name return those of a call or a result.
func (p part) id() string   { return p.inner.String("id") }
func (p part) name() string { return p.inner.String("name") }

// plain returns the plain encoding of a call or a result that has this name.
func (p part) plain(name, member string, value []byte) jsontext.Object {
	var id []byte
	if p.id() != "" {
		id = p.inner.Get("id")
	}
	sent := p.inner.Get("name")
	if !jsontext.IsText(sent, name) {
		sent = jsontext.AppendQuote(nil, name)
	}
	return plainFunction(id, sent, member, value)
}

// appendKept appends what has to be kept of a call or a result with this plain
// encoding.
func (p part) appendKept(kept, plain jsontext.Object) jsontext.Object {
	switch p.as {
	case "function_call", "function_response":
		kept = kept.WithString(keptAs, p.as)
	}
	if block := codec.Difference(p.inner, plain); block != nil {
		kept = kept.With(keptBlock, block.JSON())
	}
	if rest := codec.Difference(p.members, jsontext.Object{{Name: p.as, Value: p.members.Get(p.as)}}); rest != nil {
		kept = kept.With(keptPart, rest.JSON())
	}
	return kept
}

// restorePart returns the part of a call or a result with what was kept of it.
// name is the member that holds it.
func restorePart(name string, inner, kept jsontext.Object) []byte {
	if as := kept.String(keptAs); as != "" {
		name = as
	}
	inner = codec.Restore(inner, kept.Object(keptBlock))
	return codec.Restore(jsontext.Object{}.With(name, inner.JSON()), kept.Object(keptPart)).JSON()
}

// plainFunction returns the plain functionCall with its args, or the plain
// functionResponse with its response. The id is nil if there is none.
func plainFunction(id, name []byte, member string, value []byte) jsontext.Object {
	return jsontext.Object{{Name: "id", Value: id}, {Name: "name", Value: name}, {Name: member, Value: value}}
}

// plainOf is plainFunction for a call, or the call of a response.
func plainOf(call state.ToolCall, member string, value []byte) jsontext.Object {
	var id []byte
	if call.ID != "" {
		id = jsontext.AppendQuote(nil, call.ID)
	}
	return plainFunction(id, jsontext.AppendQuote(nil, call.Name), member, value)
}

// mediaPart returns the part of a medium, nil if the format cannot express it.
// Gemini takes data with its MIME type, and a URL that it can fetch.
func mediaPart(p codec.Part) []byte {
	var blob jsontext.Object
	if p.MIME != "" {
		blob = blob.WithString("mimeType", p.MIME)
	}
	switch {
	case p.Data != "" && p.MIME != "":
		return jsontext.Object{}.With("inlineData", blob.WithString("data", p.Data).JSON()).JSON()
	case p.Data == "" && p.URL != "":
		return jsontext.Object{}.With("fileData", blob.WithString("fileUri", p.URL).JSON()).JSON()
	}
	return nil
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
