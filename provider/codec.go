package provider

import (
	"strings"
	"time"

	"github.com/agentstate/state"
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
// Package providertest tests a codec.
func New(name string, profile transcript.Profile, c Codec) *Format {
	mark := origin.ForeignMark(name)
	return &Format{name, mark, profile, foreign{c, mark}}
}

// Codec translates between the JSON of an API and entries. It does not have to
// keep what an entry cannot express: the format encodes each entry that was
// decoded, compares it with what was sent, and keeps the difference in the
// messages. It restores the difference when it encodes the messages again,
// unless they say something else by then.
//
// Every body and event is an object, checked as [state.JSON.Valid] does. The
// functions must be pure and safe for concurrent use. An error becomes an
// [Error], with its text as the problem, and must not contain values. An Error
// keeps its Path and Problem. A decoder of a response or a stream returns a
// [ResponseError] for a failure that the provider reports. What a codec returns
// is checked: a body that is not an object, or an entry without parts and JSON,
// is an Error too, whose path begins at Body.
type Codec interface {
	// DecodeRequest splits the body of a request into entries, tools and
	// settings.
	DecodeRequest(body state.JSON) (Body, error)

	// EncodeRequest returns the body of a request. JSON is set in each entry and
	// contains its parts. The members of Settings must all be in the body.
	EncodeRequest(b Body) (state.JSON, error)

	// EncodeEntry returns the elements of the API's conversation for an entry:
	// one for an entry of a role and of parts that DecodeRequest returns.
	// Entries that are made of the messages of others may have parts that the
	// API has in several elements. JSON is set in each part that is not bare,
	// and may have members that the codec does not know. It returns none for an
	// entry that the API cannot express.
	EncodeEntry(e Entry) []state.JSON

	// EncodePart returns the JSON of a part of an entry of a role, or of a result
	// for RoleTool. It returns false for a part that the API cannot express
	// there. A part without JSON of its own may have any, such as null.
	EncodePart(role string, p Part) (state.JSON, bool)

	// DecodeTool returns the name, the description and the schema of an element
	// of Body.Tools, and false for a tool that only the provider has.
	DecodeTool(element state.JSON) (Tool, bool)

	// EncodeTool returns the element for a tool.
	EncodeTool(t Tool) state.JSON

	// DecodeResponse reads the body of a response.
	DecodeResponse(body state.JSON) (Response, error)

	// Summarize sets what a response, or an event of a stream, says of itself.
	// What it does not say stays as it is. It returns false for a body that is
	// neither.
	Summarize(s *Summary, body state.JSON) bool

	// NewAssembler returns an assembler for one streamed response. It calls emit
	// with each piece.
	NewAssembler(emit func(Delta)) Assembler
}

// Assembler puts the events of one streamed response together.
type Assembler interface {
	// Add takes the next event.
	Add(event state.JSON) error

	// Result returns the response so far as if it had not been streamed, and
	// reports whether its end has been seen. The body is empty if nothing has
	// come.
	Result() (body state.JSON, complete bool)

	// Ended reports whether nothing of the response can follow.
	Ended() bool
}

// Body is a request as a [Codec] reads and writes it.
type Body struct {
	Entries  []Entry      // the conversation with the system prompt, in order
	Tools    []state.JSON // the elements that offer tools, objects
	Settings state.JSON   // an object of the other members
}

// Response is a response as a [Codec] reads it.
type Response struct {
	ID         string
	Created    time.Time
	StopReason string  // "stop", "tool", "length" or the provider's word; empty if unknown
	Entries    []Entry // what the model said
}

// RoleTool is the role of an entry with results of a conversation that did not
// come from the API.
const RoleTool = origin.RoleTool

// Entry is an element of the conversation of an API: what one participant says
// at once. Each run of its parts that are neither calls nor results becomes a
// text message, each run of calls a message, and each result a message.
type Entry struct {
	// Role is "system", "user", "assistant" or another role of the API. The
	// roles "developer" and RoleTool come from other APIs.
	Role string

	Parts []Part

	// Name is that of the participant, Reasoning the model's thinking as a member
	// of the entry, and StopReason why the model stopped, if the format is a
	// [MessageFormat]. A [Codec] leaves them empty.
	Name, Reasoning, StopReason string

	// Extra is what else a message of a framework says. A [Codec] has JSON
	// instead.
	Extra Extra

	// JSON is the element of the conversation. The system prompt of an API that
	// has it elsewhere may be of any kind, others are objects. An element
	// without parts is kept as a whole.
	JSON state.JSON
}

// Part is a piece of an entry.
type Part struct {
	Kind PartKind

	// Text is a text, or the model's thinking. A text that is the content of an
	// entry has no JSON of its own: it is bare.
	Text string

	// An image, a sound or a file has data or a URL. MIME and the name of a file
	// are empty if unknown. PartOther has a name for reports, such as the type.
	MIME string
	Data string // base64
	URL  string
	Name string // also that of the tool of a call or a result

	// A call has an id and an input, and a result the id of its call. The result
	// is a value, usually a text, unless it has parts.
	ID      string
	Input   state.JSON
	Content state.JSON
	Parts   []Part
	IsError bool

	// Extra is what else a part of a message of a framework says. A [Codec] has
	// JSON instead.
	Extra Extra

	// JSON is the part in the words of the API, empty for a part that is not a
	// value of its own there. A [MessageCodec] sets it for PartOther only.
	JSON state.JSON

	spaced bool // whether Input has space between its tokens
}

// PartKind says what a [Part] is.
type PartKind uint8

// The kinds of parts.
const (
	PartOther    PartKind = iota // what only the API can express: its JSON
	PartText                     // a text
	PartThinking                 // the model's thinking, which only its API is sent
	PartImage
	PartAudio
	PartFile
	PartCall   // a call of a tool of the client
	PartResult // the result of such a call
)

// DataURL returns the URL of an image, a sound or a file, which is a data URL if
// the part has data.
func (p Part) DataURL() string { return codec.Part{MIME: p.MIME, Data: p.Data, URL: p.URL}.DataURL() }

// ContentText returns what a result says as a text: its content, or its parts
// that are texts, each in a line.
func (p Part) ContentText() string {
	if p.Parts == nil {
		return p.Content.Text()
	}
	var texts []string
	for _, part := range p.Parts {
		if part.Kind == PartText {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}
