package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

func TestAnthropicRequest(t *testing.T) {
	tests := []struct{ name, system, messages, want string }{
		{"a system prompt is what the system says first", `"Be brief."`, `[]`,
			`[{"type":"text","role":"system","content":"Be brief.","anthropic":{"in":"system"}}]`},
		{"of blocks", `[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]`, `[]`,
			`[{"type":"text","role":"system","content":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"anthropic":{"in":"system"}}]`},
		{"an empty system prompt", `[]`, `[{"role":"user","content":""}]`,
			`[{"type":"text","role":"system","content":[],"anthropic":{"in":"system"}},{"type":"text","role":"user","content":""}]`},
		{"no system prompt", `null`, `[]`, `[]`},
		{"text", ``, `[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]`,
			`[{"type":"text","role":"user","content":"hi"},{"type":"text","role":"assistant","content":"hello"}]`},
		{"unknown members of an entry", ``, `[{"role":"user","content":"hi","x":1.0}]`,
			`[{"type":"text","role":"user","content":"hi","anthropic":{"more":{"x":1.0}}}]`},
		{"blocks nobody knows (trap 26)", ``, `[{"role":"user","content":[{"type":"container_upload","file_id":"f"},{"type":"new","n":1e400}]}]`,
			`[{"type":"text","role":"user","content":[{"type":"container_upload","file_id":"f"},{"type":"new","n":1e400}],"anthropic":{}}]`},
		{"signed thinking (trap 25), text and calls (trap 15)", ``,
			`[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"Ab+/="},{"type":"text","text":"Let me see."},
				{"type":"tool_use","id":"a","name":"f","input":{"n":12345678901234567890}},{"type":"tool_use","id":"b","name":"g","input":{},"cache_control":null}]}]`,
			`[{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"Ab+/="},{"type":"text","text":"Let me see."}],"anthropic":{}},
			{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{"n":12345678901234567890}},
				{"type":"tool","id":"b","name":"g","input":{},"anthropic":{"more":{"cache_control":null}}}],"anthropic":{"joined":true}}]`},
		{"text between calls and after them", ``,
			`[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"and"},{"type":"tool_use","id":"b","name":"f","input":{}},{"type":"text","text":"."}]}]`,
			`[{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{}}],"anthropic":{}},
			{"type":"text","role":"assistant","content":[{"type":"text","text":"and"}],"anthropic":{"joined":true}},
			{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"b","name":"f","input":{}}],"anthropic":{"joined":true}},
			{"type":"text","role":"assistant","content":[{"type":"text","text":"."}],"anthropic":{"joined":true}}]`},
		{"results in one entry (trap 6) and text with them (trap 16)", ``,
			`[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"299.0","is_error":false},{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"Go on."}],"y":null}]`,
			`[{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{}},{"type":"tool","id":"b","name":"g","input":{}}],"anthropic":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"b","name":"g"},"content":"299.0","is_error":false,"anthropic":{"more":{"y":null}}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"anthropic":{"joined":true}},
			{"type":"text","role":"user","content":[{"type":"text","text":"Go on."}],"anthropic":{"joined":true}}]`},
		{"entries that would be one if they were not said to be two", ``,
			`[{"role":"assistant","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":""}]}]`,
			`[{"type":"text","role":"assistant","content":"a"},
			{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{}}],"anthropic":{"joined":false}},
			{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"b","name":"f","input":{}}],"anthropic":{"joined":false}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":"","anthropic":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"b","name":"f"},"content":"","anthropic":{"joined":false}}]`},
		{"content of results: parts (trap 19), null, and what the API does not have", ``,
			`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"tool_reference","tool_name":"f"}],"is_error":true},
			{"type":"tool_result","tool_use_id":"a","content":null,"is_error":null},{"type":"tool_result","content":{"a":1}}]}]`,
			`[{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":""},"content":[{"type":"text","text":"x"},{"type":"tool_reference","tool_name":"f"}],"is_error":true,"anthropic":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":""},"content":null,"anthropic":{"joined":true,"part":{"more":{"content":null,"is_error":null}}}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":""},"content":{"a":1},"anthropic":{"joined":true,"part":{"more":{"content":{"a":1}},"without":["tool_use_id"]}}}]`},
		{"a result of the assistant's", ``,
			`[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
			`[{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{}}],"anthropic":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":"1","anthropic":{"joined":true,"role":"assistant"}}]`},
		{"one id for several calls (trap 1)", ``,
			`[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]}]`,
			`[{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{}}],"anthropic":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":"","anthropic":{}},
			{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"g","input":{}}],"anthropic":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"g"},"content":"","anthropic":{}}]`},
		{"calls without id (trap 3), name or input, and with input that is not an object (trap 9)", ``,
			`[{"role":"assistant","content":[{"type":"tool_use"},{"type":"tool_use","id":7,"name":"f","input":"{\"a"},{"type":"tool_use","id":"a","name":"f","input":null}]}]`,
			`[{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"","anthropic":{"without":["id","name","input"]}},
			{"type":"tool","id":"","name":"f","input":"{\"a","anthropic":{"more":{"id":7,"input":"{\"a"}}},
			{"type":"tool","id":"a","name":"f","input":null,"anthropic":{"more":{"input":null}}}],"anthropic":{}}]`},
		{"system and other roles in the conversation (traps 27, 29)", `"Be brief."`,
			`[{"role":"system","content":"a"},{"role":"developer","content":"b"},{"role":"Orchestrator (thought)","content":"c"},{"role":"system","content":[{"type":"tool_addition","tool":{}}]}]`,
			`[{"type":"text","role":"system","content":"Be brief.","anthropic":{"in":"system"}},
			{"type":"text","role":"system","content":"a","anthropic":{"more":{"role":"system"}}},{"type":"text","role":"developer","content":"b","anthropic":{"more":{"role":"developer"}}},
			{"type":"text","role":"Orchestrator (thought)","content":"c","anthropic":{"more":{"role":"Orchestrator (thought)"}}},
			{"type":"text","role":"system","content":[{"type":"tool_addition","tool":{}}],"anthropic":{"more":{"role":"system"}}}]`},
		{"empty content (trap 21)", ``, `[{"role":"assistant","content":[]},{"role":"assistant","content":[{"type":"text","text":""}]}]`,
			`[{"type":"text","role":"assistant","content":[],"anthropic":{}},{"type":"text","role":"assistant","content":[{"type":"text","text":""}],"anthropic":{}}]`},
		{"invalid entries are kept whole", ``,
			`[{"role":"user","content":null},{"role":"assistant"},{"role":1,"content":"a"},{"role":"user","content":[{"type":"tool_use"}]},{"role":"user","content":["a"]},
			{"role":"user","content":[{"text":"a"}]},{"role":"user","content":[{"type":"text","text":null}]},{}]`,
			`[{"type":"anthropic.message","role":"user","item":{"role":"user","content":null}},{"type":"anthropic.message","role":"assistant","item":{"role":"assistant"}},
			{"type":"anthropic.message","role":"","item":{"role":1,"content":"a"}},{"type":"anthropic.message","role":"user","item":{"role":"user","content":[{"type":"tool_use"}]}},
			{"type":"anthropic.message","role":"user","item":{"role":"user","content":["a"]}},{"type":"anthropic.message","role":"user","item":{"role":"user","content":[{"text":"a"}]}},
			{"type":"anthropic.message","role":"user","item":{"role":"user","content":[{"type":"text","text":null}]}},{"type":"anthropic.message","role":"","item":{}}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			system := ""
			if test.system != "" {
				system = `"system":` + test.system + `,`
			}
			request := roundTrip(t, provider.Anthropic, []byte(`{"model":"m",`+system+`"messages":`+test.messages+`,"temperature":0.0}`))
			jsonEqual(t, []byte(test.want), []byte("["+strings.Join(rawMessages(request.Messages), ",")+"]"))
			settings := `{"model":"m","temperature":0.0}`
			if test.system == "null" {
				settings = `{"model":"m","system":null,"temperature":0.0}`
			}
			jsonEqual(t, []byte(settings), []byte(request.Settings))
		})
	}
}

func TestAnthropicResponse(t *testing.T) {
	tests := []struct{ name, content, stop, want string }{
		{"text", `[{"type":"text","text":"hi"}]`, `"end_turn"`,
			`[{"type":"text","role":"assistant","content":[{"type":"text","text":"hi"}],"anthropic":{},"stop_reason":"stop"}]`},
		{"calls", `[{"type":"text","text":"hm"},{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"direct"}}]`, `"tool_use"`,
			`[{"type":"text","role":"assistant","content":[{"type":"text","text":"hm"}],"anthropic":{}},
			{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{},"anthropic":{"more":{"caller":{"type":"direct"}}}}],"anthropic":{"joined":true},"stop_reason":"tool"}]`},
		{"nothing (trap 21)", `[]`, `"refusal"`,
			`[{"type":"text","role":"assistant","content":[],"anthropic":{},"stop_reason":"refusal"}]`},
		{"no reason", `[]`, `null`, `[{"type":"text","role":"assistant","content":[],"anthropic":{}}]`},
		{"an entry of another kind", `[null]`, `"max_tokens"`,
			`[{"type":"anthropic.message","role":"assistant","item":{"role":"assistant","content":[null]},"stop_reason":"max_tokens"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := `{"id":"msg_1","type":"message","role":"assistant","content":` + test.content + `, "stop_reason":` + test.stop + `,"usage":{"input_tokens":1}}`
			result, err := provider.Anthropic.DecodeResponse([]byte(body))
			require.NoError(t, err)
			require.Equal(t, body, result.Raw)
			requireEncoded(t, provider.Anthropic, result.Output, `{"messages":[{"role":"assistant","content":`+test.content+`}]}`, nil)
			require.Equal(t, "msg_1", result.ID)
			require.True(t, result.CreatedAt.IsZero())
			jsonEqual(t, []byte(test.want), []byte("["+strings.Join(rawMessages(result.Output), ",")+"]"))
		})
	}
}

