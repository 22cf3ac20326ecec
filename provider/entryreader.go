package provider

import (
	"path"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

const roleAssistant = "assistant"

// decodeEntries adds the messages of entries that a codec has read.
func (f foreign) decodeEntries(d *codec.Decoder, entries []Entry) error {
	for i, e := range entries {
		r := entryReader{foreign: f, d: d, entry: e}
		if err := r.decode(); err != nil {
			return fault.Under(jsontext.Index("$.entries", i), err)
		}
	}
	return nil
}

// entryReader makes the messages of an entry.
type entryReader struct {
	foreign
	d     *codec.Decoder
	entry Entry
}

// said is what becomes one message.
type said struct {
	typ     string
	content []byte          // of a text or a result
	calls   []codec.Call    // of a message with calls
	result  Part            // of a result
	kept    jsontext.Object // for the message
	parts   []Part          // as the format will encode them
}

func (r *entryReader) decode() error {
	if len(r.entry.Parts) == 0 {
		if jsontext.Kind([]byte(r.entry.JSON)) != "object" {
			return &fault.Error{Path: "$", Want: "an entry with parts or an object", Got: "neither"}
		}
		return r.d.AddItem(r.entry.Role, "entry", []byte(r.entry.JSON))
	}
	names := map[string]string{} // of the calls of the entry
	var all []said
	plain := Entry{Role: r.entry.Role}
	for _, run := range runsOf(r.entry.Parts) {
		one, err := r.read(run, names)
		if err != nil {
			return err
		}
		all = append(all, one)
		plain.Parts = append(plain.Parts, one.parts...)
	}
	var kept jsontext.Object
	if encoded := r.EncodeEntry(plain); r.entry.JSON != "" && len(encoded) > 0 {
		kept = codec.Compare([]byte(r.entry.JSON), []byte(encoded[0]))
	}
	for i, one := range all {
		switch {
		case i > 0:
			one.kept = one.kept.With("joined", []byte("true"))
		case r.d.WouldJoin(one.typ, r.entry.Role):
			one.kept = one.kept.With("joined", []byte("false"))
		}
		if i == 0 && kept != nil {
			one.kept = one.kept.With("entry", kept.JSON())
		}
		if err := r.add(one); err != nil {
			return err
		}
	}
	return nil
}

// runsOf splits parts into those of one message each.
func runsOf(parts []Part) (runs [][]Part) {
	for i, p := range parts {
		if i > 0 && p.Kind != PartResult && messageType(p) == messageType(parts[i-1]) {
			runs[len(runs)-1] = append(runs[len(runs)-1], p)
			continue
		}
		runs = append(runs, []Part{p})
	}
	return runs
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

// read reads the parts of one message. names are those of the calls so far.
func (r *entryReader) read(run []Part, names map[string]string) (said, error) {
	one := said{typ: messageType(run[0])}
	switch one.typ {
	case codec.TypeCall:
		for _, p := range run {
			names[p.ID] = p.Name
			call := codec.Call{ID: p.ID, Name: p.Name, Input: codec.ValueOrNil(p.Input)}
			var encoded Part
			encoded, call.Kept = r.compare(p, callPart(p.ID, p.Name, p.Input))
			one.calls, one.parts = append(one.calls, call), append(one.parts, encoded)
		}
	case codec.TypeResult:
		return r.readResult(one, run[0], names)
	case codec.TypeText:
		if p := run[0]; len(run) == 1 && p.Kind == PartText && p.JSON == "" {
			one.content = jsontext.AppendQuote(nil, p.Text)
			one.parts = []Part{{Kind: PartText, Text: jsontext.Unquote(one.content)}}
			return one, nil
		}
		var err error
		one.content, one.parts, err = r.readParts(r.entry.Role, run)
		return one, err
	}
	return one, nil
}

// readResult reads the part of a result.
func (r *entryReader) readResult(one said, p Part, names map[string]string) (said, error) {
	plain := Part{Kind: PartResult, ID: p.ID, Name: p.Name, Content: p.Content, IsError: p.IsError}
	if name, ok := names[p.ID]; plain.Name == "" && ok {
		plain.Name = name
	} else if plain.Name == "" {
		plain.Name = r.d.CallName(p.ID)
	}
	one.content = codec.ValueOrNil(p.Content)
	if p.Parts != nil {
		var err error
		if one.content, plain.Parts, err = r.readParts(RoleTool, p.Parts); err != nil {
			return one, err
		}
		plain.Content = ""
	} else if jsontext.Kind(one.content) == "array" {
		one.kept = one.kept.With("data", []byte("true"))
	}
	encoded, kept := r.compare(p, plain)
	if kept != nil {
		one.kept = one.kept.With("part", kept.JSON())
	}
	if r.entry.Role != RoleTool {
		one.kept = one.kept.WithString("role", r.entry.Role)
	}
	one.result, one.parts = plain, []Part{encoded}
	return one, nil
}

// compare returns the part that the format will encode for plain, which is what
// the message says of p, and what is kept for it.
func (r *entryReader) compare(p, plain Part) (encoded Part, kept jsontext.Object) {
	text, _ := r.EncodePart(r.entry.Role, plain)
	if p.JSON != "" {
		kept = codec.Compare([]byte(p.JSON), []byte(text))
	}
	plain.JSON = state.JSON(codec.Apply([]byte(text), kept))
	return plain, kept
}

// readParts returns the content of a message with parts, and the parts as the
// format will encode them.
func (r *entryReader) readParts(role string, parts []Part) (content []byte, encoded []Part, err error) {
	elements := make([][]byte, len(parts))
	encoded = make([]Part, len(parts))
	for i, p := range parts {
		neutral := neutralPart(p)
		plain := partOf(readPart(neutral))
		if p.Kind == PartThinking {
			plain = Part{Kind: PartThinking, Text: p.Text}
		}
		text, ok := r.EncodePart(role, plain)
		switch {
		case neutral == nil || plain.Kind == PartOther || !ok:
			if p.JSON == "" {
				return nil, nil, &fault.Error{Path: jsontext.Index("$.parts", i), Want: "JSON, or a part that the codec can encode", Got: "neither"}
			}
			encoded[i] = Part{Kind: PartOther, Name: otherName(p), JSON: p.JSON}
			item := jsontext.Object{}.With(origin.Item, []byte(p.JSON))
			neutral = codec.TypedObject(encoded[i].Name).With(r.mark, item.JSON())
		default:
			var kept jsontext.Object
			if p.JSON != "" {
				kept = codec.Compare([]byte(p.JSON), []byte(text))
			}
			plain.JSON = state.JSON(codec.Apply([]byte(text), kept))
			encoded[i] = plain
			if kept != nil {
				neutral = neutral.With(r.mark, kept.JSON())
			}
		}
		elements[i] = neutral.JSON()
	}
	return jsontext.Array(elements), encoded, nil
}

// otherName returns the type of a part that only its format can express. It is
// not a text, which a message must be able to read.
func otherName(p Part) string {
	name := p.Name
	if name == "" || p.Kind != PartOther {
		members, _ := jsontext.Members([]byte(p.JSON)) // none if it is not an object
		k := slices.IndexFunc(members, func(m jsontext.Member) bool { return string(m.Value) != "null" })
		if name = ""; k >= 0 {
			name = members[k].Name
		}
	}
	if name == "" || name == "text" {
		return "other"
	}
	return name
}

// neutralPart returns a part in words that every format reads: those of the Model
// Context Protocol for data, those of Chat Completions for a URL. It returns nil
// for a part of another kind.
func neutralPart(p Part) jsontext.Object {
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

// callPart returns a call for a codec. A missing input is an object without
// members.
func callPart(id, name string, input state.JSON) Part {
	if input == "" || input == "null" {
		input = "{}"
	}
	return Part{Kind: PartCall, ID: id, Name: name, Input: input}
}

// add adds the message.
func (r *entryReader) add(one said) error {
	switch one.typ {
	case codec.TypeCall:
		return r.d.AddCalls(r.entry.Role, one.calls, one.kept)
	case codec.TypeResult:
		result := codec.Result{ID: one.result.ID, Name: one.result.Name, Content: one.content, Kept: one.kept}
		if one.result.IsError {
			result.IsError = []byte("true")
		}
		return r.d.AddResult(result)
	}
	return r.d.AddText(r.entry.Role, one.content, one.kept)
}
