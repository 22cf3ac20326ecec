package provider_test

import (
	"testing"

	"github.com/agentstate/state/provider"
)

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
