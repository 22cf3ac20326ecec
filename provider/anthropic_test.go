package provider_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// messagesOf decodes messages from their JSON.
func messagesOf(t *testing.T, data string) []state.Message {
	t.Helper()
	msgs, err := state.DecodeMessages([]byte(data))
	require.NoError(t, err)
	return msgs
}

// arrayOf returns messages as JSON.
func arrayOf(msgs []state.Message) []byte {
	raw := make([]string, len(msgs))
	for i, m := range msgs {
		raw[i] = string(m.Raw())
	}
	return []byte("[" + strings.Join(raw, ",") + "]")
}

// memberOf returns a member of an object.
func memberOf(t *testing.T, object []byte, name string) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &members))
	return members[name]
}

// roundTrip requires that a request decodes and is encoded as it was.
func roundTrip(t *testing.T, f *provider.Format, body []byte) provider.Request {
	t.Helper()
	request, err := f.DecodeRequest(body)
	require.NoError(t, err)
	encoded, omitted, err := f.EncodeRequest(request)
	require.NoError(t, err)
	require.Empty(t, omitted)
	jsonEqual(t, body, encoded)
	return request
}

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
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":""},"content":null,"anthropic":{"joined":true,"block":{"more":{"content":null,"is_error":null}}}},
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":""},"content":{"a":1},"anthropic":{"joined":true,"block":{"more":{"content":{"a":1}},"without":["tool_use_id"]}}}]`},
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
			{"type":"text","role":"system","content":"a","anthropic":{"in":"messages"}},{"type":"text","role":"developer","content":"b","anthropic":{"in":"messages"}},
			{"type":"text","role":"Orchestrator (thought)","content":"c","anthropic":{"in":"messages"}},
			{"type":"text","role":"system","content":[{"type":"tool_addition","tool":{}}],"anthropic":{"in":"messages"}}]`},
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
			jsonEqual(t, []byte(test.want), arrayOf(request.Messages))
			settings := `{"model":"m","temperature":0.0}`
			if test.system == "null" {
				settings = `{"model":"m","system":null,"temperature":0.0}`
			}
			jsonEqual(t, []byte(settings), []byte(request.Settings))
		})
	}
}

func TestAnthropicRefusesRequests(t *testing.T) {
	tests := []struct{ name, body, path string }{
		{"no JSON", `{"messages":[`, "$.messages[0]"},
		{"no object", `[]`, "$"},
		{"no messages", `{"model":"m"}`, "$.messages"},
		{"messages of another kind", `{"messages":{}}`, "$.messages"},
		{"an entry that is not an object", `{"messages":[{"role":"user","content":""},"hi"]}`, "$.messages[1]"},
		{"a member twice", `{"messages":[{"role":"user","role":"user","content":""}]}`, "$.messages[0].role"},
		{"a system prompt of another kind", `{"system":1,"messages":[]}`, "$.system"},
		{"a system prompt of texts", `{"system":["a"],"messages":[]}`, "$.system"},
		{"too deep", `{"messages":[{"role":"user","content":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}]}`, "$.messages[0].content"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := provider.Anthropic.DecodeRequest([]byte(test.body))
			var bad *provider.Error
			require.ErrorAs(t, err, &bad)
			require.True(t, strings.HasPrefix(bad.Path, test.path), bad.Path)
			require.True(t, errors.Is(err, state.ErrWrongType) || errors.Is(err, state.ErrLimitExceeded))
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
			result := responds(t, []byte(body))
			require.Equal(t, "msg_1", result.ID)
			require.True(t, result.CreatedAt.IsZero())
			jsonEqual(t, []byte(test.want), arrayOf(result.Output))
		})
	}

	t.Run("refused", func(t *testing.T) {
		body := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`
		result, err := provider.Anthropic.DecodeResponse([]byte(body))
		var failed *provider.ResponseError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, provider.ResponseError{Format: "Anthropic", Code: "overloaded_error", Message: "Overloaded"}, *failed)
		require.NotContains(t, err.Error(), "Overloaded")
		require.Equal(t, body, result.Raw)
	})
	for _, body := range []string{`{"id":"msg_1"}`, `{"content":null}`, `{"content":{}}`} {
		_, err := provider.Anthropic.DecodeResponse([]byte(body))
		var bad *provider.Error
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "$.content", bad.Path)
	}
}

