package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

func TestGeminiContents(t *testing.T) {
	tests := []struct {
		name, contents string
		want           []string
	}{
		{"text", `[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"hello"}]}]`, []string{
			`{"type":"text","role":"user","content":"hi"}`,
			`{"type":"text","role":"assistant","content":"hello"}`}},
		{"no role, null role, other roles", `[{"parts":[{"text":"a"}]},{"role":null,"parts":[{"text":"b"}]},{"role":"system","parts":[{"text":"c"}]}]`, []string{
			`{"type":"text","role":"user","content":"a","gemini":{"without":["role"]}}`,
			`{"type":"text","role":"user","content":"b","gemini":{"more":{"role":null}}}`,
			`{"type":"text","role":"system","content":"c","gemini":{"more":{"role":"system"}}}`}},
		{"one content without an array", `{"parts":[{"text":"a"}]}`, []string{
			`{"type":"text","role":"user","content":"a","gemini":{"in":"contents","without":["role"]}}`}},
		{"none", `[]`, []string{}},
		{"no parts", `[{"role":"user","parts":[]},{"role":"model"},{"role":"model","parts":null}]`, []string{
			`{"type":"text","role":"user","content":[],"gemini":{}}`,
			`{"type":"text","role":"assistant","content":[],"gemini":{"without":["parts"]}}`,
			`{"type":"text","role":"assistant","content":[],"gemini":{"more":{"parts":null}}}`}},
		{"thoughts, signatures, media and what nobody knows", `[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a","thoughtSignature":"cw=="},{"text":null},{"inline_data":{"mime_type":"image/png","data":"aQ=="}},{"new":1}]}]`, []string{
			`{"type":"text","role":"assistant","content":[{"text":"hm","thought":true},{"type":"text","text":"a","thoughtSignature":"cw=="},{"text":null},{"inline_data":{"mime_type":"image/png","data":"aQ=="}},{"new":1}],"gemini":{}}`}},
		{"text and calls", `[{"role":"model","parts":[{"text":"I look"},{"functionCall":{"name":"f","args":{"n":1.0}},"thoughtSignature":"cw=="},{"functionCall":{"id":"","name":"g"}}]}]`, []string{
			`{"type":"text","role":"assistant","content":"I look"}`,
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f","input":{"n":1.0},"gemini":{"more":{"thoughtSignature":"cw=="}}},{"type":"tool","id":"","name":"g","gemini":{"in":{"functionCall":{"more":{"id":""}}}}}],"gemini":{"joined":true}}`}},
		{"calls in another content", `[{"role":"model","parts":[{"text":"I look"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":null}}]}]`, []string{
			`{"type":"text","role":"assistant","content":"I look"}`,
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f","input":null}],"gemini":{"joined":false}}`}},
		{"snake case", `[{"role":"model","parts":[{"function_call":{"name":"f","id":"1","args":{}},"thought_signature":"cw=="}]},{"role":"user","parts":[{"function_response":{"name":"f","id":"1","response":{"output":1}}}]}]`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{},"gemini":{"as":"function_call","more":{"thought_signature":"cw=="}}}],"gemini":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":"f"},"content":{"output":1},"gemini":{"as":"function_response"}}`}},
		{"results", `[{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"a":1},"parts":[{"fileData":{"fileUri":"u"}}]}},{"functionResponse":{"name":"g"},"x":1},{"text":"go on"}]},{"role":"user","parts":[{"functionResponse":{"name":"h","response":null}}]}]`, []string{
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"f"},"content":{"a":1},"gemini":{"more":{"role":"function"},"part":{"in":{"functionResponse":{"more":{"parts":[{"fileData":{"fileUri":"u"}}]}}}}}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"g"},"gemini":{"joined":true,"part":{"more":{"x":1}}}}`,
			`{"type":"text","role":"function","content":"go on","gemini":{"joined":true}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"h"},"content":null,"gemini":{}}`}},
		{"results of several contents", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{}}}]}]`, []string{
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"f"},"content":{},"gemini":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"g"},"content":{},"gemini":{"joined":false}}`}},
		{"empty text next to a call", `[{"role":"model","parts":[{"text":""},{"functionCall":{"name":"f"}},{"text":""}]}]`, []string{
			`{"type":"text","role":"assistant","content":"","gemini":{"joined":false}}`,
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f"}],"gemini":{"joined":true}}`,
			`{"type":"text","role":"assistant","content":"","gemini":{"joined":true}}`}},
		{"a call and its result in one content", `[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionResponse":{"name":"f","response":{}}}],"x":null}]`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f"}],"gemini":{"more":{"x":null}}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"f"},"content":{},"gemini":{"joined":true,"role":"model"}}`}},
		{"a part with a type", `[{"role":"model","parts":[{"type":"text","text":"a"}]}]`, []string{
			`{"type":"gemini.message","role":"assistant","item":{"role":"model","parts":[{"type":"text","text":"a"}]}}`}},
		{"invalid calls", `[{"role":"model","parts":[{"functionCall":null,"text":"a"},{"toolCall":{"id":"1"}}]}]`, []string{
			`{"type":"text","role":"assistant","content":[{"type":"text","functionCall":null,"text":"a"},{"toolCall":{"id":"1"}}],"gemini":{}}`}},
		{"the name of the result is that of the call", `[{"role":"model","parts":[{"functionCall":{"id":"1","name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","response":{}}}]}]`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f"}],"gemini":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":"f"},"content":{},"gemini":{"part":{"in":{"functionResponse":{"without":["name"]}}}}}`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := roundTrip(t, provider.Gemini, []byte(`{"contents":`+test.contents+`,"generationConfig":{"temperature":1.0},"seed":18446744073709551616}`))
			require.Equal(t, test.want, rawMessages(request.Messages))
		})
	}
}

func TestGeminiSystemInstruction(t *testing.T) {
	tests := []struct{ name, instruction, want string }{
		{"content", `"systemInstruction":{"parts":[{"text":"s"}]}`, `{"type":"text","role":"system","content":"s","gemini":{"in":"systemInstruction"}}`},
		{"snake case, role", `"system_instruction":{"role":"user","parts":[{"text":"s"}]}`, `{"type":"text","role":"system","content":"s","gemini":{"in":"system_instruction","more":{"role":"user"}}}`},
		{"parts", `"systemInstruction":{"parts":[{"text":"s"},{"functionCall":{"name":"f"}}]}`, `{"type":"text","role":"system","content":[{"type":"text","text":"s"},{"functionCall":{"name":"f"}}],"gemini":{"in":"systemInstruction"}}`},
		{"text", `"systemInstruction":"s"`, `{"type":"text","role":"system","content":"s","gemini":{"in":"systemInstruction","bare":true}}`},
		{"empty", `"systemInstruction":{}`, `{"type":"text","role":"system","content":[],"gemini":{"in":"systemInstruction","without":["parts"]}}`},
		{"a part with a type", `"systemInstruction":{"parts":[{"type":"x"}]}`, `{"type":"gemini.systemInstruction","role":"system","item":{"parts":[{"type":"x"}]}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := roundTrip(t, provider.Gemini, []byte(`{`+test.instruction+`,"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`))
			require.Equal(t, []string{test.want, `{"type":"text","role":"user","content":"hi"}`}, rawMessages(request.Messages))
		})
	}
	roundTrip(t, provider.Gemini, []byte(`{"systemInstruction":{"parts":[{"text":"a"}]},"system_instruction":{"parts":[{"text":"b"}]},"contents":[]}`))
	roundTrip(t, provider.Gemini, []byte(`{"systemInstruction":{"parts":{"type":"x","contents":[{"parts":[]}]}},"contents":[{"parts":{"contents":{"parts":[]}}}]}`))
}

