package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// odd are values of kinds that most members do not have.
var odd = []any{
	json.Number("7"), json.Number("-1e400"), "x", "", true, array{}, array{json.Number("7")}, array{nil}, array{object{}},
	object{}, object{"x": "y"},
}

// hostile tests that no body makes the format panic. A body is decoded and comes
// back equal, or is an error.
func (s *suite) hostile(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 5000)
	bodies := [][]byte{
		nil, {}, []byte("null"), []byte("{}"), []byte("[]"), []byte(`"x"`), []byte("7"), []byte("{"), []byte(`{"a":1,"a":2}`),
		[]byte("{\"a\":\"\xff\"}"),
		[]byte(deep), []byte(deep + strings.Repeat("]}", 5000)),
	}
	for _, e := range s.exchanges {
		for _, body := range [][]byte{e.request, e.response} {
			if body != nil {
				bodies = append(bodies, spoiled(t, body)...)
			}
		}
	}
	for _, body := range bodies {
		s.requireSafe(t, body)
	}
	for _, e := range s.exchanges {
		for i, event := range e.events {
			if event[0] != '{' {
				continue
			}
			for _, bad := range spoiled(t, event) {
				events := append(append(append([][]byte{}, e.events[:i]...), bad), e.events[i+1:]...)
				s.requireSafeStream(t, events)
			}
		}
	}
}

// spoiled returns a text with each of its values replaced, and cut short. With
// -short, a value is replaced by only one.
func spoiled(t *testing.T, text []byte) [][]byte {
	t.Helper()
	bodies := [][]byte{text[:len(text)/2], text[:len(text)-1]}
	paths := members(t, text)
	slices.Sort(paths)
	for i, path := range slices.Compact(paths) {
		values := odd
		if testing.Short() {
			values = odd[i%len(odd):][:1]
		}
		for _, value := range values {
			bodies = append(bodies, editPath(t, text, path, setTo(value)))
		}
		nested := object{}
		for range 70 {
			nested = object{"a": nested}
		}
		bodies = append(bodies, editPath(t, text, path, setTo(nested)))
	}
	return bodies
}

// requireSafe requires that nothing panics on a body, and that a request comes
// back if it is decoded.
func (s *suite) requireSafe(t *testing.T, body []byte) {
	t.Helper()
	defer s.requireNoPanic(t, body)
	request, err := s.format.DecodeRequest(body)
	if err != nil {
		requireKnown(t, err, body)
	} else if encoded, omitted, err := s.format.EncodeRequest(request); err != nil || len(omitted) > 0 ||
		!equal(body, encoded) {
		t.Fatalf("EncodeRequest: %v, omitted: %v. The request\n%s\nbecame\n%s", err, omitted, body, encoded)
	}
	result, err := s.format.DecodeResponse(body)
	if err != nil {
		requireKnown(t, err, body)
	}
	_, _ = s.format.Summarize(string(body))
	for _, to := range builtIn {
		_, _, _ = to.EncodeRequest(provider.Request{Messages: append(request.Messages, result.Output...)})
	}
	s.requireSafeStream(t, [][]byte{body})
}

func (s *suite) requireSafeStream(t *testing.T, events [][]byte) {
	t.Helper()
	defer s.requireNoPanic(t, fmt.Appendf(nil, "%s", events))
	if _, _, err := s.play(events); err != nil {
		requireKnown(t, err, events[0])
	}
}

func (s *suite) requireNoPanic(t *testing.T, body []byte) {
	t.Helper()
	if cause := recover(); cause != nil {
		t.Fatalf("panic: %v\non %s", cause, body)
	}
}

// requireKnown requires that an error is one of package provider.
func requireKnown(t *testing.T, err error, body []byte) {
	t.Helper()
	var wrong *provider.Error
	var failed *provider.ResponseError
	if !errors.As(err, &wrong) && !errors.As(err, &failed) && !errors.Is(err, provider.ErrIncomplete) {
		t.Fatalf("the error is not one of package provider: %v\non %s", err, body)
	}
	if wrong != nil && !errors.Is(wrong, state.ErrWrongType) && !errors.Is(wrong, state.ErrLimitExceeded) {
		t.Fatalf("the error has no cause: %v\non %s", err, body)
	}
}
