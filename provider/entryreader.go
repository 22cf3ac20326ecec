package provider

import (
	"path"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

const (
	roleAssistant   = "assistant"
	memberName      = "name"
	memberReasoning = "reasoning_content"
)

// entryReader makes the messages of an entry.
type entryReader struct {
	keeper
	mark      string
	d         *codec.Decoder
	entry     Entry
	oneResult bool // whether each result is an entry
}

// decode adds the messages. An entry without parts is kept as its Extra.
func (r *entryReader) decode() error {
	parts := r.entry.Parts
	if len(parts) == 0 {
		item := r.entry.Extra.json
		if item == "" {
			item = "{}"
		}
		return r.d.AddItem(r.entry.Role, "entry", []byte(item))
	}
	for from, to := 0, 0; from < len(parts); from = to {
		typ := messageType(parts[from])
		for to++; typ != codec.TypeResult && to < len(parts) && messageType(parts[to]) == typ; {
			to++
		}
		var kept jsontext.Object
		switch {
		case from > 0:
			kept = kept.With("joined", []byte("true"))
		case r.isApart(typ):
			kept = kept.With("joined", []byte("false"))
		}
		if from == 0 {
			if extra := r.entry.Extra.json; extra != "" {
				kept = kept.With("entry", jsontext.Object{{Name: keptExtra, Value: []byte(extra)}}.JSON())
			}
			r.d.SetMember(memberName, r.entry.Name)
			r.d.SetMember(memberReasoning, r.entry.Reasoning)
		}
		if to == len(parts) {
			r.d.SetMember("stop_reason", codec.StopName(r.entry.StopReason))
		}
		if err := r.add(typ, parts[from:to], kept); err != nil {
			return err
		}
	}
	return nil
}

// isApart reports whether a message that begins an entry must say so.
func (r *entryReader) isApart(typ string) bool {
	if typ == codec.TypeResult && r.oneResult {
		return false
	}
	return typ == codec.TypeCall || r.d.WouldJoin(typ, r.entry.Role)
}

func messageType(p Part) string {
	switch p.Kind {
	case PartCall:
		return codec.TypeCall
	case PartResult:
		return codec.TypeResult
	}
	return codec.TypeText
}

// add adds the message of a type for a run of parts.
func (r *entryReader) add(typ string, run []Part, kept jsontext.Object) error {
	switch typ {
	case codec.TypeCall:
		calls := make([]codec.Call, len(run))
		for i, p := range run {
			calls[i] = codec.Call{ID: p.ID, Name: p.Name, Input: codec.ValueOrNil(p.Input), Kept: r.keep(p, p)}
		}
		return r.d.AddCalls(r.entry.Role, calls, kept)
	case codec.TypeResult:
		return r.addResult(run[0], kept)
	}
	if p := run[0]; len(run) == 1 && p.Kind == PartText && p.JSON == "" && p.Extra.IsEmpty() {
		return r.d.AddText(r.entry.Role, jsontext.AppendQuote(nil, p.Text), kept)
	}
	content, err := r.readParts(run)
	if err != nil {
		return err
	}
	return r.d.AddText(r.entry.Role, content, kept)
}

// addResult adds the message of a result.
func (r *entryReader) addResult(p Part, kept jsontext.Object) (err error) {
	result := codec.Result{ID: p.ID, Name: p.Name, Content: codec.ValueOrNil(p.Content)}
	if p.Parts != nil {
		if result.Content, err = r.readParts(p.Parts); err != nil {
			return err
		}
	} else if jsontext.Kind(result.Content) == "array" {
		kept = kept.With("data", []byte("true"))
	}
	if of := r.keep(p, p); of != nil {
		kept = kept.With("part", of.JSON())
	}
	if r.entry.Role != RoleTool {
		kept = kept.WithString("role", r.entry.Role)
	}
	if p.IsError {
		result.IsError = []byte("true")
	}
	result.Kept = kept
	return r.d.AddResult(result)
}

// readParts returns the content of a message with parts.
func (r *entryReader) readParts(parts []Part) (content []byte, err error) {
	elements := make([][]byte, len(parts))
	for i, p := range parts {
		neutral := neutralPart(p)
		plain := partOf(readPart(neutral))
		if p.Kind == PartThinking {
			plain = Part{Kind: PartThinking, Text: p.Text}
		}
		kept := r.keep(p, plain)
		switch {
		case neutral == nil || plain.Kind == PartOther:
			if p.JSON == "" {
				return nil, &fault.Error{
					Path: jsontext.Index("$.parts", i), Want: "JSON, or a part that the codec can encode", Got: "neither",
				}
			}
			name := ""
			if p.Kind == PartOther {
				name = p.Name
			}
			members, _ := jsontext.Members([]byte(p.JSON)) // none if it is not an object
			item := jsontext.Object{}.With(origin.Item, []byte(p.JSON))
			neutral = codec.TypedObject(otherName(name, members)).With(r.mark, item.JSON())
		case kept != nil:
			neutral = neutral.With(r.mark, kept.JSON())
		}
		elements[i] = neutral.JSON()
	}
	return jsontext.Array(elements), nil
}

// otherName returns the type of a part that only its format can express: its
// name, or that of its first member. It is not a text, which a message must be
// able to read, nor thinking, which others leave out in silence.
func otherName(name string, part jsontext.Object) string {
	for _, m := range part {
		if name == "" && !jsontext.IsNull(m.Value) {
			name = m.Name
		}
	}
	switch name {
	case "", "text", "thinking":
		return "other"
	}
	return name
}

// neutralPart returns a part in words that every format reads: those of the Model
// Context Protocol for data, those of Chat Completions for a URL. It returns nil
// for a part of another kind.
func neutralPart(p Part) jsontext.Object {
	if mime, data, ok := splitDataURL(p); ok {
		p.MIME, p.Data = mime, data
	}
	switch {
	case p.Kind == PartText:
		return codec.TypedObject("text").WithString("text", p.Text)
	case p.Kind == PartThinking:
		return codec.TypedObject("thinking").WithString("thinking", p.Text)
	case p.Kind != PartImage && p.Kind != PartAudio && p.Kind != PartFile:
		return nil
	case p.Data == "" && p.Kind == PartImage:
		return codec.TypedObject("image_url").With("image_url", jsontext.Object{}.WithString("url", p.URL).JSON())
	case p.Data == "":
		return codec.TypedObject("document_url").WithString("document_url", p.URL)
	}
	mime := jsontext.Object{}
	if p.MIME != "" {
		mime = mime.WithString("mimeType", p.MIME)
	}
	switch p.Kind {
	case PartImage:
		return append(codec.TypedObject("image"), mime.WithString("data", p.Data)...)
	case PartAudio:
		return append(codec.TypedObject("audio"), mime.WithString("data", p.Data)...)
	}
	if name := path.Base(p.Name); p.Name != "" {
		mime = mime.WithString("uri", name)
	}
	return codec.TypedObject("resource").With("resource", mime.WithString("blob", p.Data).JSON())
}

// splitDataURL returns the data of a part that has it in its URL.
func splitDataURL(p Part) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(p.URL, "data:")
	if !ok || p.Data != "" {
		return "", "", false
	}
	return strings.Cut(rest, ";base64,")
}