// Messages of other formats are encoded in the notation of Gemini.
func TestGeminiFromOthers(t *testing.T) {
	const user = `{"type":"text","role":"user","content":"hi"}`
	const said = `{"role":"user","parts":[{"text":"hi"}]}`
	tests := []struct {
		name     string
		messages []string
		want     string
		omitted  []string
	}{
		{"system", []string{`{"type":"text","role":"system","content":"a"}`, `{"type":"text","role":"developer","content":[{"type":"text","text":"b","cache_control":{}}]}`, user, `{"type":"text","role":"system","content":"c"}`},
			`{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]},"contents":[` + said + `,{"role":"user","parts":[{"text":"c"}]}]}`, nil},
		{"system next to Gemini's", []string{`{"type":"text","role":"system","content":"a"}`, `{"type":"text","role":"system","content":"s","gemini":{"in":"system_instruction","bare":true}}`, `{"type":"text","role":"system","content":"b"}`, user},
			`{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]},"system_instruction":"s","contents":[` + said + `]}`, nil},
		{"system after what is left out", []string{`{"type":"openai_responses.reasoning","role":"assistant","item":{}}`, `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"b"}]}`, `{"type":"text","role":"developer","content":"a"}`, user},
			`{"systemInstruction":{"parts":[{"text":"a"}]},"contents":[` + said + `]}`,
			[]string{"message 0: message of type openai_responses.reasoning", "message 1: part of type thinking"}},
		{"system next to Gemini's that is kept whole", []string{`{"type":"gemini.system_instruction","role":"system","item":{"role":"x","parts":[{"type":"y"}]}}`, `{"type":"text","role":"system","content":"a"}`, user},
			`{"system_instruction":{"role":"x","parts":[{"type":"y"},{"text":"a"}]},"contents":[` + said + `]}`, nil},
		{"Gemini's system elsewhere", []string{user, `{"type":"text","role":"system","content":"s","gemini":{"in":"system_instruction","more":{"role":"x"}}}`},
			`{"contents":[` + said + `,{"role":"user","parts":[{"text":"s"}]}]}`, nil},
		{"text and calls", []string{user, `{"type":"text","role":"assistant","content":"I look"}`, `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{"a":1.0}},{"id":"","name":"g"},{"id":"3","name":"h","input":"no object"},{"name":"i","input":null}]}`},
			`{"contents":[` + said + `,{"role":"model","parts":[{"text":"I look"},{"functionCall":{"id":"1","name":"f","args":{"a":1.0}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"g","args":{}}},{"functionCall":{"id":"3","name":"h","args":{"arguments":"no object"}}},{"functionCall":{"name":"i","args":{}}}]}]}`, nil},
		{"nothing to say next to calls", []string{user, `{"type":"text","role":"assistant","content":"","openai":{}}`, `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{}}]}`, `{"type":"text","role":"assistant","content":null,"openai":{}}`, `{"type":"tool_call","role":"assistant","tools":[{"id":"2","name":"g"}],"openai":{}}`, `{"type":"text","role":"assistant","content":[{"type":"text","text":""}],"anthropic":{"joined":true}}`},
			`{"contents":[` + said + `,{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"2","name":"g","args":{}}}]}]}`, nil},
		{"calls of several entries", []string{user, `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]}`, `{"type":"tool_call","role":"assistant","tools":[{"id":"2","name":"f"}],"openai":{"joined":false}}`},
			`{"contents":[` + said + `,{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"model","parts":[{"functionCall":{"id":"2","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}]}`, nil},
		{"results", []string{`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":"299.0"}`,
			`{"type":"tool_result","role":"tool_result","tool":{"id":"2","name":"f"},"content":{"a":1}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":"no","is_error":true}`,
			`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":[1]}`,
			`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":null}`,
			`{"type":"tool_result","role":"tool_result","tool":{"name":"f"}}`,
			`{"type":"text","role":"user","content":"hi","anthropic":{"joined":true}}`},
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"299.0"}}},{"functionResponse":{"id":"2","name":"f","response":{"a":1}}},{"functionResponse":{"name":"f","response":{"error":"no"}}},{"functionResponse":{"name":"f","response":{"output":[1]}}},{"functionResponse":{"name":"f","response":{"output":null}}},{"functionResponse":{"name":"f","response":{}}}]},` + said + `]}`, nil},
		{"results of several entries, and a text of the last", []string{`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":"1","anthropic":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"name":"g"},"content":"2","anthropic":{"joined":false}}`, `{"type":"text","role":"user","content":"hi","anthropic":{"joined":true}}`},
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"g","response":{"output":"2"}}}]},` + said + `]}`, nil},
		{"calls of none between results", []string{`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":"1"}`,
			`{"type":"tool_call","role":"assistant","tools":[]}`, `{"type":"tool_result","role":"tool_result","tool":{"name":"g"},"content":"2"}`},
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"g","response":{"output":"2"}}}]}]}`, nil},
		{"nothing to say, alone", []string{`{"type":"text","role":"user","content":"","openai":{}}`, `{"type":"text","role":"assistant","content":"a"}`},
			`{"contents":[{"role":"user","parts":[{"text":""}]},{"role":"model","parts":[{"text":"a"}]}]}`, nil},
		{"results of parts", []string{`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aQ=="}},{"type":"file","file":{"file_data":"aQ=="}}],"anthropic":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":[{"type":"tool_reference","tool_name":"x"}],"anthropic":{}}`},
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"a\nb"},"parts":[{"inlineData":{"mimeType":"image/png","data":"aQ=="}}]}},{"functionResponse":{"name":"f","response":{"output":[{"type":"tool_reference","tool_name":"x"}]}}}]}]}`,
			[]string{"message 0: part of type file"}},
		{"media", []string{`{"type":"text","role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aQ=="}},{"type":"image_url","image_url":{"url":"https://x/y.png"}},{"type":"input_audio","input_audio":{"data":"aQ==","format":"wav"}},{"type":"file","file":{"file_id":"1"}},{"x":1}]}`},
			`{"contents":[{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"aQ=="}},{"fileData":{"fileUri":"https://x/y.png"}},{"inlineData":{"mimeType":"audio/wav","data":"aQ=="}}]}]}`,
			[]string{"message 0: part of type file", "message 0: part of type x"}},
		{"what only others have", []string{`{"type":"text","role":"Orchestrator (thought)","content":"a"}`, `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"b"}],"anthropic":{}}`, `{"type":"openai_responses.reasoning","role":"assistant","item":{}}`, `{"type":"other"}`},
			`{"contents":[{"role":"user","parts":[{"text":"a"}]}]}`,
			[]string{"message 1: part of type thinking", "message 2: message of type openai_responses.reasoning", "message 3: message of type other"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requireEncoded(t, provider.Gemini, messagesOf(t, "["+strings.Join(test.messages, ",")+"]"), test.want, test.omitted)
		})
	}
}

