package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// bodyWithTools returns a request without messages.
func bodyWithTools(f *provider.Format, tools string) []byte {
	member := map[*provider.Format]string{
		provider.OpenAI: "messages", provider.OpenAIResponses: "input", provider.Anthropic: "messages", provider.Gemini: "contents",
	}[f]
	return fmt.Appendf(nil, `{%q:[],"tools":%s}`, member, tools)
}

// toolsOf returns the member tools of a request for the tools.
func toolsOf(t *testing.T, f *provider.Format, tools []provider.Tool) (state.JSON, []string) {
	t.Helper()
	body, omitted, err := f.EncodeRequest(provider.Request{Tools: tools})
	require.NoError(t, err)
	var what []string
	for _, o := range omitted {
		require.Equal(t, -1, o.Message)
		what = append(what, o.String())
	}
	members := map[string]state.JSON{}
	requireMembers(t, body, members)
	return members["tools"], what
}

func TestToolsInEachSpelling(t *testing.T) {
	const schema = `{"type":"object","properties":{"city":{"type":"string"}}}`
	search := provider.Tool{Name: "search", Description: "Searches.", Schema: schema}
	for _, test := range []struct {
		format *provider.Format
		want   string
	}{
		{provider.OpenAI, `[{"type":"function","function":{"name":"search","description":"Searches.","parameters":` + schema + `}},{"type":"function","function":{"name":"now"}}]`},
		{provider.OpenAIResponses, `[{"type":"function","name":"search","description":"Searches.","parameters":` + schema + `},{"type":"function","name":"now"}]`},
		{provider.Anthropic, `[{"name":"search","description":"Searches.","input_schema":` + schema + `},{"name":"now","input_schema":{"type":"object"}}]`},
		{provider.Gemini, `[{"functionDeclarations":[{"name":"search","description":"Searches.","parametersJsonSchema":` + schema + `},{"name":"now"}]}]`},
	} {
		t.Run(test.format.String(), func(t *testing.T) {
			got, omitted := toolsOf(t, test.format, []provider.Tool{search, {Name: "now"}})
			require.JSONEq(t, test.want, string(got))
			require.Empty(t, omitted)
			request, err := test.format.DecodeRequest(bodyWithTools(test.format, test.want))
			require.NoError(t, err)
			require.Len(t, request.Tools, 2)
			require.Equal(t, search.Schema, request.Tools[0].Schema)
			again, _ := toolsOf(t, test.format, request.Tools)
			require.JSONEq(t, test.want, string(again))

			request.Tools[0].Name = "find"
			renamed, _ := toolsOf(t, test.format, request.Tools)
			require.Contains(t, string(renamed), `"find"`)
			require.NotContains(t, string(renamed), `"search"`)
		})
	}
}

