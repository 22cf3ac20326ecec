package providertest

import (
	"errors"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// responses tests recorded responses.
func (s *suite) responses(t *testing.T) {
	s.each(t, "response", func(e exchange) bool { return e.response != nil }, s.requireResponse)
}

// requireResponse requires that a response is read, and that what the model said
// can be sent back to it.
func (s *suite) requireResponse(t *testing.T, e exchange) {
	t.Helper()
	result, err := s.format.DecodeResponse(e.response)
	if result.Raw != string(e.response) {
		t.Fatalf("Raw is\n%s\nand not\n%s", result.Raw, e.response)
	}
	if e.failed {
		if err == nil {
			t.Fatalf("a failure is not an error:\n%s", e.response)
		}
		return
	}
	var reported *provider.ResponseError
	if errors.As(err, &reported) {
		return // with status 200
	}
	if err != nil {
		t.Fatalf("DecodeResponse: %v\n%s", err, e.response)
	}
	body, omitted, err := s.format.EncodeRequest(provider.Request{Messages: result.Output})
	if err != nil || len(omitted) > 0 {
		t.Fatalf("EncodeRequest: %v, omitted: %v\nof %s", err, omitted, e.response)
	}
	if want, have := meaning(result.Output), meaning(s.requireSame(t, body).Messages); want != have {
		t.Fatalf("the response\n%s\nsays\n%s\nand is sent back as\n%s", e.response, want, have)
	}
	stream := s.format.Stream()
	_, _ = stream.Write(e.response) // never fails
	if streamed, err := stream.Result(); err != nil || raws(streamed.Output) != raws(result.Output) ||
		streamed.Usage != result.Usage {
		t.Fatalf("%v: written to a stream, the response says\n%s\nand not\n%s", err,
			raws(streamed.Output), raws(result.Output))
	}
}

// usage tests the counts of responses and streams.
func (s *suite) usage(t *testing.T) {
	for _, e := range s.exchanges {
		if e.request != nil {
			if said, ok := s.format.Summarize(string(e.request)); ok {
				t.Fatalf("%s: a request is taken for a response: %+v", e.name, said)
			}
		}
		if e.failed || e.broken {
			continue
		}
		if e.response != nil {
			s.requireUsage(t, e, func() (state.InferenceResult, error) { return s.format.DecodeResponse(e.response) })
		}
		if e.events != nil {
			s.requireUsage(t, e, func() (state.InferenceResult, error) {
				result, _, err := s.play(e.events)
				return result, err
			})
		}
	}
}

// requireUsage requires that a result has the counts of its raw text, and those
// that the recording expects.
func (s *suite) requireUsage(t *testing.T, e exchange, read func() (state.InferenceResult, error)) {
	t.Helper()
	result, err := read()
	if err != nil {
		return // another law says it
	}
	said, ok := s.format.Summarize(result.Raw)
	u := said.Usage
	switch {
	case !ok || said.Format != s.format:
		t.Fatalf("%s: Summarize does not know the response\n%s", e.name, result.Raw)
	case u != result.Usage:
		t.Fatalf("%s: the usage is %+v, and that of the result %+v", e.name, u, result.Usage)
	case u.Input < max(u.CacheRead, u.CacheWrite) || u.Output < u.Reasoning:
		t.Fatalf("%s: a part is larger than the whole: %+v\n%s", e.name, u, result.Raw)
	case e.usage != nil && u != *e.usage:
		t.Fatalf("%s: the usage is %+v and not %+v in\n%s", e.name, u, *e.usage, result.Raw)
	}
}
