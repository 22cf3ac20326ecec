package provider

import (
	"path"
	"slices"
	"strings"

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
	mark  string
	d     *codec.Decoder
	entry Entry

	before []Part            // those of the entry up to the part that is read
	names  map[string]string // the name of the latest call of each id, for the first named of before
	named  int

	oneResult bool // whether each result is an entry
}

// said is what becomes one message.
type said struct {
	typ     string
	content []byte          // of a text or a result
	calls   []codec.Call    // of a message with calls
	result  Part            // of a result
	kept    jsontext.Object // for the message
}

// decode adds the messages. An entry without parts is kept as its Extra.
func (r *entryReader) decode() error {
	if len(r.entry.Parts) == 0 {
		item := r.entry.Extra.json
		if item == "" {
			item = "{}"
		}
		return r.d.AddItem(r.entry.Role, "entry", []byte(item))
	}
	r.names, r.named = nil, 0
	var buffer [3]said
	all := buffer[:0]
	for from, to := 0, 0; from < len(r.entry.Parts); from = to {
		to = endOfRun(r.entry.Parts, from)
		r.before = r.entry.Parts[:to]
		one, err := r.read(r.entry.Parts[from:to])
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	for i := range all {
		one := &all[i]
		switch {
		case i > 0:
			one.kept = one.kept.With("joined", []byte("true"))
		case r.isApart(one.typ):
			one.kept = one.kept.With("joined", []byte("false"))
		}
		if i == 0 {
			if extra := r.entry.Extra.json; extra != "" {
				one.kept = one.kept.With("entry", jsontext.Object{{Name: keptExtra, Value: []byte(extra)}}.JSON())
			}
			r.d.SetMember(memberName, r.entry.Name)
			r.d.SetMember(memberReasoning, r.entry.Reasoning)
		}
		if i == len(all)-1 {
			r.d.SetMember("stop_reason", codec.StopName(r.entry.StopReason))
		}
		if err := r.add(one); err != nil {
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

// endOfRun returns the index behind the parts that become one message with the
// part at from.
func endOfRun(parts []Part, from int) int {
	for i := from + 1; i < len(parts); i++ {
		if parts[i].Kind == PartResult || messageType(parts[i]) != messageType(parts[from]) {
			return i
		}
	}
	return len(parts)
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

// read reads the parts of one message.
func (r *entryReader) read(run []Part) (said, error) {
	one := said{typ: messageType(run[0])}
	switch one.typ {
	case codec.TypeCall:
		one.calls = make([]codec.Call, 0, len(run))
		for _, p := range run {
			plain := Part{Kind: PartCall, ID: p.ID, Name: p.Name, Input: p.Input}
			one.calls = append(one.calls, codec.Call{ID: p.ID, Name: p.Name, Input: codec.ValueOrNil(p.Input), Kept: r.keep(p, plain)})
		}
	case codec.TypeResult:
		return r.readResult(one, run[0])
	case codec.TypeText:
		if p := run[0]; len(run) == 1 && p.Kind == PartText && p.JSON == "" && p.Extra.IsEmpty() {
			one.content = jsontext.AppendQuote(nil, p.Text)
			return one, nil
		}
		var err error
		one.content, err = r.readParts(run)
		return one, err
	}
	return one, nil
}

// readResult reads the part of a result.
func (r *entryReader) readResult(one said, p Part) (said, error) {
	plain := Part{Kind: PartResult, ID: p.ID, Name: p.Name, Content: p.Content, IsError: p.IsError}
	if plain.Name == "" {
		plain.Name = r.callName(p.ID)
	}
	one.content = codec.ValueOrNil(p.Content)
	if p.Parts != nil {
		var err error
		if one.content, err = r.readParts(p.Parts); err != nil {
			return one, err
		}
	} else if jsontext.Kind(one.content) == "array" {
		one.kept = one.kept.With("data", []byte("true"))
	}
	if kept := r.keep(p, plain); kept != nil {
		one.kept = one.kept.With("part", kept.JSON())
	}
	if r.entry.Role != RoleTool {
		one.kept = one.kept.WithString("role", r.entry.Role)
	}
	one.result = plain
	return one, nil
}

// callName returns the name of the latest call that has the id.
func (r *entryReader) callName(id string) string {
	for ; r.named < len(r.before); r.named++ {
		if p := &r.before[r.named]; p.Kind == PartCall {
			if r.names == nil {
				r.names = map[string]string{}
			}
			r.names[p.ID] = p.Name
		}
	}
	if name, ok := r.names[id]; ok {
		return name
	}
	return r.d.CallName(id)
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
				return nil, &fault.Error{Path: jsontext.Index("$.parts", i), Want: "JSON, or a part that the codec can encode", Got: "neither"}
			}
			item := jsontext.Object{}.With(origin.Item, []byte(p.JSON))
			neutral = codec.TypedObject(otherName(p)).With(r.mark, item.JSON())
		case kept != nil:
			neutral = neutral.With(r.mark, kept.JSON())
		}
		elements[i] = neutral.JSON()
	}
	return jsontext.Array(elements), nil
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

// add adds the message.
func (r *entryReader) add(one *said) error {
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
