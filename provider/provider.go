package provider

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/anthropic"
	"github.com/agentstate/state/provider/internal/chat"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/agentstate/state/provider/internal/gemini"
	"github.com/agentstate/state/provider/internal/responses"
	"github.com/agentstate/state/transcript"
)

// The formats of model providers.
var (
	// OpenAI is the format of Chat Completions, which many providers offer.
	OpenAI = &Format{"OpenAI", origin.OpenAI, transcript.OpenAI, chat.New()}
	// OpenAIResponses is the format of the Responses API.
	OpenAIResponses = &Format{"OpenAIResponses", origin.OpenAIResponses, transcript.OpenAIResponses, responses.Format{}}
	// Anthropic is the format of the Messages API.
	Anthropic = &Format{"Anthropic", origin.Anthropic, transcript.Anthropic, anthropic.New()}
	// Gemini is the format of generateContent and streamGenerateContent.
	Gemini = &Format{"Gemini", origin.Gemini, transcript.Gemini, gemini.New()}
)

// partReaders read a part of a message, in the notation of each format. Those of
// MCP come last: its images have the type of Anthropic's.
var partReaders = []codec.PartReader{
	chat.ReadPart, responses.ReadPart, anthropic.ReadPart, gemini.ReadPart, codec.ReadMCPPart,
}

// Format is the JSON format of a provider's API. Its methods are safe for
// concurrent use.
type Format struct {
	name    string
	mark    string // the member of a message that belongs to the format
	profile transcript.Profile
	codec   codec.Format
}

// String returns the name of the format.
func (f *Format) String() string { return f.name }

// Profile returns what the provider demands of a conversation in the format, for
// transcript.Check and transcript.Repair.
func (f *Format) Profile() transcript.Profile { return f.profile }

// Request is a conversation and the settings for the model's answer.
type Request struct {
	// Messages is the conversation, including the system prompt.
	Messages []state.Message

	// Tools are the tools that the model may call.
	Tools []Tool

	// Settings is an object of the other members: model, temperature and so on.
	// They use the names of one format.
	Settings state.JSON

	// Pictures sends the pictures in results of tools in a text of the user behind
	// the results, where the format has no place for them in results: that is Chat
	// Completions. Without it, a text such as "[image left out]" stands for them. The
	// model must read pictures; see [transcript.Profile].
	Pictures bool
}

// Continued reports whether the request continues a conversation whose
// beginning the provider holds, by previous_response_id or conversation. Its
// first messages may then answer calls that are not in it.
func (r Request) Continued() bool {
	settings, _ := jsontext.Members([]byte(r.Settings)) // none if it is not an object
	return isContinued(settings)
}

func isContinued(settings jsontext.Object) bool {
	return !jsontext.IsNull(settings.Get("previous_response_id")) ||
		!jsontext.IsNull(settings.Get("conversation"))
}

// Profile returns the profile p with the options that the settings of the
// request ask for: [transcript.Profile.Continued] if [Request.Continued], and
// [transcript.Profile.Thinking] if thinking is of the type "enabled". It does not
// know models: NoPrefill is the caller's to set.
func (r Request) Profile(p transcript.Profile) transcript.Profile {
	settings, _ := jsontext.Members([]byte(r.Settings)) // none if it is not an object
	p.Continued = p.Continued || isContinued(settings)
	if settings.Object("thinking").String("type") == "enabled" {
		p.Thinking = true
	}
	return p
}

// Omission is something that a format cannot express: a message, a tool, a part,
// or a member of one of these or of a call. A member that says nothing, such as
// null, is not reported, and neither are the members id, type, object, index,
// status, model and stop_reason, which mean nothing to another provider.
type Omission struct {
	Message int    // the index of the message, -1 for a tool
	What    string // such as "part of type thinking" or "member cache_control of part 0"
}

func (o Omission) String() string {
	if o.Message < 0 {
		return o.What
	}
	return fmt.Sprintf("message %d: %s", o.Message, o.What)
}

// DecodeRequest reads the body of a request. It does not retain body. JSON of a
// kind that the format does not allow in its place is an [Error]. Unknown
// members and types are kept.
func (f *Format) DecodeRequest(body []byte) (Request, error) {
	members, err := f.readObject(body)
	if err != nil {
		return Request{}, err
	}
	d := codec.NewDecoder(f.mark)
	request, err := f.codec.DecodeRequest(d, members)
	if err != nil {
		return Request{}, f.wrapError(err)
	}
	return Request{
		Messages: d.Messages, Tools: f.toolsOf(request.Tools), Settings: state.JSON(request.Settings.JSON()),
	}, nil
}