// A message whose neighbour is gone does not end up in the content of another.
func TestGeminiTrimmed(t *testing.T) {
	msgs := roundTrip(t, provider.Gemini, []byte(`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"g","response":{}}}]}]}`)).Messages
	body, _, err := provider.Gemini.EncodeRequest(provider.Request{Messages: []state.Message{msgs[0], msgs[2], msgs[4]}})
	require.NoError(t, err)
	jsonEqual(t, []byte(`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{}}}]}]}`), body)
}

// The role of a message that was changed replaces the role that was kept.
func TestGeminiRoleChanged(t *testing.T) {
	for sent, again := range map[string]string{
		`{"parts":[{"functionCall":{"name":"f"}}]}`:                   `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`,
		`{"role":"function","parts":[{"functionCall":{"name":"f"}}]}`: `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`,
		`{"role":null,"parts":[{"text":"a"},{"text":"b"}]}`:           `{"role":"model","parts":[{"text":"a"},{"text":"b"}]}`,
	} {
		request, err := provider.Gemini.DecodeRequest([]byte(`{"contents":[` + sent + `]}`))
		require.NoError(t, err)
		changed, err := state.DecodeMessage([]byte(strings.Replace(string(request.Messages[0].Raw()), `"role":"`+request.Messages[0].Role(), `"role":"assistant`, 1)))
		require.NoError(t, err)
		body, _, err := provider.Gemini.EncodeRequest(provider.Request{Messages: []state.Message{changed}})
		require.NoError(t, err)
		require.JSONEq(t, `{"contents":[`+again+`]}`, string(body))
	}
}

