// Package provider reads and writes the JSON of model providers. It turns the
// conversation of a request into messages, a response into an
// [state.InferenceResult], and messages into the conversation of a request, for
// the provider that they came from or for another.
//
//	request, err := provider.OpenAI.DecodeRequest(body)
//	…
//	body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{
//		Messages: request.Messages,
//		Settings: `{"model":"…","max_tokens":1024}`,
//	})
//
// The package takes and returns bodies. It has no client and needs no SDK.
//
// # Entries and messages
//
// Text and parts that a participant wrote become a [state.TextMessage], in the
// form that the provider sent. Images and thinking are parts. Calls and results
// become a [state.ToolCallMessage] and a [state.ToolResultMessage]. An entry of
// another type becomes a [state.UnknownMessage] that holds the entry. One entry
// of the provider's conversation may thus become several messages, in its
// order, and these become one entry again.
//
// A message keeps the rest of its entry in a member named after the format:
// unknown members, null as opposed to a missing member, other spellings. The
// same format gets all of it back: a request that is decoded and encoded is
// equal as JSON, with numbers spelled as they were. Another format gets what it
// can express, and each [Omission] reports something that it cannot express.
//
// # Validity
//
// An encoder does not check the conversation. The provider may reject a
// conversation that was trimmed, interrupted or carried over from another
// provider. Package transcript finds and repairs what the provider would
// reject.
package provider

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/anthropic"
	"github.com/agentstate/state/provider/internal/chat"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/agentstate/state/provider/internal/gemini"
	"github.com/agentstate/state/provider/internal/responses"
)

// The formats of model providers.
var (
	// OpenAI is the format of Chat Completions, which many providers offer.
	OpenAI = &Format{"OpenAI", origin.OpenAI, chat.Format{}}
	// OpenAIResponses is the format of the Responses API.
	OpenAIResponses = &Format{"OpenAIResponses", origin.OpenAIResponses, responses.Format{}}
	// Anthropic is the format of the Messages API.
	Anthropic = &Format{"Anthropic", origin.Anthropic, anthropic.Format{}}
	// Gemini is the format of generateContent and streamGenerateContent.
	Gemini = &Format{"Gemini", origin.Gemini, gemini.Format{}}
)

// partReaders read a part of a message, in the notation of each format.
var partReaders = []codec.PartReader{chat.ReadPart, responses.ReadPart, anthropic.ReadPart, gemini.ReadPart}

// Format is the JSON format of a provider's API. Its methods are safe for
// concurrent use.
type Format struct {
	name  string
	mark  string // the member of a message that belongs to the format
	codec codec.Format
}

// String returns the name of the format.
func (f *Format) String() string { return f.name }

// Request is a conversation and the settings for the model's answer.
type Request struct {
	// Messages is the conversation, including the system prompt.
	Messages []state.Message

	// Settings is an object of the other members: model, tools, temperature and
	// so on. They use the names of one format.
	Settings state.JSON
}

// Continued reports whether the request continues a conversation whose
// beginning the provider holds, by previous_response_id or conversation. Its
// first messages may then answer calls that are not in it.
func (r Request) Continued() bool {
	settings, _ := jsontext.Members([]byte(r.Settings)) // none if it is not an object
	return !jsontext.IsNull(settings.Get("previous_response_id")) ||
		!jsontext.IsNull(settings.Get("conversation"))
}

// Omission is a part of a message that a format cannot express.
type Omission struct {
	Message int    // the index of the message
	What    string // such as "part of type thinking"
}

func (o Omission) String() string { return fmt.Sprintf("message %d: %s", o.Message, o.What) }

// DecodeRequest reads the body of a request. It does not retain body. JSON of a
// kind that the format does not allow in its place is an [Error]. Unknown
// members and types are kept.
func (f *Format) DecodeRequest(body []byte) (Request, error) {
	members, err := f.readObject(body)
	if err != nil {
		return Request{}, err
	}
	d := codec.NewDecoder(f.mark)
	settings, err := f.codec.DecodeRequest(d, members)
	if err != nil {
		return Request{}, f.wrapError(err)
	}
	return Request{d.Messages, state.JSON(settings.JSON())}, nil
}

// EncodeRequest returns the body of a request: the conversation, and the
// settings, which must use the names of the format. What the format cannot
// express is left out and reported.
func (f *Format) EncodeRequest(r Request) (body []byte, omitted []Omission, err error) {
	var settings jsontext.Object
	if r.Settings != "" {
		if settings, err = f.readObject([]byte(r.Settings)); err != nil {
			return nil, nil, inSettings(err)
		}
	}
	for i, m := range r.Messages {
		if m == nil || m.Raw() == "" {
			return nil, nil, f.newError(jsontext.Index("$", i), "want a message, got none")
		}
	}
	omit := func(message int, what string) { omitted = append(omitted, Omission{message, what}) }
	e := codec.Encoder{Mark: f.mark, Omit: omit, PartReaders: partReaders}
	for _, m := range f.codec.EncodeMessages(&e, r.Messages) {
		switch string(settings.Get(m.Name)) {
		case "", "null", "[]": // as in a request that had no messages yet
			settings = settings.With(m.Name, m.Value)
		default:
			path := jsontext.Path("$", m.Name)
			return nil, nil, f.newError(path, "is in the settings and is also made of the messages")
		}
	}
	return settings.JSON(), omitted, nil
}

// DecodeResponse reads the body of a response. Output is what the model said,
// with its calls, of the first choice or candidate if there are several. Raw is
// body, byte for byte. ID and CreatedAt are set if the response has them. The
// caller sets the other fields. A body that reports a failure is a
// [ResponseError].
func (f *Format) DecodeResponse(body []byte) (state.InferenceResult, error) {
	result := state.InferenceResult{Raw: string(body)}
	members, err := f.readObject(body)
	if err != nil {
		return result, err
	}
	err = f.setResponse(&result, members)
	return result, err
}

// setResponse sets what a response says.
func (f *Format) setResponse(result *state.InferenceResult, body jsontext.Object) error {
	if err := reportedFailure(body); err != nil {
		return f.wrapError(err)
	}
	d := codec.NewDecoder(f.mark)
	response, err := f.codec.DecodeResponse(d, body)
	if err != nil {
		return f.wrapError(err)
	}
	d.SetStopReason(response.Stop)
	result.ID, result.Output, result.CreatedAt = response.ID, d.Messages, response.Created
	return nil
}

// reportedFailure returns the error of a body that has an error and no output.
func reportedFailure(body jsontext.Object) error {
	for _, name := range []string{"choices", "output", "content", "candidates"} {
		if !jsontext.IsNull(body.Get(name)) {
			return nil
		}
	}
	return codec.ReportedFailure(body)
}

// readObject checks a text and returns its members.
func (f *Format) readObject(text []byte) (jsontext.Object, error) {
	err := jsontext.Check(text, jsontext.Limits{Depth: codec.BodyDepth})
	if err != nil {
		return nil, f.wrapError(err)
	}
	members, err := jsontext.Members(text)
	if err != nil {
		return nil, f.wrapError(err)
	}
	return members, nil
}

// inSettings returns an error of the settings of a request.
func inSettings(err error) error {
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.Path = "settings: " + wrong.Path
	}
	return err
}
