package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// exchange is a recorded call of a model: the request, and the answer, which is
// a response or a stream. Either may be missing.
type exchange struct {
	wire         *wire
	form         string // what the file has: an exchange, a response, a stream, a request or messages
	vendor       string // empty if the file does not tell
	model        string
	requestPath  string // in the file, empty if there is only an answer
	responsePath string
	request      []byte
	response     []byte
	stream       [][]byte // the data of its events
	streamText   []byte   // the stream as the provider sent it, if the file has that

	outcome outcome

	asked       provider.Request
	undecodable bool // the request was refused, and cannot be decoded either
	result      state.InferenceResult
	answered    bool     // result is the output of a model
	refusal     string   // what the provider said instead of an answer
	found       []string // in a request that was refused: the rules of the findings
	broken      []string // why the stream is not whole
	other       string   // the kind of an answer that is not a response

	requestErrs, answerErrs []error // of the request and of the answer
}

// outcome is what became of a request. Findings of package transcript are false
// if the provider accepted it, and right if the provider refused it.
type outcome int

const (
	outcomeUnknown  outcome = iota // the recording does not tell
	outcomeAccepted                // the model answered
	outcomeRefused                 // the provider said that the request is wrong
	outcomeFailed                  // no answer for another reason: a limit, a key, a fault of the server
	outcomeUnsent                  // the request was not sent in this form
)

// outcomeOf returns what a status tells, 0 if it is unknown.
func outcomeOf(status int) outcome {
	switch {
	case status == 0:
		return outcomeUnknown
	case status/100 == 2:
		return outcomeAccepted
	case status == 400 || status == 422:
		return outcomeRefused
	}
	return outcomeFailed
}

// outcomeOfError returns what an error tells that came without a status of its
// own.
func outcomeOfError(err *provider.ResponseError) outcome {
	switch err.Code {
	case "invalid_request_error", "INVALID_ARGUMENT", "400", "422":
		return outcomeRefused
	}
	return outcomeFailed
}

// nonNull returns the value of a member, nil if it is null.
func nonNull(o jsontext.Object, name string) []byte {
	if v := o.Get(name); jsontext.Kind(v) != "null" {
		return v
	}
	return nil
}

// eventOf returns the data of an event. Data that is not JSON is a string in
// the file.
func eventOf(raw []byte) []byte {
	if jsontext.Kind(raw) == "string" {
		return []byte(jsontext.Unquote(raw))
	}
	return raw
}

// responseOnly returns an exchange that has only a response, nil if the object
// is not the body of one.
func responseOnly(path string, o jsontext.Object, data []byte) *exchange {
	for _, w := range wires {
		if w.isResponse(o) {
			return &exchange{wire: w, form: "response", responsePath: path, response: bytes.TrimSpace(data)}
		}
	}
	return nil
}

// requestOnly returns an exchange that has only a request, nil if the object is
// not the body of one.
func requestOnly(path string, o jsontext.Object, data []byte) *exchange {
	w := wireOfRequest(o)
	if w == nil {
		return nil
	}
	return &exchange{wire: w, form: "request", requestPath: path, request: bytes.TrimSpace(data), model: loose.Text(o.Get("model"))}
}

// messagesOnly returns an exchange whose request has only a conversation, nil
// if list does not hold its messages.
func messagesOnly(path string, list [][]byte) *exchange {
	w := wireOfMessages(list)
	if w == nil {
		return nil
	}
	return &exchange{wire: w, form: "messages", requestPath: path, request: requestOf(w, list)}
}

// streamOnly returns an exchange that has only a stream, nil if no event of it
// is known. Some of the events may not be JSON.
func streamOnly(path string, events [][]byte) *exchange {
	for _, w := range wires {
		if w.holdsEvent(events) {
			return &exchange{wire: w, form: "stream", responsePath: path, stream: events}
		}
	}
	return nil
}

// kind returns the name of the exchange in the report.
func (x *exchange) kind() string { return x.wire.name + " " + x.form }

// decode decodes the request and the answer.
func (x *exchange) decode() {
	x.decodeAnswer() // it may tell the outcome
	if x.request == nil {
		return
	}
	var err error
	if x.asked, err = x.wire.format.DecodeRequest(x.request); err == nil {
		return
	}
	if x.outcome == outcomeRefused {
		x.undecodable = true
		return
	}
	x.failRequest(err)
}

