package provider_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// chatRequest returns a request with the entries.
func chatRequest(entries ...string) []byte {
	return []byte(`{"model":"m","messages":[` + strings.Join(entries, ",") + `]}`)
}

// chatEntries encodes messages and returns the entries.
func chatEntries(t *testing.T, msgs []state.Message) (entries []string, omitted []provider.Omission) {
	t.Helper()
	body, omitted, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: msgs, Settings: `{"model":"m"}`})
	require.NoError(t, err)
	var request struct{ Messages []json.RawMessage }
	require.NoError(t, json.Unmarshal(body, &request))
	require.NotNil(t, request.Messages)
	for _, entry := range request.Messages {
		entries = append(entries, string(entry))
	}
	return entries, omitted
}

// Each row is a request and its messages, which are encoded as the same request.
func TestOpenAIEntries(t *testing.T) {
	const (
		call       = `{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}`
		tool       = `{"type":"tool","id":"1","name":"f","input":{"a":1.0}}`
		calls      = `{"role":"assistant","content":null,"tool_calls":[` + call + `]}`
		callsMsg   = `{"type":"tool_call","role":"assistant","tools":[` + tool + `],"openai":{}}`
		calledText = `{"type":"text","role":"assistant","content":"a"}`
	)
	for _, test := range []struct {
		name    string
		entries []string
		out     []string
	}{
		{"none", nil, []string{}},
		{"text", []string{`{"role":"user","content":"hi"}`}, []string{
			`{"type":"text","role":"user","content":"hi"}`}},
		{"system and developer, also later", []string{`{"role":"system","content":"a"}`, `{"role":"user","content":"b"}`, `{"role":"developer","content":"c"}`}, []string{
			`{"type":"text","role":"system","content":"a"}`,
			`{"type":"text","role":"user","content":"b"}`,
			`{"type":"text","role":"developer","content":"c"}`}},
		{"a role nobody knows", []string{`{"role":"Orchestrator (-> Web)","content":"a"}`}, []string{
			`{"type":"text","role":"Orchestrator (-> Web)","content":"a"}`}},
		{"null content, missing content", []string{`{"role":"assistant","content":null}`, `{"role":"assistant"}`}, []string{
			`{"type":"text","role":"assistant","content":null,"openai":{}}`,
			`{"type":"text","role":"assistant"}`}},
		{"content that a server has parsed (Cloudflare)", []string{`{"role":"assistant","content":{"a":1.0,"b":"\"<x>"},"n":1}`}, []string{
			`{"type":"text","role":"assistant","content":"{\"a\":1.0,\"b\":\"\\\"<x>\"}","openai":{"more":{"content":{"a":1.0,"b":"\"<x>"},"n":1}}}`}},
		{"a refusal", []string{`{"role":"assistant","content":null,"refusal":"no"}`}, []string{
			`{"type":"text","role":"assistant","content":null,"openai":{"more":{"refusal":"no"}}}`}},
		{"unknown members, numbers as spelled", []string{`{"role":"assistant","content":"a","reasoning_details":[{"signature":"Ev+/="}],"cost":-0.0,"seed":14836394043272784000,"name":null}`}, []string{
			`{"type":"text","role":"assistant","content":"a","openai":{"more":{"reasoning_details":[{"signature":"Ev+/="}],"cost":-0.0,"seed":14836394043272784000,"name":null}}}`}},
		{"names of our own", []string{`{"role":"user","content":"a","type":"text","openai":1,"stop_reason":"x","Content":2}`}, []string{
			`{"type":"text","role":"user","content":"a","openai":{"more":{"type":"text","openai":1,"stop_reason":"x","Content":2}}}`}},
		{"parts", []string{`{"role":"user","content":[{"type":"text","text":"a","cache_control":null},{"type":"image_url","image_url":{"url":"u","detail":"low"}},{"type":"new"}]}`}, []string{
			`{"type":"text","role":"user","content":[{"type":"text","text":"a","cache_control":null},{"type":"image_url","image_url":{"url":"u","detail":"low"}},{"type":"new"}],"openai":{}}`}},
		{"thinking of an assistant (Mistral)", []string{`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}],"prefix":false}`}, []string{
			`{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}],"openai":{"more":{"prefix":false}}}`}},
		{"no parts", []string{`{"role":"assistant","content":[]}`}, []string{
			`{"type":"text","role":"assistant","content":[],"openai":{}}`}},
		{"entries that are nothing we know", []string{`{"content":"a"}`, `{"role":7}`, `{"role":"user","content":["a"]}`, `{"role":"user","content":{"a":1.0}}`, `{"role":"user","content":[{"type":"text"}]}`, `{}`,
			`{"role":"assistant","tool_calls":{}}`, `{"role":"assistant","tool_calls":[null]}`, `{"role":"assistant","tool_calls":[{"type":"mcp"}]}`, `{"role":"assistant","function_call":"auto"}`, `{"role":"function","content":"a"}`}, []string{
			`{"type":"openai.message","role":"","item":{"content":"a"}}`,
			`{"type":"openai.message","role":"","item":{"role":7}}`,
			`{"type":"openai.message","role":"user","item":{"role":"user","content":["a"]}}`,
			`{"type":"openai.message","role":"user","item":{"role":"user","content":{"a":1.0}}}`,
			`{"type":"openai.message","role":"user","item":{"role":"user","content":[{"type":"text"}]}}`,
			`{"type":"openai.message","role":"","item":{}}`,
			`{"type":"openai.message","role":"assistant","item":{"role":"assistant","tool_calls":{}}}`,
			`{"type":"openai.message","role":"assistant","item":{"role":"assistant","tool_calls":[null]}}`,
			`{"type":"openai.message","role":"assistant","item":{"role":"assistant","tool_calls":[{"type":"mcp"}]}}`,
			`{"type":"openai.message","role":"assistant","item":{"role":"assistant","function_call":"auto"}}`,
			`{"type":"openai.message","role":"function","item":{"role":"function","content":"a"}}`}},

		{"calls", []string{calls}, []string{callsMsg}},
		{"calls, content missing, empty, no parts", []string{`{"role":"assistant","tool_calls":[` + call + `]}`, `{"role":"assistant","content":"","tool_calls":[` + call + `]}`, `{"role":"assistant","content":[],"tool_calls":[` + call + `]}`}, []string{
			`{"type":"tool_call","role":"assistant","tools":[` + tool + `],"openai":{"without":["content"]}}`,
			`{"type":"tool_call","role":"assistant","tools":[` + tool + `],"openai":{"more":{"content":""},"joined":false}}`,
			`{"type":"tool_call","role":"assistant","tools":[` + tool + `],"openai":{"more":{"content":[]},"joined":false}}`}},
		{"text and calls", []string{`{"role":"assistant","content":"a","tool_calls":[` + call + `],"reasoning_content":"r"}`}, []string{
			`{"type":"text","role":"assistant","content":"a","openai":{"more":{"reasoning_content":"r"}}}`, callsMsg}},
		{"parts and calls", []string{`{"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[` + call + `]}`}, []string{
			`{"type":"text","role":"assistant","content":[{"type":"text","text":"a"}],"openai":{}}`, callsMsg}},
		{"text, then calls in another entry", []string{`{"role":"assistant","content":"a"}`, calls, calls}, []string{calledText,
			`{"type":"tool_call","role":"assistant","tools":[` + tool + `],"openai":{"joined":false}}`,
			`{"type":"tool_call","role":"assistant","tools":[` + tool + `],"openai":{"joined":false}}`}},
		{"text of another role before calls", []string{`{"role":"user","content":"a"}`, calls}, []string{
			`{"type":"text","role":"user","content":"a"}`, callsMsg}},
		{"fillers", []string{`{"role":"assistant","content":"a","tool_calls":null,"function_call":null}`, `{"role":"assistant","content":"a","tool_calls":[],"function_call":{"name":"","arguments":""}}`}, []string{
			`{"type":"text","role":"assistant","content":"a","openai":{"more":{"tool_calls":null,"function_call":null}}}`,
			`{"type":"text","role":"assistant","content":"a","openai":{"more":{"tool_calls":[],"function_call":{"name":"","arguments":""}}}}`}},
		{"calls without type, id, name; unknown members", []string{`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1.0}"}},{"index":0,"type":"function","function":{"arguments":"{}","strict":true}},{"id":null,"type":"function","function":{"name":null,"arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`}, []string{
			`{"type":"tool_call","role":"assistant","tools":[` +
				`{"type":"tool","id":"1","name":"f","input":{"a":1.0},"openai":{"without":["type"]}},` +
				`{"type":"tool","id":"","name":"","input":{},"openai":{"more":{"index":0},"without":["id"],"in":{"function":{"more":{"strict":true},"without":["name"]}}}},` +
				`{"type":"tool","id":"","name":"","input":{},"openai":{"more":{"id":null,"extra_content":{"google":{"thought_signature":"s"}}},"in":{"function":{"more":{"name":null}}}}}],"openai":{}}`}},
		{"spellings of arguments", []string{`{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"city\": \"P\"}"}},{"id":"2","type":"function","function":{"name":"f","arguments":""}},{"id":"3","type":"function","function":{"name":"f"}},` +
			`{"id":"4","type":"function","function":{"name":"f","arguments":{"a":1}}},{"id":"5","type":"function","function":{"name":"f","arguments":"[1"}},{"id":"6","type":"function","function":{"name":"f","arguments":null}},` +
			`{"id":"7","type":"function","function":{"name":"f","arguments":"1.0"}},{"id":"8","type":"function","function":{"name":"f","arguments":7}},{"id":"9","type":"function","function":{"name":"f","arguments":"null"}}]}`}, []string{
			`{"type":"tool_call","role":"assistant","tools":[` +
				`{"type":"tool","id":"1","name":"f","input":{"city":"P"},"openai":{"in":{"function":{"more":{"arguments":"{\"city\": \"P\"}"}}}}},` +
				`{"type":"tool","id":"2","name":"f","openai":{"in":{"function":{"more":{"arguments":""}}}}},` +
				`{"type":"tool","id":"3","name":"f","openai":{"in":{"function":{"without":["arguments"]}}}},` +
				`{"type":"tool","id":"4","name":"f","input":{"a":1},"openai":{"in":{"function":{"more":{"arguments":{"a":1}}}}}},` +
				`{"type":"tool","id":"5","name":"f","input":"[1"},` +
				`{"type":"tool","id":"6","name":"f","openai":{"in":{"function":{"more":{"arguments":null}}}}},` +
				`{"type":"tool","id":"7","name":"f","input":"1.0"},` +
				`{"type":"tool","id":"8","name":"f","input":7,"openai":{"in":{"function":{"more":{"arguments":7}}}}},{"type":"tool","id":"9","name":"f","openai":{"in":{"function":{"more":{"arguments":"null"}}}}}],"openai":{}}`}},
		{"calls of custom tools", []string{`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"g","input":"{\"x\" :1}"}},{"id":"2","type":"custom","custom":{"name":"g"}},{"id":"3","type":"custom","custom":{"name":"g","input":{"x":1}},"function":null}]}`}, []string{
			`{"type":"tool_call","role":"assistant","tools":[` +
				`{"type":"tool","id":"1","name":"g","input":"{\"x\" :1}","openai":{"kind":"custom"}},` +
				`{"type":"tool","id":"2","name":"g","openai":{"kind":"custom","in":{"custom":{"without":["input"]}}}},` +
				`{"type":"tool","id":"3","name":"g","input":{"x":1},"openai":{"kind":"custom","more":{"function":null},"in":{"custom":{"more":{"input":{"x":1}}}}}}],"openai":{}}`}},
		{"a zero value of the other kind", []string{`{"role":"assistant","content":null,"tool_calls":[{"custom":{"input":"","name":""},"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}]}`}, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{},"openai":{"more":{"custom":{"input":"","name":""}}}}],"openai":{}}`}},
		{"before there were tools", []string{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1.0}"}}`, `{"role":"function","name":"f","content":"r"}`, `{"role":"function","tool_call_id":"1","name":"g","content":null}`}, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f","input":{"a":1.0},"openai":{"kind":"function_call"}}],"openai":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"f"},"content":"r","openai":{"kind":"function_call"}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":"g"},"content":null,"openai":{"kind":"function_call","more":{"tool_call_id":"1"}}}`}},
		{"both kinds of calls", []string{`{"role":"assistant","content":"a","tool_calls":[` + call + `],"function_call":{"name":"g","arguments":""}}`}, []string{calledText,
			`{"type":"tool_call","role":"assistant","tools":[` + tool + `,{"type":"tool","id":"","name":"g","openai":{"kind":"function_call","more":{"arguments":""}}}],"openai":{}}`}},

		{"results", []string{calls, `{"role":"tool","tool_call_id":"1","content":"299.0"}`, `{"role":"tool","tool_call_id":"2","name":"g","content":""}`}, []string{callsMsg,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":"f"},"content":"299.0","openai":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"2","name":"g"},"content":"","openai":{"more":{"name":"g"}}}`}},
		{"results with null, missing, parts; without an id", []string{`{"role":"tool","tool_call_id":"1","content":null}`, `{"role":"tool","tool_call_id":null}`, `{"role":"tool","content":[{"type":"text","text":"a"}]}`, `{"role":"tool","tool_call_id":"1","content":{"a":1.0}}`}, []string{
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":""},"content":null,"openai":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":""},"openai":{"more":{"tool_call_id":null}}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":""},"content":[{"type":"text","text":"a"}],"openai":{"without":["tool_call_id"]}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":""},"content":{"a":1.0},"openai":{}}`}},
		{"the same id again", []string{calls, `{"role":"tool","tool_call_id":"1","content":"x"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"g","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"y"}`}, []string{callsMsg,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":"f"},"content":"x","openai":{}}`,
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"g","input":{}}],"openai":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":"g"},"content":"y","openai":{}}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := roundTrip(t, provider.OpenAI, chatRequest(test.entries...))
			require.Equal(t, test.out, rawMessages(request.Messages))
			require.Equal(t, state.JSON(`{"model":"m"}`), request.Settings)
		})
	}
}

// A member that a message determines is not taken from what was kept of its entry.
func TestOpenAIChangedMessages(t *testing.T) {
	change := func(old, new string) func(string) string {
		return func(raw string) string { return strings.Replace(raw, old, new, 1) }
	}
	for _, test := range []struct {
		name, entry string
		change      func(string) string
		out         string
	}{
		{"content that was missing", `{"role":"assistant","refusal":"no"}`,
			change(`"role":"assistant"`, `"role":"assistant","content":"b"`),
			`{"role":"assistant","content":"b","refusal":"no"}`},
		{"content that a server has parsed", `{"role":"assistant","content":{"a":1}}`,
			change(`{\"a\":1}`, `{\"a\":2.0}`),
			`{"role":"assistant","content":{"a":2.0}}`},
		{"a text instead", `{"role":"assistant","content":{"a":1}}`,
			change(`{\"a\":1}`, `b`),
			`{"role":"assistant","content":"b"}`},
		{"an id that was missing", `{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{ }"}}]}`,
			change(`"id":""`, `"id":"1"`),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{ }"}}]}`},
		{"a name that was no text", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":7,"arguments":"{ }"}}]}`,
			change(`"name":""`, `"name":"f"`),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{ }"}}]}`},
		{"input", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{ \"a\": 1}"}}]}`,
			change(`"input":{"a":1}`, `"input":{"a":2}`),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]}`},
		{"input that was missing", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f"}}]}`,
			change(`"name":"f"`, `"name":"f","input":{"a":2}`),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]}`},
		{"an id where there was none", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{ }"}}`,
			change(`"id":""`, `"id":"1"`),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"an id in the result of that", `{"role":"function","name":"f","content":"r"}`,
			change(`"id":""`, `"id":"1"`),
			`{"role":"tool","tool_call_id":"1","content":"r"}`},
		{"the id and the content of a result", `{"role":"tool","tool_call_id":7,"name":"f"}`,
			change(`"tool":{"type":"tool","id":""`, `"content":"c","tool":{"type":"tool","id":"1"`),
			`{"role":"tool","tool_call_id":"1","content":"c","name":"f"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := provider.OpenAI.DecodeRequest(chatRequest(test.entry))
			require.NoError(t, err)
			require.Len(t, request.Messages, 1)
			raw := string(request.Messages[0].Raw())
			changed := test.change(raw)
			require.NotEqual(t, raw, changed)
			entries, omitted := chatEntries(t, []state.Message{message(t, changed)})
			require.Empty(t, omitted)
			require.Len(t, entries, 1)
			jsonEqual(t, []byte(test.out), []byte(entries[0]))
		})
	}
}

func TestOpenAIFillersGiveWayToCalls(t *testing.T) {
	request, err := provider.OpenAI.DecodeRequest(chatRequest(`{"role":"assistant","content":"a","tool_calls":[],"function_call":null}`))
	require.NoError(t, err)
	entries, _ := chatEntries(t, append(request.Messages, state.ToolCalls(state.ToolCall{ID: "1", Name: "f"})))
	require.Len(t, entries, 1)
	require.JSONEq(t, `{"role":"assistant","content":"a","function_call":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, entries[0])
}

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

