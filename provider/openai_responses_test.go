package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/transcript"
)

// described returns the messages in short.
func described(msgs []state.Message) []string {
	lines := []string{}
	for _, m := range msgs {
		line := m.String()
		if _, ok := m.(state.UnknownMessage); ok {
			line = line[:strings.LastIndex(line, ":")] // without its size
		}
		lines = append(lines, line)
	}
	return lines
}

// inputOf returns the input of a request with the messages.
func inputOf(t *testing.T, msgs []state.Message) (input []byte, omitted []provider.Omission) {
	t.Helper()
	body, omitted, err := provider.OpenAIResponses.EncodeRequest(provider.Request{Messages: msgs})
	require.NoError(t, err)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &members))
	return members["input"], omitted
}

// responsesRequests are requests and their messages in short. Each is exact
// after a round trip.
var responsesRequests = []struct {
	name, body string
	want       []string
}{
	{"nothing", `{}`, []string{}},
	{"input is missing", `{"previous_response_id":"resp_1","model":"m"}`, []string{}},
	{"input is null", `{"input":null,"instructions":null}`, []string{}},
	{"input is empty", `{"input":[],"model":"m"}`, []string{}},
	{"input is a text", `{"model":"m","input":"hi","n":1.0}`, []string{`text "user": "hi"`}},
	{"instructions", `{"instructions":"be\u0020kind","input":""}`, []string{`text "system": "be kind"`, `text "user": ""`}},
	{"instructions only", `{"instructions":""}`, []string{`text "system": ""`}},
	{"instructions and a system message", `{"instructions":"a","input":[{"role":"system","content":"b"},{"role":"user","content":"c"}]}`,
		[]string{`text "system": "a"`, `text "system": "b"`, `text "user": "c"`}},
	{"easy messages", `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"developer","content":[]},{"role":"critic","content":null}]}`,
		[]string{`text "user": "a"`, `text "assistant": "b"`, `text "developer": ""`, `text "critic": ""`}},
	{"texts in parts", `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a","x":1},{"type":"input_image","image_url":"u"},{"text":"b","type":"input_text"}]},
		{"type":"message","id":"msg_1","status":"completed","phase":null,"role":"assistant","content":[{"type":"output_text","text":"c","annotations":[],"logprobs":[{"logprob":-0.0}]},{"type":"refusal","refusal":"no"}]}]}`,
		[]string{`text "user": "a\nb"`, `text "assistant": "c"`}},
	{"parts in the words of others", `{"input":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"output_text","text":"b"}]},{"role":"assistant","content":[{"type":"input_text","text":"c"}]}]}`,
		[]string{`text "user": "a"`, `text "assistant": ""`}},
	{"invalid messages", `{"input":[{"role":"user"},{"role":"user","content":7},{"type":"message","content":"a"},{"role":"user","content":[1]},{"role":"user","content":[{"type":"text"}]}]}`,
		[]string{`unknown "openai_responses.message" "user"`, `unknown "openai_responses.message" "user"`, `unknown "openai_responses.message" "assistant"`,
			`unknown "openai_responses.message" "user"`, `unknown "openai_responses.message" "user"`}},
	{"calls that follow each other", `{"input":[{"type":"function_call","call_id":"c1","id":"fc_1","name":"f","arguments":"{\"a\": 1}","status":"completed"},{"type":"function_call","call_id":"c2","name":"g","arguments":""},
		{"type":"function_call_output","call_id":"c2","output":"299.0"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_file","file_id":"f_1"}],"status":null}]}`,
		[]string{`tool_call "assistant": "f" id "c1" "g" id "c2"`, `tool_result "g" id "c2": "299.0"`, `tool_result "f" id "c1": "[{\"type\":\"input_file\",\"file_id\":\"f_1\"}]"`}},
	{"calls that reasoning separates", `{"input":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"c1","name":"g","arguments":"{}"}]}`,
		[]string{`tool_call "assistant": "f" id "c1"`, `unknown "openai_responses.reasoning" "assistant"`, `tool_call "assistant": "g" id "c1"`}},
	{"odd calls", `{"input":[{"type":"function_call","call_id":null,"name":"f"},{"type":"function_call","name":"f","arguments":{"a":1e2}},{"type":"function_call","call_id":"","name":null,"arguments":"no \u006a son"},{"type":"function_call","call_id":"c","name":"f","arguments":null}]}`,
		[]string{`tool_call "assistant": "f" id "" "f" id "" "" id "" "f" id "c"`}},
	{"invalid calls", `{"input":[{"type":"function_call","call_id":7,"name":"f"},{"type":"custom_tool_call","call_id":"c","name":"f","input":{}},{"type":"function_call_output","output":"x"}]}`,
		[]string{`unknown "openai_responses.function_call" "assistant"`, `unknown "openai_responses.custom_tool_call" "assistant"`, `unknown "openai_responses.function_call_output" "assistant"`}},
	{"an output without a call", `{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c","output":""},{"type":"function_call_output","call_id":"c"}]}`,
		[]string{`tool_result "" id "c": ""`, `tool_result "" id "c": ""`}},
	{"custom tools", `{"input":[{"type":"custom_tool_call","call_id":"c","id":"ctc_1","name":"grep","input":"-r \"x\""},{"type":"custom_tool_call_output","call_id":"c","output":"none"}]}`,
		[]string{`tool_call "assistant": "grep" id "c"`, `tool_result "grep" id "c": "none"`}},
	{"tools that the client runs", `{"input":[{"type":"shell_call","id":"sh_1","call_id":"c","status":"completed","action":{"commands":["ls"]},"name":"x"},{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a"}],"max_output_length":9},
		{"type":"tool_search_call","execution":"client","call_id":"s","arguments":{}},{"type":"tool_search_output","call_id":"s","tools":[{"name":"f"}],"execution":"client"}]}`,
		[]string{`tool_call "assistant": "shell_call" id "c"`, `tool_result "shell_call" id "c": "[{\"stdout\":\"a\"}]"`, `tool_call "assistant": "tool_search_call" id "s"`, `tool_result "tool_search_call" id "s": "[{\"name\":\"f\"}]"`}},
	{"tools that the provider runs", `{"input":[{"type":"shell_call","call_id":"c","environment":{"type":"container_auto"}},{"type":"shell_call_output","call_id":"c","output":[]},{"type":"tool_search_call","execution":"server","call_id":null},
		{"type":"tool_search_output","execution":"server","call_id":null,"tools":[]},{"type":"x_search_call","call_id":"","name":"x","arguments":"{}"},{"type":"program_output","call_id":"p","result":"1"},{"type":"web_search_call","id":"ws"},
		{"type":"tool_search_output","execution":"server","call_id":"t","tools":[]},{"type":"function_call","call_id":"f","name":"f","arguments":"{}","environment":{"type":"container"}},{"type":"function_call_output","call_id":"f","output":""}]}`,
		[]string{`unknown "openai_responses.shell_call" "assistant"`, `unknown "openai_responses.shell_call_output" "assistant"`, `unknown "openai_responses.tool_search_call" "assistant"`,
			`unknown "openai_responses.tool_search_output" "assistant"`, `unknown "openai_responses.x_search_call" "assistant"`, `unknown "openai_responses.program_output" "assistant"`, `unknown "openai_responses.web_search_call" "assistant"`,
			`unknown "openai_responses.tool_search_output" "assistant"`, `tool_call "assistant": "f" id "f"`, `tool_result "f" id "f": ""`}},
	{"other items", `{"input":[{"id":"msg_1"},{"type":"mcp_approval_response","approve":true},{"type":"compaction","encrypted_content":"e"},{"type":"additional_tools","role":"developer","tools":[]},{"type":7}]}`,
		[]string{`unknown "openai_responses.item_reference" "assistant"`, `unknown "openai_responses.mcp_approval_response" "user"`, `unknown "openai_responses.compaction" "assistant"`,
			`unknown "openai_responses.additional_tools" "developer"`, `unknown "openai_responses.item_reference" "assistant"`}},
}

