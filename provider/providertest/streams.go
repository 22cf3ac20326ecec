package providertest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// streams tests recorded streams.
func (s *suite) streams(t *testing.T) {
	hasStream := func(e exchange) bool { return e.events != nil }
	s.each(t, "stream", hasStream, func(t *testing.T, e exchange) {
		result, deltas, err := s.play(e.events)
		if e.broken {
			if err == nil {
				t.Fatalf("a broken stream is not an error")
			}
			return
		}
		if err != nil {
			t.Fatalf("the stream: %v", err)
		}
		s.requirePieces(t, e, result)
		s.requirePrefixes(t, e)
		requireDeltas(t, result, deltas)
		if said, ok := s.format.Summarize(result.Raw); !ok {
			t.Fatalf("Summarize does not know the stream: %+v\n%s", said, result.Raw)
		}
		if e.response == nil {
			return
		}
		whole, err := s.format.DecodeResponse(e.response)
		if err != nil {
			t.Fatal(err)
		}
		if result.ID != whole.ID || raws(result.Output) != raws(whole.Output) {
			t.Fatalf("the stream says\n%s\nand the response\n%s", raws(result.Output), raws(whole.Output))
		}
	})
}

// play returns what the events say.
func (s *suite) play(events [][]byte) (state.InferenceResult, []provider.Delta, error) {
	stream := s.format.Stream()
	var deltas []provider.Delta
	stream.OnDelta = func(d provider.Delta) { deltas = append(deltas, d) }
	for _, event := range events {
		_ = stream.Event(unquoted(event)) // Result reports the error
	}
	result, err := stream.Result()
	return result, deltas, err
}

// unquoted returns the data of an event: JSON strings stand for data that is not
// JSON, such as [DONE].
func unquoted(event []byte) []byte {
	if len(event) > 0 && event[0] == '"' {
		return []byte(state.JSON(event).Text())
	}
	return event
}

// requirePieces requires that a stream says the same as server-sent events, in
// pieces of a byte.
func (s *suite) requirePieces(t *testing.T, e exchange, want state.InferenceResult) {
	t.Helper()
	stream := s.format.Stream()
	for _, event := range e.events {
		line := bytes.ReplaceAll(unquoted(event), []byte("\n"), []byte("\ndata: "))
		for _, b := range []byte("data: " + string(line) + "\n\n") {
			_, _ = stream.Write([]byte{b}) // never fails
		}
	}
	got, err := stream.Result()
	if err != nil || raws(got.Output) != raws(want.Output) {
		t.Fatalf("%v: as server-sent events, the stream says\n%s\nand not\n%s", err, raws(got.Output), raws(want.Output))
	}
	again, err := stream.Result()
	if err != nil || raws(again.Output) != raws(got.Output) {
		t.Fatalf("%v: Result returns something else the second time:\n%s", err, raws(again.Output))
	}
}

// requirePrefixes requires that a stream without its end is incomplete.
func (s *suite) requirePrefixes(t *testing.T, e exchange) {
	t.Helper()
	_, _, err := s.play(nil)
	if !errors.Is(err, provider.ErrIncomplete) {
		t.Fatalf("a stream without events: %v, want ErrIncomplete", err)
	}
	complete := false
	for n := range e.events {
		_, _, err := s.play(e.events[:n+1])
		switch {
		case err == nil:
			complete = true
		case !errors.Is(err, provider.ErrIncomplete):
			t.Fatalf("the first %d events: %v, want ErrIncomplete", n+1, err)
		case complete:
			t.Fatalf("the stream was complete, and is not after event %d", n)
		}
	}
	if _, _, err := s.play(e.events[:1]); len(e.events) > 2 && err == nil {
		t.Fatalf("the stream is complete after its first event")
	}
}

// requireDeltas requires that the deltas make the texts and the inputs.
func requireDeltas(t *testing.T, result state.InferenceResult, deltas []provider.Delta) {
	t.Helper()
	var text string
	inputs := map[int]string{}
	for _, d := range deltas {
		switch d.Kind {
		case provider.DeltaText:
			text += d.Text
		case provider.DeltaInput:
			inputs[d.Call] += d.Text
		}
	}
	call := 0
	for _, m := range result.Output {
		switch m := m.(type) {
		case state.TextMessage:
			for _, line := range strings.Split(m.Text(), "\n") {
				if !strings.Contains(text, line) {
					t.Fatalf("the deltas are %q, and the text is %q", text, m.Text())
				}
			}
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				if got := inputs[call]; got != "" && c.Input != "" && !state.JSON(got).Equal(c.Input) && got != c.Input.Text() {
					t.Fatalf("the deltas of call %d are %s, and its input is %s", call, got, c.Input)
				}
				call++
			}
		}
	}
}
