package provider_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
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

// Messages of other formats, and messages made by hand, are encoded in the words
// of Anthropic.
func TestAnthropicEncodesOthers(t *testing.T) {
	const call = `{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"a","name":"f","input":{"k":1}}]}`
	const use = `{"type":"tool_use","id":"a","name":"f","input":{"k":1}}`
	tests := []struct {
		name, messages, system, want string
		omitted                      []string
	}{
		{"what the system says first",
			`[{"type":"text","role":"developer","content":"a"},{"type":"text","role":"user","content":"b"}]`,
			`"a"`, `[{"role":"user","content":"b"}]`, nil},
		{"as parts", `[{"type":"text","role":"system","content":[{"type":"input_text","text":"a"}],"openai_responses":{}}]`,
			`[{"type":"text","text":"a"}]`, `[]`, nil},
		{"several times", `[{"type":"text","role":"system","content":"a"},{"type":"text","role":"system","content":""},{"type":"text","role":"system","content":null},
			{"type":"text","role":"developer","content":[{"type":"text","text":"b"}],"openai":{}},{"type":"text","role":"system","content":"c","anthropic":{"in":"system"}}]`,
			`[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}]`, `[]`, nil},
		{"nothing", `[{"type":"text","role":"system","content":null}]`, ``, `[]`, nil},
		{"behind what is left out", `[{"type":"openai_responses.reasoning","role":"assistant","item":{}},{"type":"text","role":"system","content":"a"},{"type":"text","role":"user","content":"b"}]`,
			`"a"`, `[{"role":"user","content":"b"}]`, []string{"message 0: message of type openai_responses.reasoning"}},
		{"an image in the system prompt", `[{"type":"text","role":"system","content":[{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}],"openai":{}}]`,
			`"[image left out]"`, `[]`, []string{"message 0: part of type image_url"}},
		{"what the system says later, and other roles",
			`[{"type":"text","role":"user","content":"a"},{"type":"text","role":"developer","content":"b"},{"type":"text","role":"Orchestrator (thought)","content":"c"}]`,
			``, `[{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]`,
			[]string{"message 2: role other than user, assistant, system and developer"}},
		{"text and calls are one entry", `[{"type":"text","role":"assistant","content":"a"},` + call + `,{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"b","name":"g"}]}]`,
			``, `[{"role":"assistant","content":[{"type":"text","text":"a"},` + use + `,{"type":"tool_use","id":"b","name":"g","input":{}}]}]`, nil},
		{"unless they are said to be two", `[{"type":"text","role":"assistant","content":"a"},{"type":"tool_call","role":"assistant","tools":[],"openai":{"joined":false}},{"type":"text","role":"assistant","content":"b","openai":{"joined":true}}]`,
			``, `[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]`, nil},
		{"an empty text next to calls", `[{"type":"text","role":"assistant","content":""},` + call + `,{"type":"text","role":"user","content":""},{"type":"text","role":"assistant","content":null,"openai":{}},` + call + `]`,
			``, `[{"role":"assistant","content":[` + use + `]},{"role":"user","content":""},{"role":"assistant","content":[` + use + `]}]`, nil},
		{"a text that belongs to the results before it", `[{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":{"output":"1"},"gemini":{}},
			{"type":"text","role":"user","content":[{"type":"text","text":"so?"}],"gemini":{"joined":true}}]`,
			``, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"{\"output\":\"1\"}"},{"type":"text","text":"so?"}]}]`, nil},
		{"input that is not an object", `[{"type":"tool_call","role":"agent","tools":[{"type":"tool","id":"a","name":"f","input":"{\"k"},{"type":"tool","id":"b","name":"f","input":[1.0]},{"type":"tool","id":"c","name":"f","input":null}]}]`,
			``, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"arguments":"{\"k"}},{"type":"tool_use","id":"b","name":"f","input":{"arguments":[1.0]}},{"type":"tool_use","id":"c","name":"f","input":{}}]}]`, nil},
		{"results are one entry, and text is another", `[{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":"299.0","is_error":true},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"b","name":"f"},"content":1.50,"is_error":"no"},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"c","name":"f"},"content":null},{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"d","name":"f"}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"e","name":"f"},"content":"","gemini":{"joined":false}},
			{"type":"text","role":"user","content":"so?"}]`,
			``, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"299.0","is_error":true},{"type":"tool_result","tool_use_id":"b","content":"1.50"},
			{"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"d"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"e","content":""}]},{"role":"user","content":"so?"}]`, nil},
		{"results that are arrays: data, parts by hand, parts of OpenAI", `[{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":[{"type":"file","name":"a.txt"},1]},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"b","name":"f"},"content":[]},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"c","name":"f"},"content":[{"type":"text","text":"x"},{"type":"text","text":""}]},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"d","name":"f"},"content":[{"type":"input_text","text":"x"},{"type":"input_file","file_id":"f"}],"openai_responses":{}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"e","name":"f"},"content":[{"type":"input_audio"}],"openai":{}}]`,
			``, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[{\"type\":\"file\",\"name\":\"a.txt\"},1]"},{"type":"tool_result","tool_use_id":"b","content":"[]"},
			{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"}]},{"type":"tool_result","tool_use_id":"d","content":[{"type":"text","text":"x"}]},{"type":"tool_result","tool_use_id":"e","content":"[audio left out]"}]}]`,
			[]string{"message 3: part of type input_file", "message 4: part of type input_audio"}},
		{"parts: a refusal, thinking (trap 20), one without type", `[{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"refusal","refusal":"No."},{"type":"output_text","text":""},{"text":"hm","thought":true}],"openai":{}}]`,
			``, `[{"role":"assistant","content":[{"type":"text","text":"No."}]}]`,
			[]string{"message 0: part of type thinking", "message 0: part of type thought"}},
		{"a message of which nothing is left", `[{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"openai":{}},{"type":"text","role":"user","content":"hi"}]`,
			``, `[{"role":"user","content":"hi"}]`, []string{"message 0: part of type thinking"}},
		{"entries of other formats", `[` + call + `,{"type":"openai_responses.reasoning","role":"assistant","item":{"type":"reasoning"}},` + call + `,{"type":"anthropic.message","role":"user","item":1},
			{"type":"anthropic.message","role":"user","item":{"x":1}},{"type":"note","role":""}]`,
			``, `[{"role":"assistant","content":[` + use + `,` + use + `]},{"x":1}]`,
			[]string{"message 1: message of type openai_responses.reasoning", "message 3: message of type anthropic.message", "message 5: message of type note"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			system := ""
			if test.system != "" {
				system = `"system":` + test.system + `,`
			}
			requireEncoded(t, provider.Anthropic, messagesOf(t, test.messages), `{`+system+`"messages":`+test.want+`}`, test.omitted)
		})
	}
}

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
		body.WriteString("event: message\r\ndata: " + event + "\r\n\r\n")
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