func TestResponsesRequest(t *testing.T) {
	for _, c := range responsesRequests {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, described(roundTrip(t, provider.OpenAIResponses, []byte(c.body)).Messages))
		})
	}
}

func TestResponsesCallInput(t *testing.T) {
	for item, want := range map[string]state.JSON{
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\" : 1.0}"}`:                     `{"a":1.0}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`:                                `{}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":""}`:                                  "",
		`{"type":"function_call","call_id":"c","name":"f"}`:                                                 "",
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":"}`:                           `"{\"a\":"`,
		`{"type":"custom_tool_call","call_id":"c","name":"f","input":"{}"}`:                                 `"{}"`,
		`{"type":"local_shell_call","id":"i","call_id":"c","status":"s","action":{"command":["ls"]},"x":1}`: `{"action":{"command":["ls"]},"x":1}`,
	} {
		request, err := provider.OpenAIResponses.DecodeRequest([]byte(`{"input":[` + item + `]}`))
		require.NoError(t, err, item)
		require.Equal(t, want, request.Messages[0].(state.ToolCallMessage).Calls()[0].Input, item)
	}
}

// The content of a message that was changed after decoding replaces the spelling
// that was kept.
func TestResponsesChangedMessages(t *testing.T) {
	request, err := provider.OpenAIResponses.DecodeRequest([]byte(`{"input":[{"type":"function_call","id":"fc_1","name":"f","arguments":"{ }"}]}`))
	require.NoError(t, err)
	call := request.Messages[0].(state.ToolCallMessage).Calls()[0]
	call.ID, call.Input = "c_9", `{"a":1}`
	input, omitted := inputOf(t, []state.Message{state.ToolCalls(call)})
	require.Empty(t, omitted)
	jsonEqual(t, []byte(`[{"type":"function_call","call_id":"c_9","name":"f","arguments":"{\"a\":1}","id":"fc_1"}]`), input)

	request, err = provider.OpenAIResponses.DecodeRequest([]byte(`{"input":[{"id":"msg_1","role":"user","content":[{"type":"text","text":"secret"}]}]}`))
	require.NoError(t, err)
	changed := strings.Replace(string(request.Messages[0].Raw()), "secret", "[removed]", 1)
	input, _ = inputOf(t, []state.Message{message(t, changed)})
	jsonEqual(t, []byte(`[{"id":"msg_1","role":"user","content":[{"type":"input_text","text":"[removed]"}]}]`), input)

	request, err = provider.OpenAIResponses.DecodeRequest([]byte(`{"input":[{"type":"local_shell_call_output","id":"c1","output":"a"}]}`))
	require.NoError(t, err)
	changed = strings.Replace(string(request.Messages[0].Raw()), `"c1"`, `"c2"`, 1)
	input, _ = inputOf(t, []state.Message{message(t, changed)})
	jsonEqual(t, []byte(`[{"type":"local_shell_call_output","call_id":"c2","output":"a"}]`), input)

	request, err = provider.OpenAIResponses.DecodeRequest([]byte(`{"input":"a","instructions":"b"}`))
	require.NoError(t, err)
	body, _, err := provider.OpenAIResponses.EncodeRequest(provider.Request{
		Messages: append([]state.Message{state.SystemText("first")}, append(request.Messages, state.AssistantText("c"))...),
	})
	require.NoError(t, err)
	jsonEqual(t, []byte(`{"input":[{"role":"system","content":"first"},{"role":"system","content":"b"},{"role":"user","content":"a"},{"role":"assistant","content":"c"}]}`), body)
}

func TestResponsesFromOthers(t *testing.T) {
	shell := state.ToolCall{ID: "s", Name: "shell_call", Input: `{"action":{}}`, Extra: `{"openai_responses":{"type":"shell_call"}}`}
	patch := state.ToolCall{ID: "p", Name: "apply_patch_call", Input: `{"operation":{}}`, Extra: `{"openai_responses":{"type":"apply_patch_call"}}`}
	search := state.ToolCall{ID: "t", Name: "tool_search_call", Extra: `{"openai_responses":{"type":"tool_search_call"}}`}
	custom := state.ToolCall{ID: "u", Name: "grep", Input: `"x"`, Extra: `{"openai_responses":{"type":"custom_tool_call"}}`}
	plain := state.ToolCall{ID: "c", Name: "f", Input: `{"a":"<"}`}
	result := func(content string) state.Message {
		return message(t, `{"type":"tool_result","role":"tool_result","tool":{"id":"c","name":"f"}`+content+`}`)
	}
	for _, c := range []struct {
		name    string
		msgs    []state.Message
		want    string
		omitted []string
	}{
		{"text and calls", []state.Message{state.SystemText("s"), state.UserText("q"), state.AssistantText("a"), state.ToolCalls(plain, state.ToolCall{ID: "d", Name: "g"}, state.ToolCall{ID: "e", Name: "h", Input: `"no json"`})},
			`[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":\"<\"}"},
			{"type":"function_call","call_id":"d","name":"g","arguments":"{}"},{"type":"function_call","call_id":"e","name":"h","arguments":"no json"}]`, nil},
		{"media", []state.Message{message(t, `{"type":"text","role":"user","content":[{"type":"text","text":"t","cache_control":{}},{"type":"image_url","image_url":{"url":"https://i"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}},
			{"inlineData":{"mimeType":"application/pdf","data":"Qg=="}},{"type":"file","file":{"filename":"n.pdf","file_data":"data:application/pdf;base64,Qw=="}},{"type":"document","source":{"type":"url","url":"https://d"}},{"text":"u"}],"other":{}}`)},
			`[{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"https://i"},{"type":"input_image","image_url":"data:image/png;base64,QQ=="},
			{"type":"input_file","file_data":"data:application/pdf;base64,Qg=="},{"type":"input_file","filename":"n.pdf","file_data":"data:application/pdf;base64,Qw=="},{"type":"input_file","file_url":"https://d"},{"type":"input_text","text":"u"}]}]`, nil},
		{"its own words", []state.Message{message(t, `{"type":"text","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","file_id":"f","detail":"low"},{"type":"input_file","file_id":"f"}]}`),
			message(t, `{"type":"text","role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"no"}]}`)},
			`[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","file_id":"f","detail":"low"},{"type":"input_file","file_id":"f"}]},
			{"role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"no"}]}]`, nil},
		{"what it cannot say", []state.Message{message(t, `{"type":"text","role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},{"type":"text","text":"a"}]}`),
			message(t, `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"t"},{"text":"u","thought":true},{"type":"image_url","image_url":{"url":"https://i"}}]}`),
			message(t, `{"type":"text","role":"assistant","content":null}`), message(t, `{"type":"text","role":"user"}`), message(t, `{"type":"anthropic.x","role":"user","item":{}}`), message(t, `{"type":"openai_responses.x","role":"user"}`)},
			`[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"role":"assistant","content":"[image left out]"}]`,
			[]string{"message 0: part of type input_audio", "message 1: part of type thinking", "message 1: part of type thought", "message 1: part of type image_url",
				"message 2: text without content", "message 3: text without content", "message 4: message of type anthropic.x", "message 5: message of type openai_responses.x"}},
		{"results", []state.Message{result(`,"content":"299.0"`), result(`,"content":{"a":1}`), result(`,"content":[1,2]`), result(``), result(`,"content":""`), result(`,"content":[]`),
			result(`,"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"https://i"}}]`), result(`,"content":[{"type":"text","text":"a"},{"type":"tool_reference"}]`), state.ToolError(plain, "failed")},
			`[{"type":"function_call_output","call_id":"c","output":"299.0"},{"type":"function_call_output","call_id":"c","output":"{\"a\":1}"},{"type":"function_call_output","call_id":"c","output":"[1,2]"},
			{"type":"function_call_output","call_id":"c","output":""},{"type":"function_call_output","call_id":"c","output":""},{"type":"function_call_output","call_id":"c","output":"[]"},
			{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://i"}]},
			{"type":"function_call_output","call_id":"c","output":"[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_reference\"}]"},{"type":"function_call_output","call_id":"c","output":"failed"}]`, []string{"message 8: is_error"}},
		{"results of calls of the same format", []state.Message{state.ToolResult(shell, `"a"`), state.ToolError(shell, "b"), state.ToolResult(shell, `[{"stdout":"c"}]`), state.ToolResult(patch, `"d"`), state.ToolError(patch, "e"),
			state.ToolResult(search, `[{"name":"f"}]`), state.ToolError(search, "g"), state.ToolResult(custom, `{"h":1}`)},
			`[{"type":"shell_call_output","call_id":"s","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]},{"type":"shell_call_output","call_id":"s","output":[{"stdout":"","stderr":"b","outcome":{"type":"exit","exit_code":1}}]},
			{"type":"shell_call_output","call_id":"s","output":[{"stdout":"c"}]},{"type":"apply_patch_call_output","call_id":"p","output":"d","status":"completed"},{"type":"apply_patch_call_output","call_id":"p","output":"e","status":"failed"},
			{"type":"tool_search_output","call_id":"t","tools":[{"name":"f"}]},{"type":"tool_search_output","call_id":"t","tools":[]},{"type":"custom_tool_call_output","call_id":"u","output":"{\"h\":1}"}]`, []string{"message 6: is_error", "message 6: result that is not a list of tools"}},
		{"a result that does not know its call", []state.Message{state.ToolCalls(custom), state.ToolResult(state.ToolCall{ID: "u"}, `"x"`), state.ToolCalls(state.ToolCall{ID: "u", Name: "f"}), state.ToolResult(state.ToolCall{ID: "u"}, `"y"`)},
			`[{"type":"custom_tool_call","call_id":"u","name":"grep","input":"x"},{"type":"custom_tool_call_output","call_id":"u","output":"x"},
			{"type":"function_call","call_id":"u","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"u","output":"y"}]`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireEncoded(t, provider.OpenAIResponses, c.msgs, `{"input":`+c.want+`}`, c.omitted)
		})
	}
}

