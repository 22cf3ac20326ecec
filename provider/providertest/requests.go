package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// requests tests that requests come back equal.
func (s *suite) requests(t *testing.T) {
	s.each(t, "request", hasRequest, func(t *testing.T, e exchange) {
		s.requireSame(t, e.request)
		s.requireSame(t, salted(t, e.request))
	})
}

// requireSame requires that a request comes back equal, and returns what was
// decoded.
func (s *suite) requireSame(t *testing.T, body []byte) provider.Request {
	t.Helper()
	given := string(body)
	request, err := s.format.DecodeRequest(body)
	if err != nil {
		t.Fatalf("DecodeRequest: %v\n%s", err, body)
	}
	if given != string(body) {
		t.Fatalf("DecodeRequest has changed the body\n%s\ninto\n%s", given, body)
	}
	for _, m := range request.Messages {
		if again, err := state.DecodeMessage([]byte(m.Raw())); err != nil || !again.Equal(m) {
			t.Fatalf("the message does not come back from its JSON: %v\n%s", err, m.Raw())
		}
	}
	encoded, omitted, err := s.format.EncodeRequest(request)
	switch {
	case err != nil:
		t.Fatalf("EncodeRequest: %v\nof %s", err, body)
	case len(omitted) > 0:
		t.Fatalf("what the format has sent itself is left out: %v\nof %s", omitted, body)
	case !equal(body, encoded):
		t.Fatalf("the request\n%s\nbecame\n%s\nmessages:\n%s", body, encoded, raws(request.Messages))
	}
	return request
}

// salted returns a body with an unknown member in every object, and values whose
// spelling counts.
func salted(t *testing.T, body []byte) []byte {
	spices := []any{
		nil, "<&>", json.Number("1.0"), json.Number("9007199254740993"), object{"y": nil}, array{nil, true}, object{}, "",
	}
	return withMembers(t, body, func(n int) any { return spices[n%len(spices)] })
}

// withMembers returns a body with an unknown member in every object.
func withMembers(t *testing.T, body []byte, member func(n int) any) []byte {
	t.Helper()
	value := parse(t, body)
	n := 0
	eachObject(value, func(in object) {
		in[fmt.Sprintf("x%d", n)] = member(n)
		n++
	})
	return write(t, value)
}

// nulls tests that null is like a missing member, in requests, in responses and
// in the events of streams. A member without which a text cannot be decoded, or
// an entry only be kept as it is, is required.
func (s *suite) nulls(t *testing.T) {
	s.each(t, "exchange", func(e exchange) bool { return !e.failed && !e.broken }, func(t *testing.T, e exchange) {
		s.requireNulls(t, e.request, func(body []byte) (state.InferenceResult, error) {
			request, err := s.format.DecodeRequest(body)
			if err == nil {
				s.requireSame(t, body)
			}
			return state.InferenceResult{Output: request.Messages}, err
		})
		s.requireNulls(t, e.response, s.format.DecodeResponse)
		for i, event := range e.events {
			s.requireNulls(t, unquoted(event), func(event []byte) (state.InferenceResult, error) {
				result, _, err := s.play(slices.Concat(e.events[:i], [][]byte{event}, e.events[i+1:]))
				return result, err
			})
		}
	})
}

// requireNulls requires that null is like a missing member of a text. What is not
// an object has no members.
func (s *suite) requireNulls(t *testing.T, text []byte, decode func([]byte) (state.InferenceResult, error)) {
	t.Helper()
	if !bytes.HasPrefix(text, []byte("{")) {
		return
	}
	whole, err := decode(text)
	if err != nil {
		return
	}
	for i, path := range members(t, text) {
		missing, err := decode(editMember(t, text, i, remove))
		if err != nil || unknown(missing.Output) > unknown(whole.Output) || s.findings(missing) > s.findings(whole) {
			continue // it is required
		}
		null, err := decode(editMember(t, text, i, setTo(nil)))
		if err != nil {
			t.Fatalf("null at %s: %v", path, err)
		}
		if without, with := s.understood(missing), s.understood(null); without != with {
			t.Fatalf("null at %s is not like a missing member. What is read:\n%s\nwithout the member:\n%s", path, with, without)
		}
	}
}

// findings returns the number of findings of Check in a result.
func (s *suite) findings(result state.InferenceResult) int {
	return len(transcript.Check(result.Output, s.format.Profile()))
}

// understood describes what a program reads in a result, and what Check finds.
func (s *suite) understood(result state.InferenceResult) string {
	return fmt.Sprintln(result.ID, result.CreatedAt, meaning(result.Output),
		transcript.Check(result.Output, s.format.Profile()))
}

// tools tests that tools come back.
func (s *suite) tools(t *testing.T) {
	offered := []provider.Tool{
		{Name: "now"},
		{
			Name: "fare", Description: "Tells the fare <&>.",
			Schema: `{"type":"object","properties":{"to":{"type":"string"},"n":{"maximum":1.0}},"required":["to"]}`,
		},
	}
	body, omitted, err := s.format.EncodeRequest(provider.Request{
		Messages: []state.Message{state.UserText("Hi.")}, Tools: offered,
	})
	if err != nil || len(omitted) > 0 {
		t.Fatalf("EncodeRequest of tools: %v, omitted: %v", err, omitted)
	}
	request := s.requireSame(t, body)
	if len(request.Tools) != len(offered) {
		t.Fatalf("%d tools became %v in\n%s", len(offered), request.Tools, body)
	}
	for i, tool := range request.Tools {
		want := offered[i]
		if tool.Name != want.Name || tool.Description != want.Description ||
			want.Schema != "" && !tool.Schema.Equal(want.Schema) {
			t.Fatalf("the tool %v became %v in\n%s", want, tool, body)
		}
	}
	foreign := []provider.Tool{{Name: "f", Schema: `{"type":"object"}`, Extra: `{"never_heard_of":"x"}`}}
	if body, omitted, err = s.format.EncodeRequest(provider.Request{Tools: foreign}); err != nil || len(omitted) != 1 {
		t.Fatalf("an unknown member of a tool is not reported: %v, omitted: %v\n%s", err, omitted, body)
	}
}
