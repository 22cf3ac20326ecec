package provider_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// Each row is messages of any origin, with their entries and omissions.
func TestOpenAIConversation(t *testing.T) {
	const (
		callF = `{"type":"tool","id":"1","name":"f","input":{"a":1.0}}`
		callG = `{"type":"tool","id":"2","name":"g"}`
		sentF = `{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}`
		sentG = `{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}`
		said  = `{"type":"text","role":"assistant","content":"a"}`
	)
	parts := func(role, parts string) string {
		return `{"type":"text","role":"` + role + `","content":[` + parts + `],"anthropic":{}}`
	}
	calls := func(tools, kept string) string {
		return `{"type":"tool_call","role":"assistant","tools":[` + tools + `],"anthropic":{` + kept + `}}`
	}
	result := func(content, more string) string {
		return `{"type":"tool_result","role":"tool_result","tool":` + callF + content + more + `}`
	}
	entry := func(role, content string) string { return `{"role":"` + role + `","content":` + content + `}` }
	for _, test := range []struct {
		name    string
		msgs    []string
		entries []string
		omitted []string
	}{
		{"texts", []string{`{"type":"text","role":"system","content":"a"}`, `{"type":"text","role":"user","content":"b"}`, said, said}, []string{
			entry("system", `"a"`), entry("user", `"b"`), entry("assistant", `"a"`), entry("assistant", `"a"`)}, nil},
		{"calls", []string{calls(callF+","+callG, "")}, []string{
			`{"role":"assistant","content":null,"tool_calls":[` + sentF + `,` + sentG + `]}`}, nil},
		{"text and calls that follow each other are one entry", []string{said, calls(callF, ""), calls(callG, "")}, []string{
			`{"role":"assistant","content":"a","tool_calls":[` + sentF + `,` + sentG + `]}`}, nil},
		{"with what each of them has kept", []string{`{"type":"text","role":"assistant","content":"a","openai":{"more":{"x":1}}}`, `{"type":"tool_call","role":"assistant","tools":[` + callG + `],"openai":{"more":{"y":2,"role":"z"}}}`}, []string{
			`{"role":"assistant","content":"a","tool_calls":[` + sentG + `],"x":1,"y":2}`}, nil},
		{"two calls of before there were tools", []string{`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f","openai":{"kind":"function_call"}},{"type":"tool","id":"","name":"g","openai":{"kind":"function_call"}}],"openai":{}}`}, []string{
			`{"role":"assistant","content":null,"tool_calls":[{"id":"","type":"function","function":{"name":"g","arguments":"{}"}}],"function_call":{"name":"f","arguments":"{}"}}`}, nil},
		{"unless they say that they are not", []string{said, calls(callF, `"joined":false`)}, []string{
			entry("assistant", `"a"`), `{"role":"assistant","content":null,"tool_calls":[` + sentF + `]}`}, nil},
		{"or are of another role", []string{`{"type":"text","role":"critic","content":"a"}`, calls(callF, "")}, []string{
			entry("critic", `"a"`), `{"role":"assistant","content":null,"tool_calls":[` + sentF + `]}`}, nil},
		{"text in and after calls of one entry", []string{said, calls(callF, ""), `{"type":"text","role":"assistant","content":[{"type":"text","text":"b"}],"anthropic":{"joined":true}}`, calls(callG, "")}, []string{
			`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[` + sentF + `,` + sentG + `]}`}, nil},
		{"text after calls of another entry", []string{calls(callF, ""), said}, []string{
			`{"role":"assistant","content":null,"tool_calls":[` + sentF + `]}`, entry("assistant", `"a"`)}, nil},
		{"text of one entry with a result", []string{result(`,"content":"x"`, ""), `{"type":"text","role":"user","content":"b","anthropic":{"joined":true}}`}, []string{
			`{"role":"tool","tool_call_id":"1","content":"x"}`, entry("user", `"b"`)}, nil},
		{"items of others are as if they were not there", []string{`{"type":"openai_responses.reasoning","role":"assistant","item":{}}`, calls(callF, ""), `{"type":"openai_responses.reasoning","role":"assistant","item":{}}`, calls(callG, ""), `{"type":"note"}`, `{"type":"openai.message"}`}, []string{
			`{"role":"assistant","content":null,"tool_calls":[` + sentF + `,` + sentG + `]}`},
			[]string{"message 0: message of type openai_responses.reasoning", "message 2: message of type openai_responses.reasoning", "message 4: message of type note", "message 5: message of type openai.message"}},
		{"thinking is left out", []string{parts("assistant", `{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a","citations":null}`), parts("assistant", `{"type":"redacted_thinking","data":"d"}`), calls(callF, "")}, []string{
			`{"role":"assistant","content":"a","tool_calls":[` + sentF + `]}`},
			[]string{"message 0: part of type thinking", "message 1: part of type redacted_thinking"}},
		{"thinking, and what is empty, is left out, and a text stands for the rest", []string{parts("assistant", `{"type":"thinking"}`), parts("user", ``), parts("user", `{"fileData":{"mimeType":"a/b"}}`), parts("user", `{"type":null}`)}, []string{
			entry("user", `"[file left out]"`), entry("user", `"[content left out]"`)},
			[]string{"message 0: part of type thinking", "message 1: message without content", "message 2: part of type fileData", "message 3: part of type "}},
		{"images, sounds and files", []string{parts("user", `{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iV"}},{"type":"image","source":{"type":"url","url":"https://x"}},`+
			`{"type":"document","title":"t.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JV"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JV"}},{"inlineData":{"mimeType":"text/csv","data":"YQ"}},`+
			`{"inlineData":{"mimeType":"audio/mpeg","data":"SU"}},{"inlineData":{"mimeType":"audio/wav","data":"UK"}},{"type":"input_image","image_url":"data:image/png;base64,iV"}`)}, []string{
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iV"}},{"type":"image_url","image_url":{"url":"https://x"}},` +
				`{"type":"file","file":{"filename":"t.pdf","file_data":"data:application/pdf;base64,JV"}},{"type":"file","file":{"filename":"file.pdf","file_data":"data:application/pdf;base64,JV"}},{"type":"file","file":{"filename":"file","file_data":"data:text/csv;base64,YQ"}},` +
				`{"type":"input_audio","input_audio":{"data":"SU","format":"mp3"}},{"type":"input_audio","input_audio":{"data":"UK","format":"wav"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,iV"}}]}`}, nil},
		{"media that there is no way to say", []string{parts("user", `{"type":"text","text":"a"},{"inlineData":{"mimeType":"audio/ogg","data":"T2"}},{"type":"document","source":{"type":"url","url":"https://x"}},{"type":"image","source":{"type":"file","file_id":"f"}}`),
			parts("assistant", `{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"https://x"}}`)}, []string{
			entry("user", `"a"`), entry("assistant", `"a"`)},
			[]string{"message 0: part of type inlineData", "message 0: part of type document", "message 0: part of type image", "message 1: part of type image"}},
		{"parts in our own words that nobody marked", []string{`{"type":"text","role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"low"}},{"type":"file","file":{"file_id":"f"}}]}`, `{"type":"text","role":"assistant","content":[{"type":"refusal","refusal":"no"},{"type":"output_text","text":"a"}]}`}, []string{
			entry("user", `[{"type":"image_url","image_url":{"url":"u","detail":"low"}},{"type":"file","file":{"file_id":"f"}}]`), entry("assistant", `[{"type":"refusal","refusal":"no"},{"type":"text","text":"a"}]`)}, nil},
		{"results", []string{
			result(`,"content":"299.0"`, ""), result(`,"content":{"a":1.0}`, ""), result(`,"content":[1,2]`, ""), result(`,"content":true`, ""),
			result(`,"content":null`, ""), result("", ""), result(`,"content":[{"type":"car"}]`, ""), result(`,"content":[]`, "")}, []string{
			`{"role":"tool","tool_call_id":"1","content":"299.0"}`, `{"role":"tool","tool_call_id":"1","content":"{\"a\":1.0}"}`, `{"role":"tool","tool_call_id":"1","content":"[1,2]"}`, `{"role":"tool","tool_call_id":"1","content":"true"}`,
			`{"role":"tool","tool_call_id":"1","content":""}`, `{"role":"tool","tool_call_id":"1","content":""}`, `{"role":"tool","tool_call_id":"1","content":"[{\"type\":\"car\"}]"}`, `{"role":"tool","tool_call_id":"1","content":"[]"}`}, nil},
		{"results that are parts", []string{
			result(`,"content":[{"type":"text","text":"a"}]`, `,"anthropic":{}`), result(`,"content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]`, `,"openai_responses":{}`),
			result(`,"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iV"}}]`, ""),
			result(`,"content":[{"type":"tool_reference","tool_name":"f"}]`, `,"anthropic":{}`), result(`,"content":[]`, `,"anthropic":{}`)}, []string{
			`{"role":"tool","tool_call_id":"1","content":"a"}`, `{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			`{"role":"tool","tool_call_id":"1","content":"a"}`, `{"role":"tool","tool_call_id":"1","content":"[content left out]"}`, `{"role":"tool","tool_call_id":"1","content":""}`},
			[]string{"message 2: part of type image", "message 3: part of type tool_reference"}},
		{"what another format keeps of a part", []string{`{"type":"text","role":"user","content":[{"type":"text","text":"a","format:other":{"more":{"mood":"x"}}}],"format:other":{}}`}, []string{
			entry("user", `"a"`)}, []string{"message 0: member mood of part 0"}},
		{"a result that is an error", []string{result(`,"content":"no"`, `,"is_error":true`)}, []string{
			`{"role":"tool","tool_call_id":"1","content":"no"}`}, []string{"message 0: is_error"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			requireEncoded(t, provider.OpenAI, messagesOf(t, "["+strings.Join(test.msgs, ",")+"]"), `{"messages":[`+strings.Join(test.entries, ",")+`]}`, test.omitted)
		})
	}
}

// The result of a call has the kind of the call.
func TestOpenAIAnswersToCalls(t *testing.T) {
	for _, test := range []struct{ name, entry, answer string }{
		{"of a function", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"r"}`},
		{"of a custom tool", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":""}}]}`, `{"role":"tool","tool_call_id":"1","content":"r"}`},
		{"before there were tools", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := provider.OpenAI.DecodeRequest(chatRequest(test.entry))
			require.NoError(t, err)
			call := request.Messages[0].(state.ToolCallMessage).Calls()[0]
			entries, omitted := chatEntries(t, append(request.Messages, state.ToolResult(call, `"r"`)))
			require.Empty(t, omitted)
			require.Equal(t, test.answer, entries[1])
		})
	}
}

func TestOpenAISettingsMustNotHoldMessages(t *testing.T) {
	_, _, err := provider.OpenAI.EncodeRequest(provider.Request{Settings: `{"messages":[{"role":"user","content":"Hi."}]}`})
	require.ErrorContains(t, err, "provider: OpenAI: $.messages: is in the settings")

	_, _, err = provider.OpenAI.EncodeRequest(provider.Request{Settings: `[]`})
	require.EqualError(t, err, "provider: OpenAI: settings: $: want object, got array")

	body, _, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: []state.Message{state.UserText("Hi.")}, Settings: `{"messages":[],"model":"m"}`})
	require.NoError(t, err, "there were none yet")
	require.JSONEq(t, `{"messages":[{"role":"user","content":"Hi."}],"model":"m"}`, string(body))
}