// geminiStreamed reads events one by one, as server-sent events in one piece and in
// bytes, and as an array, requires the same result, and returns it.
func geminiStreamed(t *testing.T, events [][]byte) state.InferenceResult {
	t.Helper()
	stream, array := provider.Gemini.Stream(), []string{}
	var sse strings.Builder
	for _, event := range events {
		require.NoError(t, stream.Event(event))
		array = append(array, string(event))
		sse.WriteString("data: " + string(event) + "\r\n\r\n")
	}
	result, err := stream.Result()
	require.NoError(t, err)
	whole := "[" + strings.Join(array, "\n,") + "]"
	for _, body := range []string{sse.String(), whole} {
		for _, step := range []int{1, len(body)} {
			split := provider.Gemini.Stream()
			for at := 0; at < len(body); at += step {
				_, _ = split.Write([]byte(body[at : at+step]))
			}
			got, err := split.Result()
			require.NoError(t, err)
			require.Equal(t, body, got.Raw)
			require.Equal(t, rawMessages(result.Output), rawMessages(got.Output))
			require.Equal(t, result.ID, got.ID)
			require.Equal(t, result.CreatedAt, got.CreatedAt)
		}
	}
	return result
}

func TestGeminiResponse(t *testing.T) {
	result, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP","index":0},{"content":{"parts":[{"text":"other"}]},"index":1}],"responseId":"r","createTime":"2026-04-02T17:03:50.399550Z"}`))
	require.NoError(t, err)
	require.Equal(t, []string{`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f","input":{}}],"gemini":{},"stop_reason":"stop"}`}, rawMessages(result.Output))
	require.Equal(t, "r", result.ID)
	require.Equal(t, time.Date(2026, 4, 2, 17, 3, 50, 0, time.UTC), result.CreatedAt)

	for content, again := range map[string]string{ // a content without a role would be the user's
		`{}`:                          `{"role":"model"}`,
		`{"role":"model"}`:            `{"role":"model"}`,
		`{"parts":[{"text":"a"}]}`:    `{"role":"model","parts":[{"text":"a"}]}`,
		`{"role":"model","parts":[]}`: `{"role":"model","parts":[]}`,
	} {
		result, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":` + content + `,"finishReason":"MAX_TOKENS"}]}`))
		require.NoError(t, err)
		require.Len(t, result.Output, 1)
		require.Equal(t, "assistant", result.Output[0].Role())
		require.Equal(t, "MAX_TOKENS", result.Output[0].(state.TextMessage).StopReason())
		requireEncoded(t, provider.Gemini, result.Output, `{"contents":[`+again+`]}`, nil)
	}
	for _, body := range []string{`{}`, `{"candidates":null}`, `{"promptFeedback":null,"responseId":"r"}`} {
		_, err := provider.Gemini.DecodeResponse([]byte(body))
		require.ErrorIs(t, err, state.ErrWrongType, body)
	}
	for _, body := range []string{`{"candidates":[]}`, `{"candidates":[{"finishReason":"SAFETY"}]}`, `{"candidates":[{"content":null}]}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`} {
		result, err := provider.Gemini.DecodeResponse([]byte(body))
		require.NoError(t, err)
		require.Empty(t, result.Output)
	}
	_, err = provider.Gemini.DecodeResponse([]byte(`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`))
	require.Equal(t, &provider.ResponseError{Format: "Gemini", Code: "RESOURCE_EXHAUSTED", Message: "slow down"}, err)
}

