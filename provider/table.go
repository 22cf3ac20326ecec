package provider

import (
	"errors"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/agentstate/state/transcript"
)

// New returns a format for an API that this package does not know. Its messages
// keep what they need for the way back under the name: two formats of one name
// are the same format to them. profile is what the API demands of a
// conversation, the zero Profile for what all have in common. Otherwise the
// Format of its Rules is the name.
//
// Package providertest tests a table.
func New(name string, profile transcript.Profile, t Table) *Format {
	mark := origin.ForeignMark(name)
	return &Format{name, mark, profile, newForeign(mark, t)}
}

// A Table says in which words an API has a conversation: entries that have a role
// and content, whose parts are texts, calls, results and others. It does not have
// to keep what it does not know: the format keeps the difference between what
// was sent and what it writes itself in the messages, and restores it when it
// encodes the messages again, unless they say something else by then.
//
// The functions get JSON that was checked as [state.JSON.Valid] does: a body and
// an event are objects, and so are parts and tools. They must be pure and safe
// for concurrent use. An error becomes an [Error], with its text as the problem,
// and must not contain values.
type Table struct {
	Prompt  string // the member with the system prompt, which is content; "" if prompts are entries
	Entries string // the member with the conversation
	Content string // the member of an entry with what it says
	Model   string // the role of what the model says; everything else is of the role "user"
	Bare    bool   // whether content may be a text
	Typed   bool   // whether a part has a type, such as "text"; otherwise its members say what it is

	// ToolsIn is the member that has the member tools, "" for the body itself.
	ToolsIn string

	// Calls is the member of an entry with its calls, "" if calls are parts.
	Calls string

	Call, Result Word

	// ReadPart reads a part that is not a text, a call or a result. A part that
	// it does not know comes back as it was. It is reported under the type or
	// the first member.
	ReadPart func(part state.JSON) (Part, bool)

	// WritePart returns an image, a sound, a file or the model's thinking as a
	// part of what a role says, or of a result for RoleTool. The role is "" for
	// a part of the API itself. It returns false for a part that the API cannot
	// express there.
	WritePart func(role string, p Part) (state.JSON, bool)

	// ReadTool returns the name, the description and the schema of an element of
	// the tools, and false for a tool that only the provider has. WriteTool
	// returns the element for a tool.
	ReadTool  func(element state.JSON) (Tool, bool)
	WriteTool func(t Tool) state.JSON

	// ReadResponse reads the body of a response. It returns a [ResponseError] for
	// a failure that the provider reports.
	ReadResponse func(body state.JSON) (Response, error)

	// Stops says what the words in StopReason mean that are not words of the formats
	// of this package. Another word is [state.StopUnknown].
	Stops map[string]state.Stop

	// Summarize sets what a response, or an event of a stream, says of itself.
	// What it does not say stays as it is. It returns false for a body that is
	// neither.
	Summarize func(s *Summary, body state.JSON) bool

	// NewAssembler returns an assembler for one streamed response. It calls emit
	// with each piece.
	NewAssembler func(emit func(Delta)) Assembler
}

// Word is how an API says a call or a result.
type Word struct {
	Type string // of the part, if parts have types
	In   string // the member with the call or the result, "" for the part itself
	Role string // of the entry, if a result is an entry of its own

	ID, Name, Value string // members, Name "" for a result without

	// Text says that the value of a call is the JSON of its input as a text.
	Text bool

	// Parts says that the value of a result is content. JSON is the member of a
	// part of it that has a value of another kind, "" if its text is written.
	Parts bool
	JSON  string

	// Failed is the member of a result that is an error, and FailedIs its text,
	// "" for true.
	Failed, FailedIs string

	// Hosted is the type of a call that the provider itself runs. It is kept as it
	// is, as is a call of a user or a result of the model.
	Hosted string
}

// Response is a response as a [Table] reads it.
type Response struct {
	ID         string
	Created    time.Time
	StopReason string     // the provider's word for how the answer ended; empty if unknown
	Entry      state.JSON // what the model said, empty or null if it said nothing
}

// Assembler puts the events of one streamed response together.
type Assembler interface {
	// Add takes the next event. It returns a [ResponseError] for a failure that
	// the provider reports.
	Add(event state.JSON) error

	// Result returns the response so far as if it had not been streamed, and
	// reports whether its end has been seen. The body is empty if nothing has
	// come.
	Result() (body state.JSON, complete bool)

	// Ended reports whether nothing of the response can follow.
	Ended() bool
}

// foreign is the format of a Table.
type foreign struct {
	*codec.Table
	t    Table
	mark string
}

func newForeign(mark string, t Table) *foreign {
	f := &foreign{t: t, mark: mark}
	f.Table = &codec.Table{
		Entries: t.Entries, Content: t.Content, Bare: t.Bare, PromptContent: true,
		Model: t.Model, User: "user", System: "user",
		Untyped: !t.Typed, CallList: t.Calls, ToolsIn: t.ToolsIn,
		Calls: []codec.Word{t.Call.word()}, Results: []codec.Word{t.Result.word()},
		Neutral: true, Store: f.store, Load: f.load, Part: f.part,
		DecodeTool: f.decodeTool, EncodeTools: f.encodeTools,
	}
	if f.Prompts = []string{t.Prompt}; t.Prompt == "" {
		f.Prompts, f.System = nil, "system"
	}
	call, result := &f.Table.Calls[0], &f.Results[0]
	call.ForRole, result.ForRole = roleAssistant, "user"
	call.Form = codec.ObjectForm
	if t.Call.Text {
		call.Form = codec.ArgumentsForm
	}
	result.Form = codec.Form{Adopt: adoptText}
	if t.Result.Parts {
		result.Form = codec.Form{Read: f.readContent, Write: f.writeContent, Adopt: f.adoptContent}
	}
	return f
}