// A history with messages removed or added is still encoded as entries of one
// role each.
func TestAnthropicEditedHistory(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"go"},
		{"role":"assistant","content":[{"type":"text","text":"hm"},{"type":"tool_use","id":"a","name":"f","input":{"k":1},"x":1}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"so?"}]}]}`
	request, err := provider.Anthropic.DecodeRequest([]byte(body))
	require.NoError(t, err)
	require.Len(t, request.Messages, 5)
	tests := []struct {
		name string
		msgs func(m []state.Message) []state.Message
		want string
	}{
		{"the first piece is gone", func(m []state.Message) []state.Message { return slices.Delete(m, 1, 2) },
			`"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"k":1},"x":1}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"so?"}]}]`},
		{"only the last piece is there", func(m []state.Message) []state.Message { return m[4:] },
			`"messages":[{"role":"user","content":[{"type":"text","text":"so?"}]}]`},
		{"a result is another", func(m []state.Message) []state.Message {
			return []state.Message{m[2], state.ToolResult(state.ToolCall{ID: "a", Name: "f"}, `{"b":2}`), m[4]}
		}, `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"k":1},"x":1}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"{\"b\":2}"},{"type":"text","text":"so?"}]}]`},
		{"the prompt of another conversation", func(m []state.Message) []state.Message {
			other, err := provider.Anthropic.DecodeRequest([]byte(`{"system":"b","messages":[{"role":"user","content":"c"}]}`))
			require.NoError(t, err)
			return append(m[:1], other.Messages...)
		}, `"messages":[{"role":"user","content":"go"},{"role":"system","content":"b"},{"role":"user","content":"c"}]`},
		{"two conversations", func(m []state.Message) []state.Message {
			return append([]state.Message{state.SystemText("a")}, m[3], state.SystemText("b"), m[0])
		}, `"system":"a","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":"b"},{"role":"user","content":"go"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requireEncoded(t, provider.Anthropic, test.msgs(slices.Clone(request.Messages)), `{`+test.want+`}`, nil)
		})
	}
}