// geminiChunk returns an event with parts.
func geminiChunk(parts string, more ...string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + strings.Join(more, "") + `}],"responseId":"r"}`
}

const geminiStops = `,"finishReason":"STOP"`

// A stream gives the content that the whole response has.
func TestGeminiStream(t *testing.T) {
	call := func(inner string) string { return geminiChunk(`{"functionCall":` + inner + `}`) }
	tests := []struct {
		name   string
		events []string
		parts  string
	}{
		{"texts", []string{geminiChunk(`{"text":"a"}`), geminiChunk(`{"text":"b"},{"text":"c"}`), geminiChunk(`{"text":""}`, geminiStops)}, `{"text":"abc"}`},
		{"thoughts", []string{geminiChunk(`{"text":"h","thought":true}`), geminiChunk(`{"thought":true,"text":"m"}`), geminiChunk(`{"text":"a"}`, geminiStops)}, `{"text":"hm","thought":true},{"text":"a"}`},
		{"a signature ends a text", []string{geminiChunk(`{"text":"4"}`), geminiChunk(`{"text":"","thoughtSignature":"cw=="}`), geminiChunk(`{"text":"2"}`, geminiStops)}, `{"text":"4"},{"text":"","thoughtSignature":"cw=="},{"text":"2"}`},
		{"nothing", []string{geminiChunk(`{"text":""}`), geminiChunk(`{"text":""}`, geminiStops)}, `{"text":""}`},
		{"other parts", []string{geminiChunk(`{"text":"a"}`), geminiChunk(`{"inlineData":{"data":"aQ=="}}`), geminiChunk(`{"text":"b"}`, geminiStops)}, `{"text":"a"},{"inlineData":{"data":"aQ=="}},{"text":"b"}`},
		{"other candidates", []string{geminiChunk(`{"text":"a"}`), `{"candidates":[{"index":1,"content":{"parts":[{"text":"x"}]}},{"index":0,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`}, `{"text":"ab"}`},
		{"calls", []string{call(`{"name":"f","args":{"a":1.0}}`), geminiChunk(`{"functionCall":{"name":"f","id":"2"}},{"text":""}`, geminiStops)}, `{"functionCall":{"name":"f","args":{"a":1.0}}},{"functionCall":{"name":"f","id":"2"}}`},
		{"arguments", []string{
			geminiChunk(`{"functionCall":{"name":"f","id":"1","willContinue":true},"thoughtSignature":"cw=="}`),
			call(`{"partialArgs":[{"jsonPath":"$.a","stringValue":"x\"","willContinue":true}],"willContinue":true}`),
			call(`{"partialArgs":[{"jsonPath":"$.a","stringValue":"😀"},{"jsonPath":"$.b[0].c","numberValue":1.50}],"willContinue":true}`),
			call(`{"partialArgs":[{"jsonPath":"$.b[0]['it\\'s \"d\".']","boolValue":true},{"jsonPath":"$.b[1]","nullValue":"NULL_VALUE"},{"jsonPath":"$['e'][\"f\"]","stringValue":""}],"willContinue":true}`),
			call(`{"willContinue":true}`), call(`{"partialArgs":[{"jsonPath":"$.g[1]","numberValue":2}]}`), call(`{}`), geminiChunk(``, geminiStops)},
			`{"functionCall":{"name":"f","id":"1","args":{"a":"x\"😀","b":[{"c":1.50,"it's \"d\".":true},null],"e":{"f":""},"g":[null,2]}},"thoughtSignature":"cw=="}`},
		{"a call without an end", []string{call(`{"name":"f","willContinue":true}`), call(`{"name":"g","willContinue":true}`), call(`{"partialArgs":[{"jsonPath":"$.a","nullValue":null}],"willContinue":true}`), geminiChunk(`{"text":"t"}`, geminiStops)}, `{"functionCall":{"name":"f"}},{"functionCall":{"name":"g","args":{"a":null}}},{"text":"t"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			events := make([][]byte, len(test.events))
			for i, event := range test.events {
				events[i] = []byte(event)
			}
			result := geminiStreamed(t, events)
			require.Equal(t, "r", result.ID)
			content := `{"role":"model","parts":[` + test.parts + `]}`
			requireEncoded(t, provider.Gemini, result.Output, `{"contents":[`+content+`]}`, nil)
			whole, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":` + content + geminiStops + `}]}`))
			require.NoError(t, err)
			require.Equal(t, rawMessages(whole.Output), rawMessages(result.Output))
		})
	}
}