func TestOpenAIResponse(t *testing.T) {
	for _, test := range []struct {
		name, body, id string
		created        int64
		out            []string
	}{
		{"text", `{"id":"x","created":1700000000,"choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null,"annotations":[]},"finish_reason":"stop"}],"usage":{}}`, "x", 1700000000, []string{
			`{"type":"text","role":"assistant","content":"a","openai":{"more":{"refusal":null,"annotations":[]}},"stop_reason":"stop"}`}},
		{"calls", `{"id":null,"created":1.5e9,"choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"},{"message":7}]}`, "", 1500000000, []string{
			`{"type":"text","role":"assistant","content":"a"}`,
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{}}],"openai":{},"stop_reason":"tool"}`}},
		{"calls although it says stop", `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, "", 0, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{}}],"openai":{},"stop_reason":"stop"}`}},
		{"a reason that is a number", `{"created":1e400,"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":154829}]}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a","stop_reason":154829}`}},
		{"an empty reason, none", `{"created":"now","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":""}]}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a","stop_reason":""}`}},
		{"no role", `{"created":-1,"choices":[{"message":{"content":"a"},"finish_reason":null}]}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a"}`}},
		{"an odd message", `{"choices":[{"message":{"role":"assistant","content":7},"finish_reason":"length"}]}`, "", 0, []string{
			`{"type":"openai.message","role":"assistant","item":{"role":"assistant","content":7},"stop_reason":"length"}`}},
		{"no choices", `{"id":"x","choices":[]}`, "x", 0, []string{}},
		{"null choices", `{"choices":null}`, "", 0, []string{}},
		{"a choice without a message", `{"choices":[{"finish_reason":"content_filter"}],"error":null}`, "", 0, []string{}},
		{"a null message", `{"choices":[{"message":null}]}`, "", 0, []string{}},
		{"an error next to the answer", `{"choices":[{"message":{"role":"assistant","content":"a"}}],"error":{"code":1}}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a"}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := provider.OpenAI.DecodeResponse([]byte(test.body))
			require.NoError(t, err)
			require.Equal(t, test.out, rawMessages(result.Output))
			require.Equal(t, test.body, result.Raw)
			require.Equal(t, test.id, result.ID)
			if test.created == 0 {
				require.True(t, result.CreatedAt.IsZero())
			} else {
				require.Equal(t, time.Unix(test.created, 0).UTC(), result.CreatedAt)
			}
		})
	}
}

// delta returns a chunk of a stream. what is a delta, or a delta and the other
// members of the choice.
func delta(what string) string {
	return `{"id":"x","object":"chat.completion.chunk","created":1700000000,"choices":[{"index":0,"delta":` + what + `}]}`
}

// Each row is the events of a stream, and the whole response that they are equal
// to.
func TestOpenAIStream(t *testing.T) {
	call := func(what string) string { return delta(`{"tool_calls":[` + what + `]}`) }
	stop, tool := delta(`{},"finish_reason":"stop"`), delta(`{},"finish_reason":"tool_calls"`)
	for _, test := range []struct {
		name    string
		events  []string
		message string
		reason  string
	}{
		{"text, usage at the end", []string{delta(`{"role":"assistant","content":"","refusal":null}`), delta(`{"content":"a\u0020"}`), delta(`{"content":"b"}`), delta(`{"content":null}`), stop, `{"id":"","choices":[],"usage":{}}`, `[DONE]`},
			`{"role":"assistant","content":"a b","refusal":null}`, `"stop"`},
		{"reasoning, repeated and null members", []string{delta(`{"role":"assistant","reasoning":"a","channel":"x","reasoning_details":[{"i":1}]}`), delta(`{"role":"assistant","reasoning":"b","channel":"x","reasoning_details":[{"i":2}]}`), delta(`{"reasoning":null,"reasoning_content":"c","reasoning_details":[],"content":"d"}`), stop},
			`{"role":"assistant","reasoning":"ab","reasoning_details":[{"i":1},{"i":2}],"reasoning_content":"c","content":"d"}`, `"stop"`},
		{"a refusal", []string{delta(`{"role":"assistant","content":null,"refusal":"I "}`), delta(`{"refusal":"won't"}`), stop},
			`{"role":"assistant","content":null,"refusal":"I won't"}`, `"stop"`},
		{"parts and text (Mistral)", []string{delta(`{"role":"assistant","content":""}`), delta(`{"content":[{"type":"thinking","thinking":[]}]}`), delta(`{"content":"a"}`), delta(`{"content":"b"}`), delta(`{"content":[{"type":"x"}]}`), delta(`{"content":"c"}`), stop},
			`{"role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"ab"},{"type":"x"},{"type":"text","text":"c"}]}`, `"stop"`},
		{"nothing but reasoning: content is null, as in a response", []string{delta(`{"role":"assistant","reasoning_content":"hm"}`), stop},
			`{"role":"assistant","content":null,"reasoning_content":"hm"}`, `"stop"`},
		{"an empty text", []string{delta(`{"content":""}`), stop}, `{"role":"assistant","content":""}`, `"stop"`},
		{"no role at all", []string{delta(`{"content":"a"}`), stop}, `{"role":"assistant","content":"a"}`, `"stop"`},
		{"calls that take turns", []string{
			delta(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":""}}]}`), call(`{"index":0,"function":{"arguments":"{\"a\""}}`),
			call(`{"index":1,"id":"2","type":"function","function":{"name":"g","arguments":"{"}}`), call(`{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"}"}}`), tool},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`},
		{"a name that is empty at first, or later", []string{
			call(`{"index":0,"id":"1","function":{"name":"","arguments":""}}`), call(`{"index":0,"function":{"name":"f"}}`), call(`{"index":0,"id":"","function":{"name":"","arguments":"{}"}}`), call(`{"index":0,"id":null,"function":null}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"the same index for every call (Ollama)", []string{
			call(`{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}`), call(`{"index":0,"id":"2","function":{"name":"f","arguments":"{"}}`), call(`{"index":0,"function":{"arguments":"}"}}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"an id that comes later", []string{
			call(`{"index":0,"function":{"name":"f","arguments":"{"}}`), call(`{"index":0,"id":"1","function":{"arguments":"}"}}`), tool},
			`{"tool_calls":[{"function":{"name":"f","arguments":"{}"},"id":"1"}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"no index (Gemini)", []string{
			call(`{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{"}}`), call(`{"function":{"arguments":"}"}}`), call(`{"id":"1","extra_content":{"s":1}}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"},"extra_content":{"s":1}},{"id":"2","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"large indices", []string{
			call(`{"index":99999999999999999999,"id":"1","function":{"name":"f","arguments":"{}"}}`), call(`{"index":-7,"id":"2","function":{"name":"f","arguments":"{}"}}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"a custom tool", []string{
			call(`{"index":0,"id":"1","type":"custom","custom":{"name":"f","input":"a"}}`), call(`{"index":0,"custom":{"input":"b"}}`), tool},
			`{"tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"ab"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"before there were tools", []string{
			delta(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}`), delta(`{"function_call":{"arguments":"{}"}}`), delta(`{},"finish_reason":"function_call"`)},
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `"function_call"`},
		{"no calls", []string{delta(`{"content":"a","tool_calls":[]}`), delta(`{"tool_calls":null}`), stop},
			`{"content":"a","tool_calls":[],"role":"assistant"}`, `"stop"`},
		{"a sound", []string{delta(`{"audio":{"id":"1","transcript":"a","data":"QU"}}`), delta(`{"audio":{"transcript":"b","data":"JD","expires_at":1}}`), stop},
			`{"audio":{"id":"1","transcript":"ab","data":"QUJD","expires_at":1},"role":"assistant","content":null}`, `"stop"`},
		{"other choices, events without", []string{`{"prompt_filter_results":[]}`, `{"choices":null}`, delta(`{"content":"a"}`), `{"choices":[{"index":1,"delta":{"content":"z"},"finish_reason":"length"}]}`, delta(`null,"finish_reason":"stop"`)},
			`{"content":"a","role":"assistant"}`, `"stop"`},
		{"a reason that is null or empty later", []string{delta(`{"content":"a"},"finish_reason":"length"`), delta(`{},"finish_reason":null`), delta(`{},"finish_reason":""`)},
			`{"content":"a","role":"assistant"}`, `"length"`},
		{"an empty reason, but done", []string{delta(`{"content":"a"},"finish_reason":""`), `[DONE]`},
			`{"content":"a","role":"assistant"}`, `""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := provider.OpenAI.Stream()
			for _, event := range test.events {
				require.NoError(t, s.Event([]byte(event)))
			}
			result, err := s.Result()
			require.NoError(t, err)
			require.Equal(t, strings.Join(test.events, "\n")+"\n", result.Raw)
			whole, err := provider.OpenAI.DecodeResponse([]byte(`{"id":"x","created":1700000000,"choices":[{"message":` + test.message + `,"finish_reason":` + test.reason + `}]}`))
			require.NoError(t, err)
			require.Equal(t, whole.ID, result.ID)
			require.Equal(t, whole.CreatedAt, result.CreatedAt)
			require.Equal(t, rawMessages(whole.Output), rawMessages(result.Output))
			again, err := s.Result()
			require.NoError(t, err)
			require.Equal(t, result, again)
		})
	}
}

func TestOpenAIBrokenStreams(t *testing.T) {
	const said = `{"type":"text","role":"assistant","content":"a"}`
	for _, test := range []struct {
		name   string
		events []string
		out    []string
		errs   []string // in their order
	}{
		{"broken off", []string{delta(`{"content":"a"}`)}, []string{said}, []string{"provider: incomplete stream"}},
		{"broken off in a call", []string{delta(`{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a"}}]}`)}, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":"{\"a"}],"openai":{}}`}, []string{"provider: incomplete stream"}},
		{"nothing", nil, []string{}, []string{"provider: incomplete stream"}},
		{"nothing but the end", []string{`[DONE]`}, []string{}, []string{"provider: incomplete stream"}},
		{"no choice", []string{`{"choices":[]}`}, []string{}, []string{"provider: incomplete stream"}},
		{"an error", []string{delta(`{"content":"a"}`), `{"error":{"code":400,"message":"m"}}`, `[DONE]`}, []string{said}, []string{`event 1: provider: OpenAI: the response is an error of type "400"`}},
		{"an error in a chunk", []string{`{"error":{"code":400},"choices":[{"index":0,"delta":{"content":"a"}}]}`}, []string{said}, []string{`event 0: provider: OpenAI: the response is an error of type "400"`}},
		{"invalid events", []string{`oops`, `7`, delta(`{"content":"a"}`), `{"choices":{}}`, `{"choices":[7]}`, delta(`"a"`), delta(`{"tool_calls":[7]}`), delta(`{"function_call":{},"audio":{"id":null}},"finish_reason":"stop"`)},
			[]string{`{"type":"text","role":"assistant","content":"a","openai":{"more":{"tool_calls":[],"function_call":{},"audio":{"id":null}}},"stop_reason":"stop"}`}, []string{
				"event 0: provider: OpenAI: $: ", "event 1: provider: OpenAI: $: want object, got number", "event 3: provider: OpenAI: $.choices: want array, got object", "event 4: provider: OpenAI: $.choices[0]: want object, got number",
				"event 5: provider: OpenAI: $.choices[0].delta: want object, got string", "event 6: provider: OpenAI: $.choices[0].delta.tool_calls[0]: want object, got number"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := provider.OpenAI.Stream()
			failed := 0
			for _, event := range test.events {
				if s.Event([]byte(event)) != nil {
					failed++
				}
			}
			result, err := s.Result()
			require.Error(t, err)
			require.Equal(t, test.out, rawMessages(result.Output))
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(test.errs))
			for i, want := range test.errs {
				require.Contains(t, lines[i], want)
			}
			incomplete := test.errs[len(test.errs)-1] == provider.ErrIncomplete.Error()
			if incomplete {
				require.ErrorIs(t, err, provider.ErrIncomplete)
				failed++
			}
			require.Equal(t, failed, len(test.errs))
		})
	}
}
