package provider_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const (
	anthropicStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":1}}}`
	anthropicEnd   = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}}`
	anthropicStop  = `{"type":"message_stop"}`
)

// begins and goesOn are events of a block.
func begins(index, block string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":` + block + `}`
}

func goesOn(index, delta string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":` + delta + `}`
}

func TestAnthropicStream(t *testing.T) {
	failed := &provider.ResponseError{Format: "Anthropic", Code: "overloaded_error", Message: "Overloaded"}
	tests := []struct {
		name    string
		events  []string
		content string // empty if there is no output
		stop    string
		err     error  // among others
		problem string // in the error
	}{
		{"text, thinking and calls", []string{anthropicStart, `{"type":"ping"}`,
			begins("0", `{"type":"thinking","thinking":"","signature":""}`), goesOn("0", `{"type":"thinking_delta","thinking":"h"}`),
			goesOn("0", `{"type":"thinking_delta","thinking":"m\n"}`), goesOn("0", `{"type":"signature_delta","signature":"Ab+/="}`), `{"type":"content_block_stop","index":0}`,
			begins("1", `{"type":"redacted_thinking","data":"x=="}`),
			begins("2", `{"type":"text","text":"","citations":null}`), goesOn("2", `{"type":"text_delta","text":"a\ud83d\ude00"}`),
			goesOn("2", `{"type":"citations_delta","citation":{"n":1.0}}`), goesOn("2", `{"type":"text_delta","text":"b"}`), goesOn("2", `{"type":"citations_delta","citation":{"n":2}}`),
			begins("3", `{"type":"tool_use","id":"a","name":"f","input":{}}`), goesOn("3", `{"type":"input_json_delta","partial_json":""}`),
			goesOn("3", `{"type":"input_json_delta","partial_json":"{\"k\": \"\\u00"}`), goesOn("3", `{"type":"input_json_delta","partial_json":"e9\", \"n\": 1.0}"}`),
			anthropicEnd, anthropicStop},
			`[{"type":"thinking","thinking":"hm\n","signature":"Ab+/="},{"type":"redacted_thinking","data":"x=="},{"type":"text","text":"a😀b","citations":[{"n":1.0},{"n":2}]},
			{"type":"tool_use","id":"a","name":"f","input":{"k":"é","n":1.0}}]`, "tool", nil, ""},
		{"blocks that take turns, and a great index", []string{anthropicStart, begins("9999999999", `{"type":"text","text":"a"}`), begins("1", `{"type":"text","text":"c"}`),
			goesOn("9999999999", `{"type":"text_delta","text":"b"}`), goesOn("1", `{"type":"text_delta","text":"d"}`), anthropicEnd, anthropicStop},
			`[{"type":"text","text":"ab"},{"type":"text","text":"cd"}]`, "tool", nil, ""},
		{"no arguments (trap 10): what the block began with stays", []string{anthropicStart, begins("0", `{"type":"tool_use","id":"a","name":"f","input":{}}`),
			goesOn("0", `{"type":"input_json_delta","partial_json":""}`), begins("1", `{"type":"server_tool_use","id":"b","name":"g","input":{"q":1}}`),
			goesOn("1", `{"type":"input_json_delta","partial_json":""}`), anthropicEnd, anthropicStop},
			`[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"server_tool_use","id":"b","name":"g","input":{"q":1}}]`, "tool", nil, ""},
		{"arguments that were cut short", []string{anthropicStart, begins("0", `{"type":"tool_use","id":"a","name":"f","input":{}}`),
			goesOn("0", `{"type":"input_json_delta","partial_json":"{\"k\":\"v"}`), `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, anthropicStop},
			`[{"type":"tool_use","id":"a","name":"f","input":"{\"k\":\"v"}]`, "max_tokens", nil, ""},
		{"deltas nobody knows", []string{anthropicStart, begins("0", `{"type":"compaction","content":null}`), goesOn("0", `{"type":"compaction_delta","content":"a"}`),
			goesOn("0", `{"type":"compaction_delta","content":"b","new":1}`), goesOn("0", `{"type":"x","content":null,"new":[2],"none":null}`), anthropicEnd, anthropicStop},
			`[{"type":"compaction","content":"ab","new":[2],"none":null}]`, "tool", nil, ""},
		{"several messages (trap 39)", []string{anthropicStart, begins("0", `{"type":"text","text":"a"}`), anthropicEnd, anthropicStop,
			`{"type":"message_start","message":{"id":"msg_2","role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"tool_use"}}`, anthropicStop,
			`{"type":"message_start","message":{"id":"msg_3","role":"assistant","content":[]}}`, begins("0", `{"type":"text","text":""}`), goesOn("0", `{"type":"text_delta","text":"b"}`),
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, anthropicStop},
			`[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"b"}]`, "stop", nil, ""},
		{"of which the last is not complete", []string{anthropicStart, anthropicEnd, anthropicStop, anthropicStart},
			`[]`, "", provider.ErrIncomplete, ""},
		{"no content (trap 21)", []string{anthropicStart, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, anthropicStop}, `[]`, "refusal", nil, ""},
		{"broken off", []string{anthropicStart, begins("0", `{"type":"text","text":""}`), goesOn("0", `{"type":"text_delta","text":"a"}`)},
			`[{"type":"text","text":"a"}]`, "", provider.ErrIncomplete, ""},
		{"an error", []string{anthropicStart, begins("0", `{"type":"text","text":"a"}`), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
			`[{"type":"text","text":"a"}]`, "", failed, "event 2"},
		{"an error at once", []string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, ``, "", failed, "event 0"},
		{"invalid events", []string{`nonsense`, anthropicStart, `[]`, begins("0", `{"type":"text","text":"a"}`), `{}`, `{"type":"news"}`, anthropicStop},
			`[{"type":"text","text":"a"}]`, "", state.ErrWrongType, "event 0"},
		{"no beginning", []string{goesOn("0", `{"type":"text_delta","text":"a"}`), anthropicStop}, ``, "", provider.ErrIncomplete, "$.index: no block of that index has begun"},
		{"a block without a message", []string{begins("0", `{}`)}, ``, "", state.ErrWrongType, "$.type: no message has begun"},
		{"a block that has not begun", []string{anthropicStart, goesOn("1", `{"type":"text_delta","text":"a"}`), anthropicStop}, `[]`, "", state.ErrWrongType, "event 1: provider: Anthropic: $.index"},
		{"a message of another kind", []string{`{"type":"message_start"}`}, ``, "", state.ErrWrongType, "$.message: want object"},
		{"a message that begins with a block of another kind", []string{`{"type":"message_start","message":{"id":"msg_1","content":[{"type":"x"},1]}}`, anthropicStop},
			`[{"type":"x"}]`, "", state.ErrWrongType, "$.message.content[1]: want object"},
		{"a block of another kind", []string{anthropicStart, begins("0", `[]`), anthropicStop}, `[]`, "", state.ErrWrongType, "$.content_block: want object"},
		{"a delta of another kind", []string{anthropicStart, begins("0", `{"type":"tool_use"}`), goesOn("0", `{"type":"input_json_delta"}`), goesOn("0", `"a"`), goesOn("0", `{"type":"citations_delta"}`), anthropicStop},
			`[{"type":"tool_use"}]`, "", state.ErrWrongType, "event 2: provider: Anthropic: $.delta.partial_json: want string"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stream := provider.Anthropic.Stream()
			for _, event := range test.events {
				_ = stream.Event([]byte(event)) // Result returns it
			}
			result, err := stream.Result()
			require.Equal(t, strings.Join(test.events, "\n")+"\n", result.Raw)
			if test.err == nil {
				require.NoError(t, err)
			} else {
				var failure *provider.ResponseError
				if !errors.As(err, &failure) || !cmp.Equal(test.err, error(failure)) {
					require.ErrorIs(t, err, test.err)
				}
				require.ErrorContains(t, err, test.problem)
			}
			if test.content == "" {
				require.Empty(t, result.Output)
			} else {
				require.Equal(t, "msg_1", result.ID)
				requireEncoded(t, provider.Anthropic, result.Output, `{"messages":[{"role":"assistant","content":`+test.content+`}]}`, nil)
				last := result.Output[len(result.Output)-1].(interface{ StopReason() string })
				require.Equal(t, test.stop, last.StopReason())
			}
			splitsEverywhere(t, provider.Anthropic, test.events, result, err)
		})
	}
}

// splitsEverywhere requires that a body in two pieces, split anywhere, gives the
// same as its events.
func splitsEverywhere(t *testing.T, f *provider.Format, events []string, want state.InferenceResult, wantErr error) {
	t.Helper()
	var body strings.Builder
	for _, event := range events {
		body.WriteString("event: x\r\ndata: " + event + "\r\n\r\n")
	}
	text := body.String()
	for at := range len(text) {
		stream := f.Stream()
		for _, part := range []string{text[:at], text[at:]} {
			n, err := stream.Write([]byte(part))
			require.NoError(t, err)
			require.Equal(t, len(part), n)
		}
		got, err := stream.Result()
		require.Equal(t, text, got.Raw)
		require.Equal(t, want.ID, got.ID)
		require.Equal(t, rawMessages(want.Output), rawMessages(got.Output))
		require.Equal(t, wantErr, err)
	}
}