func TestGeminiStreamTroubles(t *testing.T) {
	partial := func(piece string) string {
		return geminiChunk(`{"functionCall":{"name":"f","partialArgs":[` + piece + `,{"jsonPath":"$.a","numberValue":1}]}}`)
	}
	tests := []struct {
		name   string
		events []string
		output []string // of each message, its String, or the input of a call
		errs   []string
	}{
		{"broken off", []string{geminiChunk(`{"text":"a"}`)}, []string{"a"}, []string{"provider: incomplete stream"}},
		{"no JSON", []string{geminiChunk(`{"text":"a"}`), `{"candidates":`, geminiChunk(`{"text":"b"}`, geminiStops)}, []string{"ab"}, []string{"event 1: provider: Gemini: $.candidates: "}},
		{"of another kind", []string{`{"candidates":1}`, geminiChunk(`1,{"text":"a"}`, geminiStops)}, []string{"a"}, []string{"event 0: provider: Gemini: $.candidates: want array", "event 1: provider: Gemini: $.candidates[0].content.parts[0]: want object"}},
		{"failed", []string{geminiChunk(`{"text":"a"}`), `{"error":{"code":500,"message":"m","status":"INTERNAL"}}`}, []string{"a"}, []string{`the response is an error of type "INTERNAL"`}},
		{"blocked", []string{`{"promptFeedback":{"blockReason":"SAFETY"},"responseId":"r"}`}, nil, nil},
		{"nothing", nil, nil, []string{"provider: incomplete stream"}},
		{"a path too far", []string{partial(`{"jsonPath":"$.b[99999999]","numberValue":1}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"parts[0].functionCall.partialArgs[0].jsonPath: is not a path"}},
		{"a path too deep", []string{partial(`{"jsonPath":"$` + strings.Repeat(".b", 41) + `","numberValue":1}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"partialArgs[0].jsonPath: is not a path"}},
		{"a value in two places", []string{geminiChunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a.b","numberValue":2},{"jsonPath":"$.a","stringValue":"c"},{"jsonPath":"$","stringValue":"c"}]}}`, geminiStops)}, []string{`{"a":"c"}`}, []string{"partialArgs[1].jsonPath: is not a path"}},
		{"values of other kinds", []string{partial(`{"jsonPath":"$.b","numberValue":"1"}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"partialArgs[0].numberValue: want number, got string"}},
	}
	for _, path := range []string{"", "a", "$", "$.", "$a", "$[", "$[]", "$[-1]", "$[a]", "$['a", "$['a'", "$['a']b", "$['\\x']", "$[0", "$..a"} {
		tests = append(tests, struct {
			name   string
			events []string
			output []string
			errs   []string
		}{"path " + path, []string{partial(`{"jsonPath":` + string(state.JSONText(path)) + `,"boolValue":true}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"jsonPath: is not a path"}})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stream := provider.Gemini.Stream()
			for _, event := range test.events {
				_ = stream.Event([]byte(event)) // Result returns it
			}
			result, err := stream.Result()
			var output []string
			for _, m := range result.Output {
				switch m := m.(type) {
				case state.TextMessage:
					output = append(output, m.Text())
				case state.ToolCallMessage:
					output = append(output, string(m.Calls()[0].Input))
				}
			}
			require.Equal(t, test.output, output)
			if test.errs == nil {
				require.NoError(t, err)
			}
			for _, want := range test.errs {
				require.ErrorContains(t, err, want)
			}
		})
	}

	failed := provider.Gemini.Stream()
	_, _ = failed.Write([]byte(`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`))
	_, err := failed.Result()
	var refused *provider.ResponseError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "INVALID_ARGUMENT", refused.Code)
}

