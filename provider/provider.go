// Package provider reads and writes the JSON of model providers: what a request
// says of the conversation becomes messages, a response becomes an
// [state.InferenceResult], and messages become the conversation of a request,
// for the provider they came from or for another.
//
//	request, err := provider.OpenAI.DecodeRequest(body)
//	…
//	body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{
//		Messages: request.Messages,
//		Settings: `{"model":"…","max_tokens":1024}`,
//	})
//
// There is no client here and no SDK: the package takes and returns bodies.
//
// # What becomes of what
//
// What anybody says becomes a [state.TextMessage], whose content is text or
// parts, images and thinking among them, as the provider sent them. Calls and
// results become a [state.ToolCallMessage] and [state.ToolResultMessage] each.
// An entry of another type becomes a [state.UnknownMessage] that holds it
// whole. So one entry of the provider's conversation may become several
// messages, in its order, and these become one entry again.
//
// A message also holds, in a member named after the format, what of its entry
// has no place in it: unknown members, null apart from missing, another
// spelling. The same format gets all of it back: decoded and encoded, a request
// is equal as JSON, and numbers are spelled as they were. Another format gets
// what it can express, and [Omission] tells of the rest.
//
// # What a provider accepts
//
// An encoder does not check. A conversation that was trimmed, broken off or
// carried over may be one that the provider refuses: package transcript tells,
// and repairs it.
package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// The formats.
var (
	// OpenAI is that of Chat Completions, by OpenAI and many others.
	OpenAI = &Format{"OpenAI", origin.OpenAI, openAI{}}
	// OpenAIResponses is that of the Responses API.
	OpenAIResponses = &Format{"OpenAIResponses", origin.OpenAIResponses, openAIResponses{}}
	// Anthropic is that of the Messages API.
	Anthropic = &Format{"Anthropic", origin.Anthropic, anthropic{}}
	// Gemini is that of generateContent and streamGenerateContent.
	Gemini = &Format{"Gemini", origin.Gemini, gemini{}}
)

// Format is the JSON format of a provider's API. Its methods are safe for
// concurrent use.
type Format struct {
	name  string
	mark  string // the member of a message that is the format's own
	codec codec
}

// codec is what differs between the formats.
type codec interface {
	// request adds the messages of a request and returns its other members.
	request(d *decoder, body jsontext.Object) (settings jsontext.Object, err error)

	// conversation returns the members of a request that hold the messages.
	conversation(e *encoder, msgs []state.Message) (jsontext.Object, error)

	// response adds the messages of a response. It returns the identifier, the
	// reason why the model stopped, as JSON, and the time in Unix seconds, as
	// far as the response has them.
	response(d *decoder, body jsontext.Object) (id string, stop []byte, created int64, err error)

	// assemble returns what puts the events of a stream together.
	assemble() assembler
}

// String returns the name of the format.
func (f *Format) String() string { return f.name }

// Request is what a request consists of.
type Request struct {
	// Messages is the conversation, what the system says at its beginning
	// included.
	Messages []state.Message

	// Settings is an object of the other members as they are: model, tools,
	// temperature and so on. They are in the words of one format.
	Settings state.JSON
}

// Continued reports whether the request goes on with a conversation whose
// beginning the provider holds, by previous_response_id or conversation. Its
// first messages may then answer calls that are not in it.
func (r Request) Continued() bool {
	settings, _ := jsontext.Members([]byte(r.Settings)) // none if it is no object
	for _, m := range settings {
		if (m.Name == "previous_response_id" || m.Name == "conversation") && string(m.Value) != "null" {
			return true
		}
	}
	return false
}

// Omission says what of a message a format cannot express.
type Omission struct {
	Message int    // its place
	What    string // such as "part of type thinking"
}

func (o Omission) String() string { return fmt.Sprintf("message %d: %s", o.Message, o.What) }

// Error reports JSON that is not what the format has in its place. It is
// [state.ErrWrongType], or [state.ErrLimitExceeded] for what is too deep or too large. It
// never holds a value.
type Error struct {
	Format  string // the format's name
	Path    string // where, as in $.messages[3].content
	Problem string

	cause error
}

func (e *Error) Error() string {
	return "provider: " + e.Format + ": " + e.Path + ": " + e.Problem
}

// Unwrap returns [state.ErrWrongType] or [state.ErrLimitExceeded].
func (e *Error) Unwrap() error { return e.cause }

// ResponseError is a body with which the provider refused the request. The
// provider's text is in Message only, since it may quote anything.
type ResponseError struct {
	Format  string // the format's name
	Code    string // the provider's type or code of the error, such as "invalid_request_error"
	Message string
}

func (e *ResponseError) Error() string {
	return fmt.Sprintf("provider: %s: the response is an error of type %.60q", e.Format, e.Code)
}

const (
	wireDepth  = 56 // of a body, whose messages add levels of their own up to 64
	inputDepth = 56 // of arguments that are written as a string
)

