package codec

import (
	"slices"

	"github.com/agentstate/state"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// A Table says in which words an API has a conversation. It reads and writes the
// conversation: a [Format] is a Table with what the API has besides.
//
// An entry of the conversation has a role and content: texts and media, and
// calls and results unless these have a separate place. Each run of parts
// that are neither calls nor results becomes a text message, each run of calls
// one message with calls, and each result a message. The first message of an
// entry keeps the difference of the entry, and
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
	Content string   // the member of an entry with what it says

	// Bare says that content may be a text.
	Bare bool

	// PromptContent says that the prompt is content. Otherwise it is an entry, or
	// the text of one.
	PromptContent bool

	// Lone says that the only element of a list may stand for the list.
	Lone bool

	// Strict says that a part of another kind is an error. Otherwise its entry is
	// kept whole.
	Strict bool

	// Lax says that an entry may have any role, and a part no type. A single text
	// is written without a part, which more providers with the format accept.
	Lax bool

	// Model and User are the roles of what the model says and of everything else.
	// A Lax API has any role besides.
	Model, User string

	// System is the role of a system prompt within the conversation.
	System string

	// OtherRole reports a role that is left out. An API that has any role reports
	// none.
	OtherRole string

	// NoRole is the role of an entry without one. Without NoRole, the entry is
	// kept whole.
	NoRole string

	// Untyped says that parts have no types: a part is known by its members.
	Untyped bool

	// NoEmptyText says that the API refuses empty texts as parts.
	NoEmptyText bool

	Calls, Results []Word

	// CallList is the member of an entry with its calls, "" if they are parts.
	CallList string

	// ResultsApart says that results are in one entry with nothing else.
	ResultsApart bool

	// FirstCall is a member that the first call of an entry needs if it comes
	// from another format.
	FirstCall jsontext.Member

	// The members that programs may set, in the words of the API.
	OwnOfText, OwnOfCall, OwnOfResult, OwnOfTool []string

	// Part returns a part for one of another format as a role can say it, nil if
	// it cannot, and the paths of the members that it has besides those that were
	// read.
	Part func(role string, p Part) (part jsontext.Object, written []string)

	// Output returns what a result of another format says, and more members of
	// its part (default: its parts, or the text of its value).
	Output func(e *Encoder, i int, r ForeignResult) (value []byte, added jsontext.Object)

	// Store returns what a message has for a part, and Load the part again
	// (default: the part).
	Store func(p *TablePart) []byte
	Load  func(stored []byte) []byte

	// Neutral says that stored parts are in no format's words.
	Neutral bool

	// ToolsIn is the member that has the member tools, "" for the body itself.
	ToolsIn     string
	DecodeTool  func(element jsontext.Object) ([]Tool, bool)
	EncodeTools func([]Tool) [][]byte
}

// DecodeRequest adds the messages of a request.
func (t *Table) DecodeRequest(d *Decoder, body jsontext.Object) (Request, error) {
	settings := body.Without(t.Entries)
	for _, name := range t.Prompts {
		prompt := body.Get(name)
		if jsontext.IsNull(prompt) || t.PromptContent && string(prompt) == `""` { // some SDKs send it for none
			continue
		}
		if err := t.decodePrompt(d, body, name, prompt); err != nil {
			return Request{}, err
		}
		settings = settings.Without(name)
	}
	if only := body.Object(t.Entries); only != nil && t.Lone {
		err := t.decodeEntry(d, place{in: t.Entries}, body.Get(t.Entries), only)
		return t.splitTools(settings), fault.Under(jsontext.Path("$", t.Entries), err)
	}
	if err := body.Want(t.Entries, "array"); err != nil {
		return Request{}, err
	}
	err := body.EachObject(t.Entries, func(raw []byte, entry jsontext.Object) error {
		return t.decodeEntry(d, place{}, raw, entry)
	})
	return t.splitTools(settings), err
}