// Google's REST clients ask for enums as numbers.
func TestGeminiEnumsAsNumbers(t *testing.T) {
	for _, test := range []struct {
		reason, stop string
		complete     bool
	}{
		{`1`, "stop", true}, {`"STOP"`, "stop", true}, {`2`, "MAX_TOKENS", true}, {`3`, "SAFETY", true}, {`4`, "RECITATION", true}, {`5`, "OTHER", true},
		{`8`, "8", true}, {`0`, "", false}, {`"FINISH_REASON_UNSPECIFIED"`, "", false}, {`null`, "", false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			body := `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":` + test.reason + `}]}`
			whole, err := provider.Gemini.DecodeResponse([]byte(body))
			require.NoError(t, err)
			require.Equal(t, test.stop, whole.Output[0].(state.TextMessage).StopReason())
			s := provider.Gemini.Stream()
			require.NoError(t, s.Event([]byte(body)))
			streamed, err := s.Result()
			if test.complete {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, provider.ErrIncomplete)
			}
			require.Equal(t, rawMessages(whole.Output), rawMessages(streamed.Output))
		})
	}
	s := provider.Gemini.Stream()
	require.NoError(t, s.Event([]byte(`{"promptFeedback":{"blockReason":1}}`)))
	_, err := s.Result()
	require.NoError(t, err, "the prompt was blocked")

	s = provider.Gemini.Stream()
	require.NoError(t, s.Event([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","nullValue":0}]}}]},"finishReason":1}]}`)))
	result, err := s.Result()
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"a":null}`), result.Output[0].(state.ToolCallMessage).Calls()[0].Input)
}
