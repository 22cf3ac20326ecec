package codec

import (
	"slices"

	"github.com/agentstate/state"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// A Table says in which words an API has a conversation whose entries have a
// role and content, and whose content is texts, media, calls and results. It
// reads and writes the conversation: a [Format] is a Table with what the API
// has besides.
//
// Each run of parts that are neither calls nor results becomes a text message,
// each run of calls one message with calls, and each result a message. The
// first message of an entry keeps the difference of the entry, and
//
//	in      the member with the prompt, for one that is not an element of the
//	        conversation
//	bare    true for a prompt that is the text of an entry
//	lone    true for a part that is not in an array
//	role    of the entry, unless it is what such a message has
//	joined  as in package origin
//
// What a call or a result keeps is said at [Word].
type Table struct {
	Prompts []string // the members with the system prompt, in each spelling; the first is written
	Entries string   // the member with the conversation
	Content string   // the member of an entry with its parts

	// Bare says that content may be a text, and that the prompt is content.
	// Otherwise the prompt is an entry, or its text.
	Bare bool

	// Lone says that the only element of a list may stand for the list.
	Lone bool

	// Strict says that a part of another kind is an error. Otherwise its entry is
	// kept whole.
	Strict bool

	// Model is the role of what the model says. Everything else is the user's.
	Model string

	// System is the role of a system prompt within the conversation. The prompt
	// of an API without one is the user's.
	System string

	// OtherRole reports a role that is left out. An API that has any role reports
	// none.
	OtherRole string

	// NoRole is the role of an entry without one, whose part in the conversation
	// is then known. Without NoRole, it is kept whole.
	NoRole string

	// Untyped says that parts have no types: a part is known by its members. In
	// the content of a message, a text is told by the type text.
	Untyped bool

	Call, Result Word

	// NoEmptyText says that the API refuses empty texts as parts.
	NoEmptyText bool

	// ResultsApart says that results are in one entry with nothing else.
	ResultsApart bool

	// FirstCall is a member that the first call of an entry needs if it comes
	// from another format.
	FirstCall jsontext.Member

	// The members that programs may set, in the words of the API.
	OwnOfPart, OwnOfCall, OwnOfResult, OwnOfTool []string

	// Part returns a part for one of another format as a role can say it, nil if
	// it cannot, and the paths of the members that it has besides those that were
	// read.
	Part func(role string, p Part) (part jsontext.Object, written []string)

	// Output returns what a result of another format says, and more members of
	// its part (default: its parts, or the text of its value).
	Output func(e *Encoder, i int, r ForeignResult) (value []byte, added jsontext.Object)

	DecodeTool  func(element jsontext.Object) ([]Tool, bool)
	EncodeTools func([]Tool) [][]byte
}

// Word is how an API says a call or a result: as a part of a type, or as what is
// in a member of a part without types. A call keeps the difference of its part.
// A result keeps it as block. Where it is in a member, both keep
//
//	as     the member, unless it is the first spelling
//	block  the difference of what is in it
//	part   the difference of the part
type Word struct {
	Type            string
	In              []string // in each spelling; the first is written
	ID, Name, Value string
	Failed          string // of a result, whether it is an error
	Optional        bool   // whether the id may be missing
}

// EntryType is the type of the message that keeps an entry of the conversation
// as a whole.
const EntryType = "message"

// DecodeRequest adds the messages of a request.
func (t *Table) DecodeRequest(d *Decoder, body jsontext.Object) (Request, error) {
	settings := body.Without(t.Entries)
	for _, name := range t.Prompts {
		prompt := body.Get(name)
		if jsontext.IsNull(prompt) || t.Bare && string(prompt) == `""` { // some SDKs send it for none
			continue
		}
		if err := t.decodePrompt(d, body, name, prompt); err != nil {
			return Request{}, err
		}
		settings = settings.Without(name)
	}
	if only := body.Object(t.Entries); only != nil && t.Lone {
		err := t.decodeEntry(d, place{in: t.Entries, noRole: t.NoRole}, body.Get(t.Entries), only)
		return SplitTools(settings, t.DecodeTool), fault.Under(jsontext.Path("$", t.Entries), err)
	}
	if err := body.Want(t.Entries, "array"); err != nil {
		return Request{}, err
	}
	err := body.EachObject(t.Entries, func(raw []byte, entry jsontext.Object) error {
		return t.decodeEntry(d, place{noRole: t.NoRole}, raw, entry)
	})
	return SplitTools(settings, t.DecodeTool), err
}

// decodePrompt adds the system prompt.
func (t *Table) decodePrompt(d *Decoder, body jsontext.Object, name string, prompt []byte) error {
	kinds := []string{"string", "array"}
	if !t.Bare {
		kinds = []string{"object", "string"}
	}
	if err := body.Want(name, kinds...); err != nil {
		return err
	}
	kept := jsontext.Object{}.WithString(keptPlace, name)
	if entry := body.Object(name); entry != nil {
		return fault.Under(jsontext.Path("$", name), t.decodeEntry(d, place{in: name, isPrompt: true}, prompt, entry))
	}
	if !t.Bare {
		kept = kept.With(keptBare, []byte("true"))
	}
	return fault.Under(jsontext.Path("$", name), d.AddText("system", prompt, kept))
}

// DecodeReply adds the messages of what the model said in a response.
func (t *Table) DecodeReply(d *Decoder, entry jsontext.Object) error {
	if jsontext.Kind(entry.Get("role")) != "string" {
		entry = entry.WithString("role", t.Model)
	}
	return t.decodeEntry(d, place{noRole: t.NoRole}, entry.JSON(), entry)
}

// OwnMembers returns the members that programs may set.
func (t *Table) OwnMembers(typ string) []string {
	switch typ {
	case TypeResult:
		return t.OwnOfResult
	case TypeOneCall:
		return t.OwnOfCall
	case TypeOffered:
		return t.OwnOfTool
	}
	return nil
}

// EncodeRequest returns the body of a request.
func (t *Table) EncodeRequest(e *Encoder, r Request, msgs []state.Message) (jsontext.Object, error) {
	return r.Body(t.EncodeTools, t.encodeMessages(e, msgs))
}

// The names of what a message keeps besides the difference.
const (
	keptPlace  = "in"
	keptBare   = "bare"
	keptLone   = "lone"
	keptJoined = "joined"
	keptRole   = "role"
	keptAs     = "as"
	keptBlock  = "block"
	keptPart   = "part"
)

// entryRole returns the role of an entry that has nothing but a message of this
// type and role.
func (t *Table) entryRole(typ, role string) string {
	if typ == TypeCall || typ == TypeText && role == "assistant" {
		return t.Model
	}
	return "user"
}

// messageRole returns the role of a message for that of an entry.
func (t *Table) messageRole(role string) string {
	if role == t.Model {
		return "assistant"
	}
	return role
}

// isPrompt reports whether a place is that of the system prompt.
func (t *Table) isPrompt(in string) bool { return slices.Contains(t.Prompts, in) }

// textPart returns the part of a text, which is a JSON string.
func (t *Table) textPart(text []byte) jsontext.Object {
	part := make(jsontext.Object, 0, 2)
	if !t.Untyped {
		part = append(part, jsontext.Member{Name: "type", Value: []byte(`"text"`)})
	}
	return append(part, jsontext.Member{Name: "text", Value: text})
}

// plain returns the plain JSON of a call or a result: the part, or what is in
// its member.
func (w *Word) plain(id, name, value, failed []byte) jsontext.Object {
	plain := make(jsontext.Object, 0, 5)
	add := func(name string, value []byte) {
		if name != "" && value != nil {
			plain = append(plain, jsontext.Member{Name: name, Value: value})
		}
	}
	if w.Type != "" {
		add("type", jsontext.AppendQuote(nil, w.Type))
	}
	if !w.Optional || len(id) > len(`""`) {
		add(w.ID, id)
	}
	add(w.Name, name)
	add(w.Value, value)
	add(w.Failed, failed)
	return plain
}

// keep returns what is kept of a call or a result, whose part holds inner in the
// member as.
func (w *Word) keep(kept jsontext.Object, typ string, p *TablePart, plain jsontext.Object) jsontext.Object {
	set := func(name string, difference jsontext.Object) {
		if difference != nil {
			kept = kept.With(name, difference.JSON())
		}
	}
	switch {
	case w.In != nil:
		if p.As != w.In[0] {
			kept = kept.WithString(keptAs, p.As)
		}
		set(keptBlock, Difference(p.Inner, plain))
		set(keptPart, Difference(p.Members, jsontext.Object{{Name: p.As, Value: p.Members.Get(p.As)}}))
	case typ == TypeResult:
		set(keptBlock, Difference(p.Members, plain))
	default:
		kept = append(kept, Difference(p.Members, plain)...)
	}
	return kept
}

// restore returns the part of a call or a result with what was kept of it, and
// with members that a program has set.
func (w *Word) restore(typ string, plain, kept, own jsontext.Object) []byte {
	switch {
	case w.In != nil:
		as := kept.String(keptAs)
		if as == "" {
			as = w.In[0]
		}
		inner := Restore(plain, kept.Object(keptBlock))
		return Restore(jsontext.Object{{Name: as, Value: inner.JSON()}}, More(kept.Object(keptPart), own)).JSON()
	case typ == TypeResult:
		kept = kept.Object(keptBlock)
	}
	return Restore(plain, More(kept, own)).JSON()
}