// splitTools is [SplitTools] for the member that has the tools.
func (t *Table) splitTools(settings jsontext.Object) Request {
	in := settings.Object(t.ToolsIn)
	if t.ToolsIn == "" || in == nil {
		return SplitTools(settings, t.DecodeTool)
	}
	r := SplitTools(in, t.DecodeTool)
	switch {
	case r.Tools == nil:
		r.Settings = settings
	case len(r.Settings) == 0:
		r.Settings = settings.Without(t.ToolsIn)
	default:
		r.Settings = settings.With(t.ToolsIn, r.Settings.JSON())
	}
	return r
}

// decodePrompt adds the system prompt.
func (t *Table) decodePrompt(d *Decoder, body jsontext.Object, name string, prompt []byte) error {
	kinds := []string{"object", "string"}
	if t.PromptContent {
		kinds = []string{"array"}
	}
	if t.PromptContent && t.Bare {
		kinds = append(kinds, "string")
	}
	if err := body.Want(name, kinds...); err != nil {
		return err
	}
	entry := body.Object(name)
	if t.PromptContent && t.Store != nil {
		entry = jsontext.Object{{Name: t.Content, Value: prompt}}
	}
	if entry != nil {
		return fault.Under(jsontext.Path("$", name), t.decodeEntry(d, place{in: name, isPrompt: true}, entry.JSON(), entry))
	}
	kept := jsontext.Object{}.WithString(keptPlace, name)
	if !t.PromptContent {
		kept = kept.With(keptBare, []byte("true"))
	}
	return fault.Under(jsontext.Path("$", name), d.AddText("system", prompt, kept))
}

// DecodeReply adds the messages of what the model said in a response. Some
// providers leave out its role.
func (t *Table) DecodeReply(d *Decoder, entry jsontext.Object) error {
	if jsontext.Kind(entry.Get("role")) != "string" {
		entry = entry.WithString("role", t.Model)
	}
	return t.decodeEntry(d, place{}, nil, entry)
}

// OwnMembers returns the members that programs may set.
func (t *Table) OwnMembers(typ string) []string {
	switch typ {
	case TypeText, TypeCall:
		return t.OwnOfText
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
	if t.ToolsIn != "" && r.Tools != nil {
		if err := r.Settings.Want(t.ToolsIn, "object", "null", "nothing"); err != nil {
			return nil, err
		}
		in, err := Request{Tools: r.Tools, Settings: r.Settings.Object(t.ToolsIn)}.Body(t.EncodeTools, nil)
		if err != nil {
			return nil, fault.Under(jsontext.Path("$", t.ToolsIn), err)
		}
		r.Settings, r.Tools = r.Settings.With(t.ToolsIn, in.JSON()), nil
	}
	return r.Body(t.EncodeTools, t.encodeMessages(e, msgs))
}

// The names of what a message keeps besides the difference.
const (
	keptPlace  = "in"
	keptBare   = "bare"
	keptLone   = "lone"
	keptJoined = "joined"
	keptRole   = "role"
	keptKind   = "kind"
	keptAs     = "as"
	keptPart   = "part"
)

// entryRole returns the role of an entry that has nothing but a message of this
// type and role.
func (t *Table) entryRole(typ, role string) string {
	switch {
	case typ == TypeResult:
	case role == "assistant", typ == TypeCall && !t.Lax:
		return t.Model
	case t.Lax && role != "user":
		return role
	}
	return t.User
}

// messageRole returns the role of a message for that of an entry.
func (t *Table) messageRole(role string) string {
	switch role {
	case t.Model:
		return "assistant"
	case t.User:
		return "user"
	}
	return role
}

// mayLackContent reports whether an entry may have no content: calls may be all
// that it has.
func (t *Table) mayLackContent() bool { return t.CallList != "" }

// isPrompt reports whether a place is that of the system prompt.
func (t *Table) isPrompt(in string) bool { return slices.Contains(t.Prompts, in) }

// TextPart returns the part of a text, which is a JSON string.
func (t *Table) TextPart(text []byte) jsontext.Object {
	part := make(jsontext.Object, 0, 2)
	if !t.Untyped {
		part = append(part, jsontext.Member{Name: "type", Value: []byte(`"text"`)})
	}
	return append(part, jsontext.Member{Name: "text", Value: text})
}