// ReadPart reads a part of the content of a message, in the words of any format: a
// text, an image, a sound or a file. It returns false for another part, and for a file
// that only its provider has.
func ReadPart(part state.JSON) (p Part, ok bool) {
	members, _ := jsontext.Members([]byte(part)) // none if it is not an object
	p = partOf(readPart(members))
	return p, p.Kind != PartOther
}

// readPart reads a part in the words of any format.
func readPart(members jsontext.Object) codec.Part {
	for _, read := range partReaders {
		if p, ok := read(members); ok {
			return p
		}
	}
	return codec.Part{}
}

// partOf returns a part for a codec.
func partOf(p codec.Part) Part {
	part := Part{MIME: p.MIME, Data: p.Data, URL: p.URL, Name: p.Name}
	switch p.Kind {
	case codec.PartText, codec.PartRefusal:
		part.Kind, part.Text = PartText, jsontext.Unquote(p.Text)
	case codec.PartImage:
		part.Kind = PartImage
	case codec.PartAudio:
		part.Kind = PartAudio
	case codec.PartFile:
		part.Kind = PartFile
	}
	return part
}

// withInput returns a call whose input is an object without members if it has
// none.
func withInput(p Part) Part {
	if p.Kind == PartCall && (p.Input == "" || p.Input == "null") {
		p.Input = "{}"
	}
	return p
}