func TestResponsesResponse(t *testing.T) {
	said := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}`
	for _, c := range []struct {
		name, body, stop string
		created          int64
		want             []string
	}{
		{"completed", `{"id":"resp_1","created_at":1700000000,"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[]},` + said + `]}`, "stop", 1700000000,
			[]string{`unknown "openai_responses.reasoning" "assistant"`, `text "assistant": "hi"`}},
		{"incomplete", `{"id":"resp_1","created_at":1700000000.5,"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error":null,"output":[` + said + `]}`, "max_output_tokens", 1700000000, []string{`text "assistant": "hi"`}},
		{"failed after an output", `{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"m"},"output":[` + said + `]}`, "failed", 0, []string{`text "assistant": "hi"`}},
		{"in background", `{"id":"resp_1","created_at":null,"status":"queued","output":[],"usage":null}`, "", 0, []string{}},
		{"still in progress", `{"id":"resp_1","created_at":"x","status":"in_progress","output":[` + said + `]}`, "", 0, []string{`text "assistant": "hi"`}},
		{"null", `{"id":"resp_1","created_at":-1e99,"status":null,"output":null,"incomplete_details":null}`, "", 0, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := provider.OpenAIResponses.DecodeResponse([]byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.body, result.Raw)
			require.Equal(t, "resp_1", result.ID)
			require.Equal(t, c.want, described(result.Output))
			if c.created == 0 {
				require.True(t, result.CreatedAt.IsZero())
			} else {
				require.Equal(t, time.Unix(c.created, 0).UTC(), result.CreatedAt)
			}
			stop := ""
			if n := len(result.Output); n > 0 {
				stop = result.Output[n-1].(state.TextMessage).StopReason()
			}
			require.Equal(t, c.stop, stop)
		})
	}
}

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

