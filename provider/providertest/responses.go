package providertest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// none is the usage of a response that reports none.
var none = provider.Usage{Input: -1, Output: -1, CacheRead: -1, CacheWrite: -1, Reasoning: -1}

// responses tests that responses come back, and say what a script says.
func (s *suite) responses(t *testing.T) {
	for name, output := range scripts() {
		t.Run(name, func(t *testing.T) { s.requireScripted(t, output) })
	}
	t.Run("several", func(t *testing.T) {
		for _, output := range [][]state.Message{
			{state.SystemText("a")}, {state.UserText("a")}, {state.UserText("a"), state.AssistantText("b")}, {nil},
		} {
			body, _, err := s.format.EncodeResponse(state.InferenceResult{Output: output}, none)
			if err == nil {
				t.Fatalf("what no model says in one response became one:\n%s", body)
			}
		}
	})
	for _, e := range s.exchanges {
		if e.response != nil {
			t.Run(e.name, func(t *testing.T) { s.requireResponse(t, e) })
		}
	}
}

// scripts returns what a model may say.
func scripts() map[string][]state.Message {
	call := state.ToolCall{ID: "call_1", Name: "search", Input: `{"q":"<&>","n":1.0}`}
	return map[string][]state.Message{
		"nothing":        {},
		"a text":         {state.AssistantText("Hi <&>.")},
		"a call":         {state.ToolCalls(call)},
		"text and calls": {state.AssistantText("Let me look."), state.ToolCalls(call, state.ToolCall{ID: "call_2", Name: "now", Input: `{}`})},
	}
}

// requireScripted requires that a response of a script says the script.
func (s *suite) requireScripted(t *testing.T, output []state.Message) {
	t.Helper()
	made := state.InferenceResult{ID: "r1", CreatedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Output: output}
	body, omitted, err := s.format.EncodeResponse(made, none)
	if err != nil || len(omitted) > 0 {
		t.Fatalf("EncodeResponse: %v, omitted: %v", err, omitted)
	}
	got, err := s.format.DecodeResponse(body)
	if err != nil {
		t.Fatalf("DecodeResponse: %v\n%s", err, body)
	}
	if got.ID != "" && got.ID != made.ID || !got.CreatedAt.IsZero() && !got.CreatedAt.Equal(made.CreatedAt) {
		t.Fatalf("the id %s and the time %v became %s and %v in\n%s", made.ID, made.CreatedAt, got.ID, got.CreatedAt, body)
	}
	if want, have := saidBy(output), saidBy(got.Output); !reflect.DeepEqual(want, have) {
		t.Fatalf("the response says\n%v\nand not\n%v\nin\n%s", have, want, body)
	}
	stream := s.format.Stream()
	_, _ = stream.Write(body) // never fails
	if streamed, err := stream.Result(); err != nil || raws(streamed.Output) != raws(got.Output) {
		t.Fatalf("%v: written to a stream, the response says\n%s\nand not\n%s", err, raws(streamed.Output), raws(got.Output))
	}
	if n := len(got.Output); n > 0 && len(output) > 0 {
		want := "stop"
		if _, ok := output[len(output)-1].(state.ToolCallMessage); ok {
			want = "tool"
		}
		if reason := stopReason(got.Output[n-1]); reason != want && reason != "stop" {
			t.Fatalf("the reason of the end is %q and not %q in\n%s", reason, want, body)
		}
	}
}

// saidBy returns the texts and the calls of messages. Ids are not compared:
// some providers have none.
func saidBy(msgs []state.Message) (said []string) {
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			if m.Text() != "" {
				said = append(said, m.Text())
			}
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				said = append(said, fmt.Sprintf("%s(%s)", c.Name, c.Input))
			}
		}
	}
	return said
}

func stopReason(m state.Message) string {
	if m, ok := m.(interface{ StopReason() string }); ok {
		return m.StopReason()
	}
	return ""
}

// requireResponse requires that a recorded response is read, and comes back.
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
	n := len(result.Output)
	if n == 0 || stopReason(result.Output[n-1]) == "" {
		return // a script would say why it ends
	}
	usage, ok := s.format.ReadUsage(result.Raw)
	if !ok {
		t.Fatalf("ReadUsage does not know the response\n%s", e.response)
	}
	body, omitted, err := s.format.EncodeResponse(result, usage)
	if err != nil || len(omitted) > 0 {
		t.Fatalf("EncodeResponse: %v, omitted: %v\nof %s", err, omitted, e.response)
	}
	again, err := s.format.DecodeResponse(body)
	if err != nil || again.ID != result.ID || !again.CreatedAt.Equal(result.CreatedAt) || raws(again.Output) != raws(result.Output) {
		t.Fatalf("%v: the response\n%s\nbecame\n%s\nand says\n%s\nand not\n%s", err, e.response, body, raws(again.Output), raws(result.Output))
	}
	if same, _ := s.format.ReadUsage(string(body)); !isSameUsage(usage, same) {
		t.Fatalf("the usage %+v became %+v in\n%s", usage, same, body)
	}
}

// isSameUsage reports whether a usage says the same. Not every API has all
// counts.
func isSameUsage(want, have provider.Usage) bool {
	for _, count := range []struct{ want, have *int }{
		{&want.CacheRead, &have.CacheRead}, {&want.CacheWrite, &have.CacheWrite}, {&want.Reasoning, &have.Reasoning},
	} {
		if *count.have == -1 {
			*count.want = -1
		}
	}
	return want == have
}

// usage tests the counts of responses.
func (s *suite) usage(t *testing.T) {
	said := state.InferenceResult{ID: "r1", Output: []state.Message{state.AssistantText("Hi.")}}
	for _, want := range []provider.Usage{
		{Input: 100, Output: 20, CacheRead: 40, CacheWrite: 30, Reasoning: 5},
		{Input: 100, Output: 20, CacheRead: -1, CacheWrite: -1, Reasoning: -1},
		{Input: 0, Output: 0, CacheRead: 0, CacheWrite: 0, Reasoning: 0},
	} {
		body, _, err := s.format.EncodeResponse(said, want)
		if err != nil {
			t.Fatal(err)
		}
		have, ok := s.format.ReadUsage(string(body))
		if !ok || have.Format != s.format {
			t.Fatalf("ReadUsage does not know the response\n%s", body)
		}
		want.Format, want.StopReason, want.ID, want.Model = s.format, have.StopReason, have.ID, have.Model
		if !isSameUsage(want, have) || have.StopReason != "stop" {
			t.Fatalf("the usage %+v became %+v in\n%s", want, have, body)
		}
	}
	for _, e := range s.exchanges {
		if e.request != nil {
			if usage, ok := s.format.ReadUsage(string(e.request)); ok {
				t.Fatalf("%s: a request is taken for a response: %+v", e.name, usage)
			}
		}
		if usage, ok := s.format.ReadUsage(string(e.response)); ok && (usage.Input < max(-1, usage.CacheRead, usage.CacheWrite) || usage.Output < max(-1, usage.Reasoning)) {
			t.Fatalf("%s: a part is larger than the whole: %+v\n%s", e.name, usage, e.response)
		}
	}
}