// DecodeRequest reads the body of a request. It does not retain body. JSON that
// the format does not have in that place is an [Error] which names the path;
// what is unknown is none and is kept.
func (f *Format) DecodeRequest(body []byte) (Request, error) {
	members, err := f.object(body)
	if err != nil {
		return Request{}, err
	}
	d := decoder{format: f}
	settings, err := f.codec.request(&d, members)
	if err != nil {
		return Request{}, f.located(err)
	}
	return Request{d.msgs, state.JSON(settings.JSON())}, nil
}

// EncodeRequest returns the body of a request: the conversation, and the
// settings, which have to be those of the format. What it cannot express is left
// out, and reported.
func (f *Format) EncodeRequest(r Request) (body []byte, omitted []Omission, err error) {
	var settings jsontext.Object
	if r.Settings != "" {
		if settings, err = f.object([]byte(r.Settings)); err != nil {
			var bad *Error
			if errors.As(err, &bad) {
				bad.Path = "settings: " + bad.Path
			}
			return nil, nil, err
		}
	}
	for i, m := range r.Messages {
		if m == nil || m.Raw() == "" {
			return nil, nil, f.problem(jsontext.Index("$", i), "want a message, got none")
		}
	}
	e := encoder{format: f}
	conversation, err := f.codec.conversation(&e, r.Messages)
	if err != nil {
		return nil, nil, f.located(err)
	}
	for _, m := range conversation {
		switch string(settings.Get(m.Name)) {
		case "", "null", "[]": // as in a request that had no messages yet
			settings = settings.With(m.Name, m.Value)
		default:
			return nil, nil, f.problem(jsontext.Path("$", m.Name), "is in the settings, and the messages make one too")
		}
	}
	return settings.JSON(), e.omitted, nil
}

// DecodeResponse reads the body of a response: Output is what the model said,
// with its calls, and Raw is body, byte for byte. Of several choices or
// candidates Output has the first. The other fields are for the caller to set,
// but for ID and CreatedAt where the response has them. A body with which the
// provider reports a failure is a [ResponseError].
func (f *Format) DecodeResponse(body []byte) (state.InferenceResult, error) {
	result := state.InferenceResult{Raw: string(body)}
	members, err := f.object(body)
	if err != nil {
		return result, err
	}
	err = f.respond(&result, members)
	return result, err
}

// respond sets what a response says.
func (f *Format) respond(result *state.InferenceResult, members jsontext.Object) error {
	if err := f.failure(members); err != nil {
		return err
	}
	d := decoder{format: f}
	id, stop, created, err := f.codec.response(&d, members)
	if err != nil {
		return f.located(err)
	}
	d.stopped(stop)
	result.ID, result.Output, result.CreatedAt = id, d.msgs, unix(created)
	return nil
}

// failure returns a ResponseError for a body that has an error and nothing
// else to tell.
func (f *Format) failure(members jsontext.Object) error {
	for _, name := range []string{"choices", "output", "content", "candidates"} {
		if kind := jsontext.Kind(members.Get(name)); kind != "nothing" && kind != "null" {
			return nil
		}
	}
	return f.reported(members)
}

// reported returns a ResponseError for a body, or an event, that has an error.
func (f *Format) reported(members jsontext.Object) error {
	reported := members.Get("error")
	if kind := jsontext.Kind(reported); kind == "nothing" || kind == "null" {
		return nil
	}
	e := &ResponseError{Format: f.name}
	details, err := jsontext.Members(reported)
	if err != nil { // just a text
		e.Message = state.JSON(reported).Text()
		return e
	}
	object := jsontext.Object(details)
	for _, name := range []string{"type", "status", "code"} {
		if value := object.Get(name); e.Code == "" && value != nil && string(value) != "null" {
			e.Code = state.JSON(value).Text()
		}
	}
	e.Message = state.JSON(object.Get("message")).Text()
	return e
}

// object returns the members of a checked body.
func (f *Format) object(body []byte) (jsontext.Object, error) {
	if err := jsontext.Check(body, jsontext.Limits{Depth: wireDepth}); err != nil {
		return nil, f.located(err)
	}
	members, err := jsontext.Members(body)
	return members, f.located(err)
}

func (f *Format) problem(path, problem string) *Error {
	return &Error{f.name, path, problem, state.ErrWrongType}
}

// located returns an error of this package for one of package strict.
func (f *Format) located(err error) error {
	var bad *fault.Error
	var limit *fault.LimitError
	switch {
	case errors.As(err, &bad):
		return f.problem(bad.Path, bad.Problem())
	case errors.As(err, &limit):
		text := limit.Error()
		return &Error{f.name, limit.Path, strings.TrimPrefix(text, limit.Path+": "), state.ErrLimitExceeded}
	}
	return err
}

// want returns an error unless value is of one of the kinds; "nothing" is what
// is missing.
func want(path string, value []byte, kinds ...string) error {
	got := jsontext.Kind(value)
	for _, kind := range kinds {
		if kind == got {
			return nil
		}
	}
	return &fault.Error{Path: path, Want: strings.Join(kinds, " or "), Got: got}
}