// Gemini refuses calls of its newer models that come back without the signatures
// of their thoughts.
func TestResponseKeepsThoughtSignatures(t *testing.T) {
	call, err := state.DecodeMessage([]byte(`{"type":"tool_call","role":"assistant","tools":[` +
		`{"type":"tool","id":"1","name":"f","input":{},"thoughtSignature":"cc=="},{"type":"tool","id":"2","name":"g","input":{}}]}`))
	require.NoError(t, err)
	text, err := state.DecodeMessage([]byte(`{"type":"text","role":"assistant","content":[` +
		`{"text":"hm","thought":true,"thoughtSignature":"aa=="},{"text":"a","thoughtSignature":"bb=="}]}`))
	require.NoError(t, err)
	const want = `{"candidates":[{"content":{"role":"model","parts":[` +
		`{"text":"hm","thought":true,"thoughtSignature":"aa=="},{"text":"a","thoughtSignature":"bb=="},` +
		`{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"cc=="},{"functionCall":{"id":"2","name":"g","args":{}}}` +
		`]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":1,` +
		`"candidatesTokenCount":0,"thoughtsTokenCount":1,"totalTokenCount":2},"modelVersion":"m","responseId":"r"}`
	usage := state.Usage{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1, Reasoning: 1}

	output := []state.Message{text, call}
	for range 3 { // what is decoded says the same again
		body, omitted, err := statetest.Response(provider.Gemini, "m", state.InferenceResult{ID: "r", Output: output, Usage: usage})
		require.NoError(t, err)
		require.Empty(t, omitted)
		require.JSONEq(t, want, string(body))
		result, err := provider.Gemini.DecodeResponse(body)
		require.NoError(t, err)
		output = result.Output
	}
	msgs := append([]state.Message{state.UserText("Hi.")}, output...)
	msgs = append(msgs, state.ToolResult(state.ToolCall{ID: "1", Name: "f"}, `{}`), state.ToolResult(state.ToolCall{ID: "2", Name: "g"}, `{}`))
	body, omitted, err := provider.Gemini.EncodeRequest(provider.Request{Messages: msgs})
	require.NoError(t, err)
	require.Empty(t, omitted)
	for _, signature := range []string{"aa==", "bb==", "cc=="} {
		require.Contains(t, string(body), `"thoughtSignature":"`+signature+`"`)
	}
}

// The Responses API refuses a conversation in which two items have one id.
func TestResponsesHaveItemsOfTheirOwn(t *testing.T) {
	var msgs []state.Message
	for _, id := range []string{"resp_1", "resp_2"} {
		call := state.ToolCall{ID: "call_" + id, Name: "f", Input: `{}`}
		output := []state.Message{state.AssistantText("I look."), state.ToolCalls(call)}
		body, _, err := statetest.Response(provider.OpenAIResponses, "m", state.InferenceResult{ID: id, Output: output})
		require.NoError(t, err)
		result, err := provider.OpenAIResponses.DecodeResponse(body)
		require.NoError(t, err)
		msgs = append(append(msgs, result.Output...), state.ToolResult(call, `1`))
	}
	require.Empty(t, transcript.Check(msgs, transcript.OpenAIResponses))
}
