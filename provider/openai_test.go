package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
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