// What a request has for a tool comes back in its own format. Other formats get
// the name, the description and the schema, and report the rest.
func TestToolsKeepTheRest(t *testing.T) {
	for _, test := range []struct {
		name    string
		format  *provider.Format
		tools   string
		to      *provider.Format
		carried string
		omitted []string
	}{
		{"a cache", provider.Anthropic, `[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`,
			provider.OpenAI, `[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`, []string{`member cache_control of tool "f"`}},
		{"strict", provider.OpenAI, `[{"type":"function","function":{"name":"f","parameters":{},"strict":true}}]`,
			provider.Gemini, `[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}]`, []string{`member strict of tool "f"`}},
		{"not strict", provider.OpenAIResponses, `[{"type":"function","name":"f","parameters":{},"strict":false}]`,
			provider.OpenAI, `[{"type":"function","function":{"name":"f","parameters":{}}}]`, nil},
		{"a tool of the provider", provider.Anthropic, `[{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{}}]`,
			provider.OpenAIResponses, `[{"type":"function","name":"f","parameters":{}}]`, []string{`tool "web_search"`}},
		{"a tool of the provider without a name", provider.Gemini, `[{"googleSearch":{}}]`,
			provider.Anthropic, `[]`, []string{`tool 0`}},
		{"a custom tool", provider.OpenAI, `[{"type":"custom","custom":{"name":"shell"}}]`, provider.Gemini, `[]`, []string{`tool 0`}},
		{"types in upper case", provider.Gemini, `[{"functionDeclarations":[{"name":"f","description":"","parameters":{"type":"OBJECT","properties":{"type":{"type":"ARRAY","items":{"type":"STRING","enum":["STRING"]}},"x":{"anyOf":[{"type":"NULL"},{"type":"OBJECT"}]}},"required":["type"]}}]}]`,
			provider.Anthropic, `[{"name":"f","input_schema":{"type":"object","properties":{"type":{"type":"array","items":{"type":"string","enum":["STRING"]}},"x":{"anyOf":[{"type":"null"},{"type":"object"}]}},"required":["type"]}}]`, nil},
		{"several elements", provider.Gemini, `[{"function_declarations":[{"name":"a"},{"name":"b","response":{"type":"STRING"}}]},{"functionDeclarations":[{"name":"c","parameters_json_schema":{"type":"object"}}],"retrieval":{}},{"functionDeclarations":[]},{"codeExecution":{}}]`,
			provider.OpenAI, `[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}},{"type":"function","function":{"name":"c","parameters":{"type":"object"}}}]`,
			[]string{`member response of tool "b"`, `member retrieval of tool "c"`, "tool 3", "tool 4"}},
		{"what no tool has", provider.OpenAI, `[7]`, nil, "", nil},
		{"no list", provider.OpenAI, `{"a":1}`, nil, "", nil},
		{"null", provider.Anthropic, `null`, nil, "", nil},
		{"an empty list", provider.Gemini, `[]`, nil, "", nil},
		{"names and schemas of other kinds", provider.OpenAI, `[{"type":"function","function":{"name":7}},{"type":"function","function":{"name":"f","parameters":true}},{"type":"function"},{"function":null}]`,
			provider.Anthropic, `[]`, []string{"tool 0", "tool 1", "tool 2", "tool 3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := bodyWithTools(test.format, test.tools)
			request, err := test.format.DecodeRequest(body)
			require.NoError(t, err)
			again, omitted, err := test.format.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)
			jsonEqual(t, body, again)
			if test.to == nil {
				require.Empty(t, request.Tools)
				return
			}
			carried, what := toolsOf(t, test.to, request.Tools)
			require.JSONEq(t, test.carried, string(carried))
			require.Equal(t, test.omitted, what)
		})
	}
}

// Members that a program has set go to the formats that have them. The others
// report them.
func TestToolsWithMembersOfAProgram(t *testing.T) {
	made := provider.Tool{Name: "f", Schema: `{}`, Extra: `{"cache_control":{"type":"ephemeral"},"strict":true,"x":null}`}
	for _, test := range []struct {
		format  *provider.Format
		want    string
		omitted []string
	}{
		{provider.Anthropic, `[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"},"strict":true}]`, nil},
		{provider.OpenAI, `[{"type":"function","function":{"name":"f","parameters":{},"strict":true}}]`, []string{`member cache_control of tool "f"`}},
		{provider.OpenAIResponses, `[{"type":"function","name":"f","parameters":{},"strict":true}]`, []string{`member cache_control of tool "f"`}},
		{provider.Gemini, `[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}]`, []string{`member cache_control of tool "f"`, `member strict of tool "f"`}},
	} {
		got, omitted := toolsOf(t, test.format, []provider.Tool{made})
		require.JSONEq(t, test.want, string(got), test.format)
		require.Equal(t, test.omitted, omitted, test.format)
	}

	// What a program sets replaces what a request had.
	request, err := provider.Anthropic.DecodeRequest(bodyWithTools(provider.Anthropic, `[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"}}]`))
	require.NoError(t, err)
	tool := request.Tools[0]
	tool.Extra = tool.Extra[:len(tool.Extra)-1] + `,"cache_control":{"type":"ephemeral","ttl":"1h"}}`
	got, _ := toolsOf(t, provider.Anthropic, []provider.Tool{tool})
	require.JSONEq(t, `[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}}]`, string(got))
}

// A schema in Google's notation that is changed is sent as JSON Schema.
func TestChangedSchema(t *testing.T) {
	request, err := provider.Gemini.DecodeRequest(bodyWithTools(provider.Gemini, `[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]`))
	require.NoError(t, err)
	request.Tools[0].Schema = `{"type":"object","required":["a"]}`
	got, _ := toolsOf(t, provider.Gemini, request.Tools)
	require.JSONEq(t, `[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","required":["a"]}}]}]`, string(got))
}

