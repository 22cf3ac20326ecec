package otelstate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/otelstate"
)

// contentOf returns the messages that the span of a result has.
func contentOf(t *testing.T, r state.InferenceResult) (input, output string) {
	t.Helper()
	r.StartedAt, r.CreatedAt = time.Now(), time.Now()
	e := newTelemetry(t, otelstate.Options{Content: true})
	e.Inference(t.Context(), r)
	require.Len(t, e.spans(), 1)
	for _, a := range e.spans()[0].Attributes() {
		switch a.Key {
		case "gen_ai.input.messages":
			input = a.Value.AsString()
		case "gen_ai.output.messages":
			output = a.Value.AsString()
		}
	}
	return input, output
}

// Messages have the form of the conventions.
func TestContent(t *testing.T) {
	call := state.ToolCall{ID: "c1", Name: "search", Input: `{"order":"<W1>"}`}
	input, output := contentOf(t, state.InferenceResult{
		Raw:     chatResponse,
		Prompt:  []state.Message{state.SystemText("Be brief.")},
		History: []state.Message{state.UserText("Where is it?"), state.ToolCalls(call), state.ToolResult(call, `"in transit"`)},
		Input:   "And now?",
		Output:  []state.Message{state.AssistantText("In transit.")},
	})
	require.JSONEq(t, `[
		{"role":"system","parts":[{"type":"text","content":"Be brief."}]},
		{"role":"user","parts":[{"type":"text","content":"Where is it?"}]},
		{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"search","arguments":"{\"order\":\"<W1>\"}"}]},
		{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"in transit"}]},
		{"role":"user","parts":[{"type":"text","content":"And now?"}]}
	]`, input)
	require.JSONEq(t, `[{"role":"assistant","parts":[{"type":"text","content":"In transit."}],"finish_reason":"stop"}]`, output)
}

// How an answer has ended is told in the words of the conventions, if they have one.
func TestFinishReasons(t *testing.T) {
	for stop, want := range map[state.Stop]string{
		state.StopEnd: "stop", state.StopCalls: "tool_call", state.StopLength: "length", state.StopFiltered: "content_filter", state.StopFailed: "error",
		state.StopRefused: "refused", state.StopPaused: "paused", state.StopInterrupted: "interrupted", state.StopUnknown: "tired", "": "stop",
	} {
		e := newTelemetry(t, otelstate.Options{})
		e.Inference(t.Context(), state.InferenceResult{Raw: chatResponse, Stop: stop, StopWord: "tired", StartedAt: time.Now(), CreatedAt: time.Now()})
		for _, a := range e.spans()[0].Attributes() {
			if a.Key == "gen_ai.response.finish_reasons" {
				require.Equal(t, []string{want}, a.Value.AsStringSlice())
				want = ""
			}
		}
		require.Empty(t, want, "no reason is told of %q", stop)
	}
}

// A long conversation loses its oldest messages, and a long message its end.
func TestContentIsClipped(t *testing.T) {
	var history []state.Message
	for i := range 1000 {
		history = append(history, state.UserText(fmt.Sprintf("message %d", i)))
	}
	input, output := contentOf(t, state.InferenceResult{
		History: history, Output: []state.Message{state.AssistantText(strings.Repeat("ü", 10_000)), state.AssistantText("left out")},
	})
	var messages []map[string]any
	require.NoError(t, json.Unmarshal([]byte(input), &messages))
	require.Contains(t, input, "message 999")
	require.NotContains(t, input, "message 1\"")
	require.Greater(t, len(input), 4<<10)
	require.Less(t, len(input), 9<<10)
	require.NoError(t, json.Unmarshal([]byte(output), &messages))
	require.Greater(t, len(output), 7<<10)
	require.Less(t, len(output), 9<<10)
	require.True(t, utf8.ValidString(output))
	require.Contains(t, output, "ü…")
	require.NotContains(t, output, "left out")
}