func (w Word) word() codec.Word {
	word := codec.Word{
		Type: w.Type, Role: w.Role, KeyID: w.ID, KeyName: w.Name, KeyValue: w.Value,
		KeyFailed: w.Failed, FailedText: w.FailedIs, HostedType: w.Hosted,
	}
	if w.In != "" {
		word.In = []string{w.In}
	}
	return word
}

// adoptText returns the value of a result of another format as a text, unless it
// is parts.
func adoptText(value []byte) []byte {
	switch jsontext.Kind(value) {
	case "string", "array":
		return value
	case "nothing", "null":
		return []byte(`""`)
	}
	return jsontext.AppendQuote(nil, string(value))
}

// Failure returns nil: the table reports failures.
func (*foreign) Failure(jsontext.Object) error { return nil }

func (f *foreign) HasForm(body jsontext.Object) bool {
	return f.t.Summarize(new(Summary), state.JSON(body.JSON()))
}

func (f *foreign) Summarize(to *codec.Summary, body jsontext.Object) {
	said := Summary{Model: to.Model, ID: to.ID, StopReason: to.StopReason, Usage: to.Usage}
	f.t.Summarize(&said, state.JSON(body.JSON()))
	*to = codec.Summary{Model: said.Model, ID: said.ID, StopReason: codec.StopName(said.StopReason), Usage: said.Usage}
}

func (f *foreign) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r, err := f.t.ReadResponse(state.JSON(body.JSON()))
	if err != nil {
		return codec.Response{}, err
	}
	response := codec.Response{ID: r.ID, Stops: f.t.Stops, Created: r.Created}
	if r.StopReason != "" {
		response.Stop = jsontext.AppendQuote(nil, r.StopReason)
	}
	if r.Entry == "null" {
		return response, nil
	}
	entry, err := readText(r.Entry, "$.entry")
	if entry == nil || err != nil {
		return response, err
	}
	return response, fault.Under("$.entry", f.DecodeReply(d, entry))
}

func (f *foreign) IsPiece(string, []byte) bool { return true }

func (f *foreign) NewAssembler(emit func(codec.Delta)) codec.Assembler {
	return foreignAssembler{f.t.NewAssembler(func(d Delta) {
		emit(codec.Delta{Kind: codec.DeltaKind(d.Kind), Text: d.Text, Call: d.Call, ID: d.CallID, Name: d.Name})
	})}
}

type foreignAssembler struct{ Assembler }

func (a foreignAssembler) Add(event jsontext.Object) error {
	return a.Assembler.Add(state.JSON(event.JSON()))
}

func (a foreignAssembler) Result() (jsontext.Object, bool) {
	body, complete := a.Assembler.Result()
	members, err := readText(body, "$")
	if members == nil || err != nil { // as if nothing had come
		return nil, false
	}
	return members, complete
}

// decodeTool reads an element that offers a tool. The tool keeps the difference.
func (f *foreign) decodeTool(element jsontext.Object) ([]codec.Tool, bool) {
	t, ok := f.t.ReadTool(state.JSON(element.JSON()))
	tool := codec.Tool{Name: t.Name, Description: t.Description, Schema: codec.ValueOrNil(t.Schema)}
	if kind := jsontext.Kind(tool.Schema); !ok || t.Name == "" || kind != "nothing" && kind != "object" {
		item := codec.ItemTool(element, element.JSON())
		item.Name = t.Name
		return []codec.Tool{item}, true
	}
	tool.Kept = codec.Difference(element, f.plainTool(tool))
	return []codec.Tool{tool}, true
}

func (f *foreign) plainTool(t codec.Tool) jsontext.Object {
	plain, _ := readText(f.t.WriteTool(Tool{Name: t.Name, Description: t.Description, Schema: state.JSON(t.Schema)}), "$")
	return plain
}

// encodeTools writes tools. What was kept of a tool holds as long as it is the
// tool that was read.
func (f *foreign) encodeTools(tools []codec.Tool) [][]byte {
	return codec.EncodeEachTool(tools, func(t codec.Tool) jsontext.Object {
		plain := f.plainTool(t)
		restored := codec.Restore(plain, t.Kept)
		again, _ := f.t.ReadTool(state.JSON(restored.JSON()))
		if again.Description != t.Description || !codec.EqualJSON([]byte(again.Schema), t.Schema) {
			return plain
		}
		return restored
	})
}

// readText returns the members of an object that a table has made, none of an
// empty text.
func readText(text state.JSON, path string) (jsontext.Object, error) {
	if text == "" {
		return nil, nil
	}
	if err := jsontext.Check([]byte(text), jsontext.Limits{Depth: codec.BodyDepth}); err != nil {
		return nil, fault.Under(path, err)
	}
	members, err := jsontext.Members([]byte(text))
	return members, fault.Under(path, err)
}

// ownError returns the error of this package for one of a table or a
// [MessageCodec].
func (f *Format) ownError(err error) error {
	var failure *ResponseError
	var wrong *Error
	switch {
	case errors.As(err, &failure):
		return &ResponseError{f.name, failure.Code, failure.Message}
	case errors.As(err, &wrong):
		return f.newError(wrong.Path, wrong.Problem)
	}
	return f.newError("$", err.Error())
}