func TestToolsThatAreWrong(t *testing.T) {
	for _, test := range []struct {
		tool     provider.Tool
		settings state.JSON
		err      string
	}{
		{provider.Tool{}, "", "provider: OpenAI: tools[1]: $.name: want a name, got none"},
		{provider.Tool{Name: "f", Schema: "7"}, "", "provider: OpenAI: tools[1]: $: want object, got number"},
		{provider.Tool{Name: "f", Schema: "{"}, "", "provider: OpenAI: tools[1]: $: want a member name, got the end of the text"},
		{provider.Tool{Name: "f", Extra: "[]"}, "", "provider: OpenAI: tools[1]: $: want object, got array"},
		{provider.Tool{Name: "f"}, `{"tools":[{"type":"function"}]}`, "provider: OpenAI: $.tools: is in the settings and is also made of the tools"},
	} {
		_, _, err := provider.OpenAI.EncodeRequest(provider.Request{Tools: []provider.Tool{{Name: "a"}, test.tool}, Settings: test.settings})
		require.EqualError(t, err, test.err)
		require.True(t, errors.Is(err, state.ErrWrongType))
	}
}

func TestToolsOfOtherTypes(t *testing.T) {
	type input struct {
		City string `json:"city"`
	}
	weather, err := tool.New("weather", "Tells the weather.", func(context.Context, input) (string, error) { return "sun", nil })
	require.NoError(t, err)
	require.Equal(t, []provider.Tool{{Name: "weather", Description: "Tells the weather.", Schema: weather.Schema()}}, provider.Tools([]*tool.Tool{weather}))
}

// requireMembers sets the members of an object.
func requireMembers(t *testing.T, body []byte, to map[string]state.JSON) {
	t.Helper()
	raw := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(body, &raw))
	for name, value := range raw {
		to[name] = state.JSON(value)
	}
}

// A request whose conversation has been repaired calls its tools by the names
// that it offers, whichever name the provider refuses.
func TestToolsAndCallsHaveTheSameNames(t *testing.T) {
	choices := map[*provider.Format]string{
		provider.OpenAI:          `{"tool_choice":{"type":"function","function":{"name":"NAME"}}}`,
		provider.OpenAIResponses: `{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"NAME"},{"type":"web_search"}]}}`,
		provider.Anthropic:       `{"max_tokens":1.0,"tool_choice":{"type":"tool","name":"NAME"}}`,
		provider.Gemini:          `{"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["NAME","other"]}}}`,
	}
	for _, name := range []string{"mail/send", strings.Repeat("long", 40), "ä", "send"} {
		for format, choice := range choices {
			call := state.ToolCall{ID: "1", Name: name, Input: `{}`}
			given := provider.Request{
				Messages: []state.Message{state.UserText("go"), state.ToolCalls(call), state.ToolResult(call, `"done"`)},
				Tools:    []provider.Tool{{Name: name, Schema: `{"type":"object"}`}, {Name: "other", Schema: `{"type":"object"}`}},
				Settings: state.JSON(strings.ReplaceAll(choice, "NAME", name)),
			}
			request, names := given.RenameTools(format.Profile())
			require.Equal(t, name, given.Tools[0].Name) // not changed
			request.Messages, _ = transcript.Repair(request.Messages, format.Profile(), transcript.Policy{})
			body, omitted, err := format.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)

			sent, err := format.DecodeRequest(body)
			require.NoError(t, err)
			accepted := format.Profile().ToolName(name)
			require.Equal(t, accepted, format.Profile().ToolName(accepted))
			require.Equal(t, accepted, sent.Tools[0].Name)
			require.Equal(t, "other", sent.Tools[1].Name)
			require.Equal(t, accepted, sent.Messages[1].(state.ToolCallMessage).Calls()[0].Name)
			require.JSONEq(t, strings.ReplaceAll(choice, "NAME", accepted), string(sent.Settings))
			if name == "send" {
				require.Empty(t, names)
			}

			restored := names.Restore(sent.Messages)
			require.Equal(t, name, restored[1].(state.ToolCallMessage).Calls()[0].Name)
			require.Equal(t, sent.Messages[0], restored[0])
			again, _ := transcript.Repair(restored, format.Profile(), transcript.Policy{})
			require.Equal(t, sent.Messages[1], again[1])

			// A body in the words of the format gets the names in its own place.
			sent.Tools[0].Name = name
			own, _ := sent.RenameTools(format.Profile())
			second, _, err := format.EncodeRequest(own)
			require.NoError(t, err)
			require.JSONEq(t, string(body), string(second))
		}
	}
}

// Tools that only the provider has keep their names.
func TestRenameToolsLeavesToolsOfTheProvider(t *testing.T) {
	const body = `{"tools":[{"type":"search/1","name":"web/search"}],"messages":[]}`
	request, err := provider.Anthropic.DecodeRequest([]byte(body))
	require.NoError(t, err)
	same, names := request.RenameTools(transcript.Anthropic)
	require.Empty(t, names)
	require.Equal(t, request, same)
}
