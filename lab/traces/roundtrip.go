package traces

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// check counts the bodies of an exchange and returns what failed. With verify
// it encodes both bodies again and checks the conversation with package
// transcript.
func (x *exchange) check(stats *Stats, verify bool) []error {
	var findings []error
	if verify {
		x.checkRequest()
		x.checkAnswer()
		findings = x.accept(stats)
	}
	if x.request != nil {
		stats.Requests.count(x.requestErrs)
	}
	switch {
	case x.stream != nil:
		stats.Streams.count(x.answerErrs)
		if x.cut {
			stats.Cut++
		}
	case x.response != nil:
		stats.Responses.count(x.answerErrs)
	}
	return append(append(x.requestErrs, x.answerErrs...), findings...)
}

// checkRequest checks that the request is equal as JSON after it was encoded
// again, including the spelling of numbers.
func (x *exchange) checkRequest() {
	if x.request == nil || x.requestErrs != nil {
		return
	}
	body, err := x.encode(x.asked)
	if err == nil {
		err = compareJSON(x.request, body)
	}
	if err != nil {
		x.failRequest(fmt.Errorf("encoded again: %w", err))
	}
}

// checkAnswer checks that Raw is the answer byte for byte, and that the encoded
// messages are what a later request repeats of the response. The messages of a
// stream can only be compared with themselves, decoded again.
func (x *exchange) checkAnswer() {
	var raw bytes.Buffer
	raw.Write(x.response)
	for _, event := range x.stream {
		raw.Write(event)
		raw.WriteByte('\n')
	}
	if x.result.Raw != raw.String() {
		x.failAnswer("$", errors.New("the raw text of the result is not the answer"))
	}
	if x.answerErrs != nil || !x.answered {
		return
	}
	body, err := x.encode(provider.Request{Messages: x.result.Output})
	if err == nil && x.stream == nil {
		err = compareJSON(jsontext.Array(x.wire.repeated(loose.Members(x.response))), jsontext.Array(loose.Elements(loose.Members(body).Get(x.wire.conversation))))
	}
	var back provider.Request
	if err == nil {
		back, err = x.wire.format.DecodeRequest(body)
	}
	if err == nil {
		var again []byte
		if again, err = x.encode(back); err == nil {
			err = compareJSON(body, again)
		}
	}
	if err != nil {
		x.failAnswer("$", fmt.Errorf("encoded for a request: %w", err))
	}
}

// encode encodes messages for the format that they came from. It must not omit
// anything.
func (x *exchange) encode(r provider.Request) ([]byte, error) {
	body, omitted, err := x.wire.format.EncodeRequest(r)
	if err == nil && len(omitted) > 0 {
		err = fmt.Errorf("left out of %s", omitted[0])
	}
	return body, err
}

// compareJSON returns an error with the path where two JSON texts differ in
// value or in the spelling of a number.
func compareJSON(want, got []byte) error {
	if state.JSON(want).Equal(state.JSON(got)) {
		return nil
	}
	return fmt.Errorf("it differs at %s", difference("$", want, got))
}

// difference returns the path of the first value that differs.
func difference(path string, a, b []byte) string {
	switch {
	case jsontext.Kind(a) == "object" && jsontext.Kind(b) == "object":
		other := loose.Members(b)
		for _, m := range loose.Members(a) {
			if !state.JSON(m.Value).Equal(state.JSON(other.Get(m.Name))) {
				return difference(jsontext.Path(path, m.Name), m.Value, other.Get(m.Name))
			}
			other = other.Without(m.Name)
		}
		for _, m := range other {
			return jsontext.Path(path, m.Name)
		}
	case jsontext.Kind(a) == "array" && jsontext.Kind(b) == "array":
		other := loose.Elements(b)
		for i, element := range loose.Elements(a) {
			at := jsontext.Index(path, i)
			if i >= len(other) {
				return at
			}
			if !state.JSON(element).Equal(state.JSON(other[i])) {
				return difference(at, element, other[i])
			}
		}
		return jsontext.Index(path, len(loose.Elements(a)))
	}
	return path
}