// EncodeRequest returns the body of a request: the conversation, the tools, and
// the settings, which must use the names of the format. What the format cannot
// express is left out and reported. A short text, such as "[image left out]",
// stands for a message or a result of which nothing else would be left, so that
// roles and order stay. Only reasoning of another provider leaves nothing. Of large
// results, the body has what [transcript.Shown] returns.
func (f *Format) EncodeRequest(r Request) (body []byte, omitted []Omission, err error) {
	settings, err := f.readMembers(r.Settings)
	if err != nil {
		return nil, nil, within("settings", err)
	}
	body, omitted, _, err = f.encode(r, settings, nil)
	return body, omitted, err
}

// checkMessages returns an error if there is a message missing. The first ones are known.
func (f *Format) checkMessages(msgs []state.Message, known int) error {
	for i := known; i < len(msgs); i++ {
		if m := msgs[i]; m == nil || m.Raw() == "" {
			return f.newError(jsontext.Index("$", i), "want a message, got none")
		}
	}
	return nil
}

// newEncoder returns an encoder for messages. It has reported the members that
// the format does not have.
func newEncoder(
	mark string, msgs []state.Message, entries codec.Entries, left *omissions, own func(typ string) []string,
) *codec.Encoder {
	e := &codec.Encoder{Mark: mark, PartReaders: partReaders, Entries: entries}
	e.Omit = func(i int, what string) { left.add(e.Entries.Place(i), what) }
	for i, m := range msgs {
		e.OmitMembers(i, m, own(m.Type()), own(codec.TypeOneCall))
	}
	return e
}

// omissions are what an encoder leaves out. Members come before parts.
type omissions []Omission

func (o *omissions) add(message int, what string) { *o = append(*o, Omission{message, what}) }

// sorted returns the omissions in the order of the messages.
func (o omissions) sorted() []Omission {
	slices.SortStableFunc(o, func(a, b Omission) int { return a.Message - b.Message })
	return o
}

// DecodeResponse reads the body of a response. Output is what the model said,
// with its calls, of the first choice or candidate if there are several. Raw is
// body, byte for byte. ID, CreatedAt, Usage and StopWord are set if the response
// has them. Stop says what StopWord means, and is [state.StopUnknown] for a word
// that neither the format nor another one of this package has.
// The caller sets the other fields. A body that reports a failure is a
// [ResponseError]. As in encoding/json, U+FFFD stands for a half of a surrogate pair
// that is alone, and for a byte that is not UTF-8: nobody can mend an answer.
func (f *Format) DecodeResponse(body []byte) (state.InferenceResult, error) {
	result := state.InferenceResult{Raw: string(body)}
	members, err := f.readResponse(body)
	if err != nil {
		return result, err
	}
	err = f.setResponse(&result, members)
	return result, err
}

// setResponse sets what a response says.
func (f *Format) setResponse(result *state.InferenceResult, body jsontext.Object) error {
	if err := f.codec.Failure(body); err != nil {
		return f.wrapError(err)
	}
	d := codec.NewDecoder(f.mark)
	response, err := f.codec.DecodeResponse(d, body)
	if err != nil {
		return f.wrapError(err)
	}
	d.SetStopReason(response.Stop)
	d.Keep(response.Keep)
	result.ID, result.Output, result.CreatedAt = response.ID, d.Messages, response.Created
	result.Stop, result.StopWord = response.StopOf(d.Messages)
	var said codec.Summary
	f.codec.Summarize(&said, body)
	result.Usage = said.Usage
	return nil
}

// readResponse is readObject for a response: an answer that has been paid for is
// not lost for one character.
func (f *Format) readResponse(text []byte) (jsontext.Object, error) {
	members, err := f.readObject(text)
	if err == nil || jsontext.Check(text, jsontext.Limits{Depth: codec.BodyDepth, Halves: true}) != nil {
		return members, err
	}
	return f.readObject(jsontext.Mended(text))
}

// readObject checks a text and returns its members.
func (f *Format) readObject(text []byte) (jsontext.Object, error) {
	if err := jsontext.Check(text, jsontext.Limits{Depth: codec.BodyDepth}); err != nil {
		err = f.wrapError(err)
		var wrong *Error
		if errors.As(err, &wrong) {
			wrong.Path = knownPath(wrong.Path)
		}
		return nil, err
	}
	members, err := jsontext.Members(text)
	if err != nil {
		return nil, f.wrapError(err)
	}
	return members, nil
}

// inTool returns an error of a tool of a request.
func inTool(i int, err error) error { return within(jsontext.Index("tools", i), err) }

// within returns an error whose path begins in a part of a request.
func within(part string, err error) error {
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.Path = part + ": " + wrong.Path
	}
	return err
}