// responds requires that a response decodes, that its body is kept and that the
// content is encoded as it was.
func responds(t *testing.T, body []byte) state.InferenceResult {
	t.Helper()
	result, err := provider.Anthropic.DecodeResponse(body)
	require.NoError(t, err)
	require.Equal(t, string(body), result.Raw)
	encoded, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: result.Output})
	require.NoError(t, err)
	require.Empty(t, omitted)
	jsonEqual(t, []byte(`{"messages":[{"role":"assistant","content":`+string(memberOf(t, body, "content"))+`}]}`), encoded)
	return result
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
			`[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"k":1},"x":1}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"so?"}]}]`},
		{"only the last piece is there", func(m []state.Message) []state.Message { return m[4:] },
			`[{"role":"user","content":[{"type":"text","text":"so?"}]}]`},
		{"a result is another", func(m []state.Message) []state.Message {
			return []state.Message{m[2], state.ToolResult(state.ToolCall{ID: "a", Name: "f"}, `{"b":2}`), m[4]}
		}, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"k":1},"x":1}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"{\"b\":2}"},{"type":"text","text":"so?"}]}]`},
		{"two conversations", func(m []state.Message) []state.Message {
			return append([]state.Message{state.SystemText("a")}, m[3], state.SystemText("b"), m[0])
		}, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":"b"},{"role":"user","content":"go"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			encoded, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: test.msgs(slices.Clone(request.Messages))})
			require.NoError(t, err)
			require.Empty(t, omitted)
			jsonEqual(t, []byte(test.want), memberOf(t, encoded, "messages"))
		})
	}
}

// Entries in any order are encoded as they were.
func TestAnthropicAnyRequest(t *testing.T) {
	roles := []string{"user", "assistant", "assistant", "user", "system", "developer", "?"}
	blocks := []string{`{"type":"text","text":"a"}`, `{"type":"text","text":""}`, `{"type":"thinking","thinking":"a","signature":"b"}`, `{"type":"image","source":{}}`,
		`{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","id":"a","name":"f","input":[1.0],"x":null}`, `{"type":"tool_use"}`,
		`{"type":"tool_result","tool_use_id":"a","content":"1"}`, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}],"is_error":true}`,
		`{"type":"tool_result","content":{}}`}
	contents := []string{`""`, `"a"`, `[]`, `null`, `[{}]`}
	random := rand.New(rand.NewPCG(1, 2))
	for range effort.Runs(500) {
		var entries []string
		for range random.IntN(6) {
			content := contents[random.IntN(len(contents))]
			if random.IntN(4) > 0 {
				var list []string
				for range 1 + random.IntN(4) {
					list = append(list, blocks[random.IntN(len(blocks))])
				}
				content = "[" + strings.Join(list, ",") + "]"
			}
			entry := `{"role":"` + roles[random.IntN(len(roles))] + `","content":` + content
			if random.IntN(5) == 0 {
				entry += `,"x":1`
			}
			entries = append(entries, entry+"}")
		}
		system := [...]string{``, ``, `"system":"a",`, `"system":[],`, `"system":[{"type":"text","text":"a"},{"type":"new"}],`}[random.IntN(5)]
		roundTrip(t, provider.Anthropic, []byte(`{`+system+`"messages":[`+strings.Join(entries, ",")+`]}`))
	}
}

func FuzzDecodeAnthropic(f *testing.F) {
	f.Add([]byte(`{"system":[{"type":"text","text":"a"}],"messages":[{"role":"user","content":"a","x":1},{"role":"system","content":""}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{"k":1.0},"caller":null}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":null,"is_error":true},{"type":"image","source":{}}]},{"role":"user","content":[{}]}]}`))
	f.Add([]byte(`{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":1,"name":"f","input":"{"}],"stop_reason":"tool_use"}`))
	f.Add([]byte("event: message_start\ndata: " + anthropicStart + "\n\ndata: " + begins("0", `{"type":"tool_use","id":"a","name":"f","input":{}}`) +
		"\n\ndata: " + goesOn("0", `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`) + "\n\ndata: " + anthropicEnd + "\n\ndata: " + anthropicStop + "\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if request, err := provider.Anthropic.DecodeRequest(data); err == nil {
			requireDecodable(t, request.Messages)
			encoded, omitted, err := provider.Anthropic.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)
			require.True(t, state.JSON(data).Equal(state.JSON(encoded)), "%s", encoded)
		}
		result, err := provider.Anthropic.DecodeResponse(data)
		requireDecodable(t, result.Output)
		require.Equal(t, string(data), result.Raw)
		if err == nil {
			_, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: result.Output})
			require.NoError(t, err)
			require.Empty(t, omitted)
		}
		stream := provider.Anthropic.Stream()
		_, err = stream.Write(data)
		require.NoError(t, err)
		result, _ = stream.Result()
		require.Equal(t, string(data), result.Raw)
	})
}
