package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// streamed gives the events to a stream.
func streamed(events ...string) (state.InferenceResult, error) {
	s := provider.OpenAIResponses.Stream()
	for _, event := range events {
		_ = s.Event([]byte(event)) // Result returns it
	}
	return s.Result()
}

const (
	created   = `{"type":"response.created","response":{"id":"resp_1","created_at":1700000000,"status":"in_progress","output":[]}}`
	completed = `{"type":"response.completed","response":{"id":"resp_1","created_at":1700000000,"status":"completed","output":[]}}`
)

func TestResponsesStream(t *testing.T) {
	callDone := `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"}}`
	for _, c := range []struct {
		name   string
		events []string
		output string // as the items of an input
		stop   string
		err    string // each of its lines is in the error of Result
	}{
		{"nothing", nil, ``, "", "incomplete stream"},
		{"no item", []string{created, completed}, ``, "", ""},
		{"items are done, and the last event lacks them", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a","role":"assistant","content":[]}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"x","delta":"{\"a\":"}`, callDone,
			`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"x","delta":"late"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"b","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}`,
			completed},
			`{"type":"message","id":"b","role":"assistant","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"}`, "stop", ""},
		{"the last event has the items", []string{created, callDone,
			`{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"function_call","id":"fc_3","call_id":"c","name":"f","arguments":"{}"}]}}`},
			`{"type":"function_call","id":"fc_3","call_id":"c","name":"f","arguments":"{}"}`, "content_filter", ""},
		{"broken off in a text", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}}`,
			`{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
			`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"99 "}`,
			`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"eu\u0072o","obfuscation":"x"}`,
			`{"type":"response.refusal.delta","output_index":0,"content_index":2,"delta":"no"}`},
			`{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"99 euro","annotations":[]},{"type":"refusal","refusal":"no"}]}`, "", "incomplete stream"},
		{"broken off after parts were done", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"0"}],"content":[]}}`,
			`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"th"}`,
			`{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":1,"text":"thought"}`,
			`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"more"}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","content":[]}}`,
			`{"type":"response.content_part.done","output_index":1,"content_index":0,"part":{"type":"output_text","text":"a","annotations":[{}]}}`},
			`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"0"},{"type":"summary_text","text":"thought"}],"content":[{"type":"reasoning_text","text":"more"}]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{}]}]}`, "", "incomplete stream"},
		{"broken off in calls", []string{created,
			`{"type":"response.output_item.added","output_index":3,"item":{"type":"custom_tool_call","call_id":"d","name":"grep","input":""}}`,
			`{"type":"response.custom_tool_call_input.delta","output_index":3,"delta":"-r"}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a"}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"mcp_call","id":"m"}}`,
			`{"type":"response.mcp_call_arguments.done","output_index":1,"arguments":"{}"}`,
			`{"type":"response.output_item.added","output_index":2,"item":{"type":"code_interpreter_call","id":"i","code":null}}`,
			`{"type":"response.code_interpreter_call_code.delta","output_index":2,"delta":"1+"}`},
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a"},{"type":"mcp_call","id":"m","arguments":"{}"},{"type":"code_interpreter_call","id":"i","code":"1+"},
			{"type":"custom_tool_call","call_id":"d","name":"grep","input":"-r"}`, "", "incomplete stream"},
		{"events that are no JSON", []string{`{"type":"response.created"`, callDone, `{"type":"response.completed"`},
			`{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"}`, "", "event 0: provider: OpenAIResponses: $\nevent 2\nincomplete stream"},
		{"events that are odd", []string{created, `[]`, `{"type":7}`, `{}`, `{"type":"response.output_text.delta","output_index":5,"content_index":0,"delta":"no item"}`,
			`{"type":"response.output_item.done","item":{}}`, `{"type":"response.output_item.done","output_index":-1,"item":{}}`, `{"type":"response.output_item.done","output_index":0}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"x"}}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":7}`,
			`{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, `{"type":"response.content_part.added","output_index":0,"content_index":0,"part":7}`,
			`{"type":"response.new_thing.delta","delta":{}}`, completed},
			`{"type":"x"}`, "stop", "event 1: provider: OpenAIResponses: $: want object\nevent 5: provider: OpenAIResponses: $.output_index\nevent 6\nevent 7: provider: OpenAIResponses: $.item: want object, got nothing\nevent 9: provider: OpenAIResponses: $.delta\nevent 10: provider: OpenAIResponses: $.content_index\nevent 11: provider: OpenAIResponses: $.part"},
		{"an error in the stream", []string{created, callDone, `{"type":"error","sequence_number":3,"code":"server_error","message":"secret","param":null}`},
			`{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"}`, "", `the response is an error of type "server_error"`},
		{"an error of another shape", []string{created, `{"type":"error","error":{"type":"rate_limit","message":"secret"}}`}, ``, "", `the response is an error of type "rate_limit"`},
		{"failed", []string{created, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"secret"},"output":[]}}`},
			``, "", `the response is an error of type "server_error"`},
		{"failed after an item", []string{created, callDone, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"secret"},"output":[]}}`},
			`{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"}`, "failed", ""},
		{"a response after the first", []string{created, callDone, completed, created, callDone, completed},
			`{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"function_call","id":"fc_2","call_id":"c","name":"f","arguments":"{\"a\":1}"}`, "stop", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := streamed(c.events...)
			if c.err == "" {
				require.NoError(t, err)
				require.Equal(t, "resp_1", result.ID)
			} else {
				for _, line := range strings.Split(c.err, "\n") {
					require.ErrorContains(t, err, line)
				}
				require.NotContains(t, err.Error(), "secret")
				require.Equal(t, strings.Contains(c.err, "incomplete"), errors.Is(err, provider.ErrIncomplete))
			}
			raw := ""
			for _, event := range c.events {
				raw += event + "\n"
			}
			require.Equal(t, raw, result.Raw)
			input, omitted := inputOf(t, result.Output)
			require.Empty(t, omitted)
			if c.output == "" {
				require.Empty(t, result.Output)
				return
			}
			jsonEqual(t, []byte("["+c.output+"]"), input)
			var last struct {
				Stop string `json:"stop_reason"`
			}
			require.NoError(t, json.Unmarshal([]byte(result.Output[len(result.Output)-1].Raw()), &last))
			require.Equal(t, c.stop, last.Stop)
		})
	}
}

// The result of a stream is what its last event has. Without the items of that
// event it is the same, except for what the provider writes differently there.
func TestResponsesStreamTraces(t *testing.T) {
	streams := map[string][][]byte{}
	for _, e := range exchanges(t, "openai_responses") {
		if e.stream != nil {
			streams[fmt.Sprint(e.file, e.index)] = e.stream
		}
	}
	for _, f := range recordings(t, "stream_openai_responses") {
		streams[f.name] = events(t, f)
	}
	exact, assembled, respelled, broken := 0, 0, 0, 0
	for name, sent := range streams {
		var whole json.RawMessage
		unnamed := make([]string, len(sent)) // the events without the items of the last
		all := make([]string, len(sent))
		for i, event := range sent {
			all[i], unnamed[i] = string(event), string(event)
			var members map[string]json.RawMessage
			if json.Unmarshal(event, &members) != nil || string(members["type"]) != `"response.completed"` {
				continue
			}
			whole = members["response"]
			var response map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(whole, &response))
			response["output"] = json.RawMessage("[]")
			members["response"], _ = json.Marshal(response)
			data, err := json.Marshal(members)
			require.NoError(t, err)
			unnamed[i] = string(data)
		}
		result, err := streamed(all...)
		if whole == nil { // its last event is not JSON
			require.ErrorIs(t, err, provider.ErrIncomplete, name)
			require.NotEmpty(t, result.Output, name)
			broken++
			continue
		}
		require.NoError(t, err, name)
		want, err := provider.OpenAIResponses.DecodeResponse(whole)
		require.NoError(t, err, name)
		require.Equal(t, want.ID, result.ID)
		require.Equal(t, want.CreatedAt, result.CreatedAt)
		require.Equal(t, rawMessages(want.Output), rawMessages(result.Output), name)
		exact++

		result, err = streamed(unnamed...)
		require.NoError(t, err, name)
		items, _ := inputOf(t, result.Output)
		var response struct{ Output json.RawMessage }
		require.NoError(t, json.Unmarshal(whole, &response))
		if state.JSON(response.Output).Equal(state.JSON(items)) {
			assembled++
			continue
		}
		require.JSONEq(t, string(withoutIdentity(t, response.Output)), string(withoutIdentity(t, items)), name)
		respelled++
	}
	t.Logf("%d streams are what their last event has; put together of items %d are, too, and %d but for id and encrypted_content; %d lack the last event",
		exact, assembled, respelled, broken)
}

// withoutIdentity returns items without what differs from event to event.
func withoutIdentity(t *testing.T, items []byte) []byte {
	t.Helper()
	var list []map[string]any
	require.NoError(t, json.Unmarshal(items, &list))
	for _, item := range list {
		maps.DeleteFunc(item, func(name string, _ any) bool {
			return name == "id" || name == "encrypted_content" || name == "tools" && item["type"] == "mcp_list_tools" // known only at the end
		})
	}
	data, err := json.Marshal(list)
	require.NoError(t, err)
	return data
}

// Parts may come out of order. A place far behind them is an error, because it
// would cost memory.
func TestResponsesStreamWithDistantParts(t *testing.T) {
	added := `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}`
	delta := `{"type":"response.output_text.delta","output_index":0,"content_index":%d,"delta":"a"}`
	result, err := streamed(added, fmt.Sprintf(delta, 3), fmt.Sprintf(delta, 1_000_000), completed)
	require.ErrorContains(t, err, "event 2: provider: OpenAIResponses: $.content_index: is too far behind the other parts")
	require.ErrorIs(t, err, state.ErrWrongType)
	require.Equal(t, "a", result.Output[0].(state.TextMessage).Text())
}
