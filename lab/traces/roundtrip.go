package traces

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// check counts the bodies of an exchange and returns what failed. With verify
// it encodes both bodies again and checks the conversation with package
// transcript.
func (x *exchange) check(stats *Stats, verify bool) []error {
	x.judge(stats)
	var findings []error
	before := *stats
	if verify {
		x.checkRequest()
		x.checkAnswer()
		findings = x.accept(stats)
	}
	x.countVendor(stats, before)
	if x.request != nil && !x.undecodable {
		stats.Requests.count(x.requestErrs)
	}
	switch {
	case x.outcome == outcomeRefused, x.outcome == outcomeFailed: // there is no answer to decode
	case x.stream != nil:
		stats.Streams.count(x.answerErrs)
	case x.response != nil:
		stats.Responses.count(x.answerErrs)
	}
	if len(x.broken) > 0 {
		stats.NotWhole++
		stats.Notes = append(stats.Notes, Note{Kind: NoteStream, Path: x.responsePath, Who: x.who(), Text: strings.Join(x.broken, ", ")})
	}
	return append(append(x.requestErrs, x.answerErrs...), findings...)
}

// countVendor counts the exchange for its vendor.
func (x *exchange) countVendor(stats *Stats, before Stats) {
	if x.form != "exchange" {
		return
	}
	v := Vendor{Exchanges: 1, False: stats.False - before.False}
	if x.outcome == outcomeRefused && x.request != nil {
		v.Refused.All = 1
		v.Refused.Good = min(1, len(x.found))
	}
	if x.model != "" {
		v.Models.add(x.model, 1)
	}
	sum(&stats.Vendors, map[string]Vendor{x.vendor: v}, (*Vendor).add)
}

// checkRequest checks that the request is equal as JSON after it was encoded
// again, including the spelling of numbers.
func (x *exchange) checkRequest() {
	if x.request == nil || x.requestErrs != nil || x.undecodable {
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
	x.checkStreamText()
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

// comments are lines of a stream that Raw does not have.
var comments = regexp.MustCompile(`(?m)^:[^\r\n]*(\r\n|\r|\n)`)

// checkStreamText checks that the text of a stream, written in pieces, gives
// what its events gave one by one.
func (x *exchange) checkStreamText() {
	if x.streamText == nil || x.answerErrs != nil {
		return
	}
	text := x.streamText
	if jsontext.Kind(text) != "array" {
		text = append(slices.Clip(text), "\n\n"...) // which recorders strip
	}
	stream := x.wire.format.Stream()
	for piece := range slices.Chunk(text, streamPiece) {
		_, _ = stream.Write(piece)
	}
	result, _ := stream.Result()
	same := slices.EqualFunc(result.Output, x.result.Output, func(a, b state.Message) bool { return a.Raw() == b.Raw() })
	switch {
	case result.Raw != comments.ReplaceAllString(string(text), ""):
		x.failAnswer("$", errors.New("the raw text of the result is not the stream"))
	case !same || result.ID != x.result.ID:
		x.failAnswer("$", errors.New("the text of the stream gives another result than its events"))
	}
}

// streamPiece is the number of bytes of a stream that are written at once. It
// cuts lines and characters.
const streamPiece = 61

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
