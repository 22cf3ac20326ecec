package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// exchange is a recorded call of a model: the request, and the answer, which is
// a response or a stream. Either may be missing.
type exchange struct {
	wire         *wire
	requestPath  string // in the file, empty if there is only a response
	responsePath string
	request      []byte
	response     []byte
	stream       [][]byte // the data of its events

	// accepted reports that the provider accepted the request. Findings of
	// package transcript prove nothing if it did not, or if the file does not
	// hold exactly what was sent.
	accepted bool

	asked    provider.Request
	result   state.InferenceResult
	answered bool   // result is the output of a model
	cut      bool   // the stream ended before its end
	other    string // the kind of an answer that is not a response

	requestErrs, answerErrs []error // of the request and of the answer
}

// readExchanges reads a recording of HTTP exchanges:
//
//	{"exchanges": [
//		{"api": "openai_chat", "status": 200, "request": {…}, "response": {…}},
//		{"api": "anthropic_messages", "status": 200, "request": {…}, "stream": [{"event": "…", "data": {…}}]}]}
func readExchanges(list []byte) (File, error) {
	var file File
	var talks threads
	var errs []error
	exchanges := loose.Elements(list)
	for i, raw := range exchanges {
		path := jsontext.Index("$.exchanges", i)
		o, err := jsontext.Members(raw)
		if err != nil {
			errs = append(errs, &fault.Error{Path: path, Want: "object", Got: jsontext.Kind(raw)})
			continue
		}
		x, other := exchangeOf(path, o)
		if other != "" {
			file.Others = append(file.Others, other)
			continue
		}
		x.decode()
		if x.other != "" {
			file.Others = append(file.Others, x.other)
		}
		talks.add(x)
	}
	if len(exchanges) == 0 {
		file.Others = []string{"a recording without exchanges"}
	}
	file.Runs = talks.end()
	return file, errors.Join(errs...)
}

// exchangeOf returns a recorded exchange, or the kind of one that package
// provider does not read.
func exchangeOf(path string, o jsontext.Object) (x *exchange, other string) {
	w, other := wireOf(loose.Text(o.Get("api")))
	if w == nil {
		return nil, other
	}
	status, err := strconv.Atoi(loose.Text(o.Get("status")))
	x = &exchange{
		wire: w, requestPath: path + ".request", responsePath: path + ".response",
		request: nonNull(o, "request"), response: nonNull(o, "response"),
		accepted: err != nil || status/100 == 2,
	}
	if events := nonNull(o, "stream"); x.response == nil && events != nil {
		x.responsePath = path + ".stream"
		x.stream = [][]byte{}
		for _, event := range loose.Elements(events) {
			if data := loose.Members(event).Get("data"); data != nil {
				x.stream = append(x.stream, eventOf(data))
			}
		}
	}
	return x, ""
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

// bodyOf returns an exchange that has only a response, nil if the object is not
// the body of one.
func bodyOf(o jsontext.Object, data []byte) *exchange {
	for _, w := range wires {
		if w.isResponse(o) {
			return &exchange{wire: w, responsePath: "$", response: bytes.TrimSpace(data), accepted: true}
		}
	}
	return nil
}

// streamOf returns an exchange that has only a stream, nil if list does not
// hold its events. Some of the events may not be JSON.
func streamOf(list [][]byte) *exchange {
	x := &exchange{responsePath: "$", stream: [][]byte{}, accepted: true}
	for _, element := range list {
		event := eventOf(element)
		x.stream = append(x.stream, event)
		o, err := jsontext.Members(event)
		for i := 0; err == nil && x.wire == nil && i < len(wires); i++ {
			if wires[i].isEvent(o) {
				x.wire = wires[i]
			}
		}
	}
	if x.wire == nil {
		return nil
	}
	return x
}

// kind returns the name of the exchange in the report.
func (x *exchange) kind() string {
	switch {
	case x.requestPath != "":
		return x.wire.name + " exchange"
	case x.stream != nil:
		return x.wire.name + " stream"
	}
	return x.wire.name + " response"
}

// decode decodes the request and the answer.
func (x *exchange) decode() {
	var err error
	if x.request != nil {
		if x.asked, err = x.wire.format.DecodeRequest(x.request); err != nil {
			x.failRequest(err)
		}
	}
	switch {
	case x.stream != nil:
		x.decodeStream()
	case x.response != nil:
		x.result, err = x.wire.format.DecodeResponse(x.response)
		var refused *provider.ResponseError
		switch {
		case err == nil:
			x.answered = x.accepted
		case errors.As(err, &refused):
			x.accepted = false
		case !x.accepted: // the body of a refusal may be anything
		case x.wire.isResponse(loose.Members(x.response)):
			x.failAnswer("$", err)
		default:
			x.other = "an answer that is not a response of " + x.wire.name
			x.response, x.result, x.accepted = nil, state.InferenceResult{}, false
		}
	}
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
		if err != nil && !errors.As(err, &reported) && json.Valid(event) {
			x.failAnswer(jsontext.Index("$", i), err)
		}
		known = append(known, err)
	}
	var err error
	x.result, err = stream.Result()
	for _, err := range splitErrors(err) {
		switch {
		case errors.Is(err, provider.ErrIncomplete):
			x.cut = true
		case !slices.Contains(known, err) && !errors.As(err, &reported):
			x.failAnswer("$", err)
		}
	}
	x.answered = x.accepted && len(x.result.Output) > 0
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

// path returns the place of the exchange in the file.
func (x *exchange) path() string {
	if x.request != nil {
		return x.requestPath
	}
	return x.responsePath
}

func (x *exchange) failRequest(err error) {
	x.requestErrs = append(x.requestErrs, atPath(x.requestPath, err))
}

// failAnswer notes an error of the answer, or of the part of it at path.
func (x *exchange) failAnswer(path string, err error) {
	x.answerErrs = append(x.answerErrs, atPath(x.responsePath, atPath(path, err)))
}