func (x *exchange) decodeAnswer() {
	switch {
	case x.stream != nil && len(x.stream) == 0:
		x.stream, x.other = nil, "a stream without events"
	case x.stream != nil:
		x.decodeStream()
	case x.response != nil:
		x.decodeResponse()
	}
	if x.model == "" {
		x.model = x.answeredModel()
	}
}

func (x *exchange) decodeResponse() {
	var err error
	x.result, err = x.wire.format.DecodeResponse(x.response)
	var refused *provider.ResponseError
	switch {
	case err == nil:
		if x.outcome == outcomeUnknown {
			x.outcome = outcomeAccepted
		}
		x.answered = x.outcome == outcomeAccepted
	case errors.As(err, &refused):
		x.refuse(refused)
	case x.outcome == outcomeRefused || x.outcome == outcomeFailed: // the body may be anything
		x.refusal = fault.ClipTo(strings.Join(strings.Fields(string(x.response)), " "), refusalBytes)
	case x.wire.isResponse(loose.Members(x.response)):
		x.failAnswer("$", err)
	default:
		x.other = "an answer that is not a response of " + x.wire.name
		x.refusal = x.other
		x.response, x.result, x.outcome = nil, state.InferenceResult{}, outcomeFailed
	}
}

// refusalBytes limits what a report shows of an answer with an error.
const refusalBytes = 200

// refuse notes the error that the provider sent instead of an answer.
func (x *exchange) refuse(err *provider.ResponseError) {
	if x.outcome == outcomeUnknown || x.outcome == outcomeAccepted {
		x.outcome = outcomeOfError(err)
	}
	x.refusal = fault.ClipTo(strings.TrimSpace(err.Code+" "+err.Message), refusalBytes)
}

// decodeStream gives the events to a stream one by one. Recordings contain
// events that are not JSON, reports of failures and streams without an end. The
// stream must report these, and they are not errors of the codec.
func (x *exchange) decodeStream() {
	stream := x.wire.format.Stream()
	var known []error
	var reported *provider.ResponseError
	for i, event := range x.stream {
		err := stream.Event(event)
		switch {
		case err == nil || errors.As(err, &reported):
		case json.Valid(event):
			x.failAnswer(jsontext.Index("$", i), err)
		default:
			x.broken = append(x.broken, fmt.Sprintf("event %d is not JSON", i))
		}
		known = append(known, err)
	}
	var err error
	x.result, err = stream.Result()
	for _, err := range splitErrors(err) {
		switch {
		case errors.Is(err, provider.ErrIncomplete):
			x.broken = append(x.broken, "it broke off")
		case errors.As(err, &reported):
		case !slices.Contains(known, err):
			x.failAnswer("$", err)
		}
	}
	if reported != nil {
		x.broken = append(x.broken, "it reports "+fault.ClipTo(strings.TrimSpace(reported.Code+" "+reported.Message), refusalBytes))
	}
	x.judgeStream(reported)
}

// judgeStream decides what a stream is that has been read.
func (x *exchange) judgeStream(reported *provider.ResponseError) {
	spoken := len(x.result.Output) > 0
	switch {
	case reported != nil && !spoken:
		x.refuse(reported)
	case x.outcome == outcomeUnknown && spoken:
		x.outcome = outcomeAccepted
	case x.outcome <= outcomeAccepted && !spoken && !x.wire.holdsEvent(x.stream):
		x.failAnswer("$", fmt.Errorf("none of its %d events is one of %s", len(x.stream), x.wire.name))
	}
	x.answered = x.outcome == outcomeAccepted && spoken
}

// splitErrors returns the errors that errors.Join has joined.
func splitErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// own returns the profile of the API for the request.
func (x *exchange) own() transcript.Profile { return x.asked.Profile(x.wire.profile) }

// path returns the place of the exchange in the file.
func (x *exchange) path() string {
	if x.request != nil {
		return x.requestPath
	}
	return x.responsePath
}

// who returns the vendor and the model, as far as they are known.
func (x *exchange) who() string {
	return strings.Trim(x.vendor+", "+x.model, ", ")
}

func (x *exchange) failRequest(err error) {
	x.requestErrs = append(x.requestErrs, atPath(x.requestPath, err))
}

// failAnswer notes an error of the answer, or of the part of it at path.
func (x *exchange) failAnswer(path string, err error) {
	x.answerErrs = append(x.answerErrs, atPath(x.responsePath, atPath(path, err)))
}
