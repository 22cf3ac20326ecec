package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
)

// The tests of this file prove that messages keep every member of the JSON that
// they came as, that accessors agree with it, and which messages are refused.

func decodeMessage(t require.TestingT, text string) state.Message {
	m, err := state.DecodeMessage([]byte(text))
	require.NoError(t, err, text)
	return m
}

func TestConstructorsWriteAgentKitJSON(t *testing.T) {
	call := state.ToolCall{ID: "c1", Name: "search", Input: ` {"q": 1.0} `}
	for _, tt := range []struct {
		message state.Message
		want    string
	}{
		{state.SystemText("be kind"), `{"type":"text","role":"system","content":"be kind"}`},
		{state.UserText("a <b> & \"c\"\n"), `{"type":"text","role":"user","content":"a <b> & \"c\"\n"}`},
		{state.AssistantText("\xff"), "{\"type\":\"text\",\"role\":\"assistant\",\"content\":\"\uFFFD\",\"stop_reason\":\"stop\"}"},
		{state.ToolCalls(), `{"type":"tool_call","role":"assistant","tools":[],"stop_reason":"tool"}`},
		{
			state.ToolCalls(call, state.ToolCall{Name: "now"}),
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"c1","name":"search","input":{"q":1.0}},{"type":"tool","id":"","name":"now"}],"stop_reason":"tool"}`,
		},
		{
			state.ToolCalls(state.ToolCall{Input: `{"a":1,"a":2}`}), // no valid JSON: its text
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"","input":"{\"a\":1,\"a\":2}"}],"stop_reason":"tool"}`,
		},
		{
			state.ToolCalls(state.ToolCall{ID: "1", Name: "n", Extra: `{"type":"server_tool","id":"2","x": 3,"name":4,"input":5}`}),
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"n","type":"server_tool","x":3}],"stop_reason":"tool"}`,
		},
		{
			state.ToolCalls(state.ToolCall{Extra: `[1]`}, state.ToolCall{Extra: `{"x"`}),
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":""},{"type":"tool","id":"","name":""}],"stop_reason":"tool"}`,
		},
		{
			state.ToolResult(call, `[1, 2]`),
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"c1","name":"search","input":{"q":1.0}},"content":[1,2],"stop_reason":"tool"}`,
		},
		{
			state.ToolResult(state.ToolCall{}, ""),
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":""},"content":null,"stop_reason":"tool"}`,
		},
		{
			state.ToolResult(state.ToolCall{}, `{"broken`),
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"","name":""},"content":"{\"broken","stop_reason":"tool"}`,
		},
		{
			state.ToolError(state.ToolCall{ID: "c2"}, "no \"route\""),
			`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"c2","name":""},"content":"no \"route\"","stop_reason":"tool","is_error":true}`,
		},
	} {
		require.Equal(t, state.JSON(tt.want), tt.message.Raw())
		encoded, err := tt.message.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, tt.want, string(encoded))
		require.Equal(t, tt.message, decodeMessage(t, tt.want), "a made message and a decoded one are the same, to reflect too")
	}
}

func TestDecodeTextMessage(t *testing.T) {
	for _, tt := range []struct{ text, content, said, stop string }{
		{`{"type":"text","role":"user","content":"hi"}`, `"hi"`, "hi", ""},
		{`{"type":"text","role":"user","content":""}`, `""`, "", ""},
		{`{"type":"text","role":"user","content":null,"stop_reason":null}`, `null`, "", ""},
		{`{"type":"text","role":"user"}`, ``, "", ""},
		{`{"type":"text","role":"a","content":"\u003c\ud83d\ude00\"","stop_reason":"st\u006fp"}`, `"\u003c\ud83d\ude00\""`, `<😀"`, "stop"},
		{`{"type":"text","role":"a","content":"299.0","stop_reason":154829}`, `"299.0"`, "299.0", "154829"},
		{`{"type":"text","role":"a","content":"","stop_reason":14836394043272784000.0}`, `""`, "", "14836394043272784000.0"},
		{`{"type":"text","role":"a","content":[]}`, `[]`, "", ""},
		{`{"type":"text","role":"a","content":[{"type":"text","text":"a"},{"type":"image","text":"no"},{"x":1},{"text":"b\n","type":"t\u0065xt"},{"type":"text","text":""}]}`,
			`[{"type":"text","text":"a"},{"type":"image","text":"no"},{"x":1},{"text":"b\n","type":"t\u0065xt"},{"type":"text","text":""}]`, "a\nb\n\n", ""},
	} {
		m, ok := decodeMessage(t, tt.text).(state.TextMessage)
		require.True(t, ok)
		require.Equal(t, state.JSON(tt.content), m.Content())
		require.Equal(t, tt.said, m.Text())
		require.Equal(t, tt.stop, m.StopReason())
		require.Equal(t, state.JSON(tt.text), m.Raw())
		require.Equal(t, "text", m.Type())
	}
}

func TestDecodeToolCallMessage(t *testing.T) {
	m := decodeMessage(t, `{"type":"tool_call","role":"assistant","tools":[
		{"type":"tool","id":"same","name":"a","input":{"n":9007199254740993}},
		{"type":"tool","id":"same","name":"a","input":""},
		{"name":"no id","signature":"x\/y","type":"mcp"},
		{"type":"tool","id":null,"name":"\u0061","input":null,"i\u0064x":1.0}
	],"stop_reason":"stop"}`).(state.ToolCallMessage)
	want := []state.ToolCall{
		{ID: "same", Name: "a", Input: `{"n":9007199254740993}`},
		{ID: "same", Name: "a", Input: `""`},
		{Name: "no id", Extra: `{"signature":"x\/y","type":"mcp"}`},
		{Name: "a", Input: `null`, Extra: `{"idx":1.0}`},
	}
	require.Equal(t, want, m.Calls())
	require.Equal(t, "stop", m.StopReason())

	m.Calls()[0].Name = "changed"
	require.Equal(t, want, m.Calls(), "the slice is the caller's own")

	require.Equal(t, want, state.ToolCalls(m.Calls()...).Calls(), "a call survives being sent again")
}

func TestDecodeToolResultMessage(t *testing.T) {
	const head, tail = `{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"1","name":"f","input":{}}`, `,"stop_reason":"tool"}`
	for _, tt := range []struct {
		content, text string
		isError       bool
	}{
		{`,"content":""`, "", false},
		{``, "", false},
		{`,"content":null`, "null", false},
		{`,"content":"299.0"`, "299.0", false},
		{`,"content":299.0`, "299.0", false},
		{`,"content":"true"`, "true", false},
		{`,"content":[{"type":"text","text":"a"}]`, "a", false},
		{`,"content":"Error: no","is_error":false`, "Error: no", false}, // only the member decides
		{`,"content":{"is_error":true}`, `{"is_error":true}`, false},
		{`,"content":"fine","is_error":true`, "fine", true},
		{`,"content":"fine","is_error":"true"`, "fine", false},
	} {
		m := decodeMessage(t, head+tt.content+tail).(state.ToolResultMessage)
		require.Equal(t, tt.text, m.Text(), tt.content)
		require.Equal(t, tt.isError, m.IsError(), tt.content)
		require.Equal(t, state.ToolCall{ID: "1", Name: "f", Input: "{}"}, m.Call())
		require.Equal(t, state.JSON(head+tt.content+tail), m.Raw())
		require.Equal(t, "tool", m.StopReason())
	}
}

func TestUnknownPassesThrough(t *testing.T) {
	const text = `{"id":"rs_1","type":"reasoning","role":7,"summary":[],"encrypted_content":"gAAA+/=","tools":3,"stop_reason":null,"n":-0.0}`
	m := decodeMessage(t, text)
	require.IsType(t, state.UnknownMessage{}, m)
	require.Equal(t, "reasoning", m.Type())
	require.Equal(t, "", m.Role())
	require.Equal(t, state.JSON(text), m.Raw())
	for name, want := range map[string]state.JSON{"encrypted_content": `"gAAA+/="`, "tools": `3`, "stop_reason": `null`, "n": `-0.0`} {
		got, ok := m.Extra(name)
		require.True(t, ok, name)
		require.Equal(t, want, got)
	}
	_, ok := m.Extra("type")
	require.False(t, ok)
}

func TestUnknownMembersAreKept(t *testing.T) {
	m := decodeMessage(t, `{"thought_signature":"s","type":"text","role":"Orchestrator (-> WebSurfer)","content":"x","tools":null,"Rolle":1.50}`)
	require.Equal(t, "Orchestrator (-> WebSurfer)", m.Role())
	for name, want := range map[string]state.JSON{"thought_signature": `"s"`, "tools": `null`, "Rolle": `1.50`} {
		got, ok := m.Extra(name)
		require.True(t, ok, name)
		require.Equal(t, want, got)
	}
	for _, known := range []string{"type", "role", "content", "stop_reason", "missing"} {
		_, ok := m.Extra(known)
		require.False(t, ok, known)
	}
}

func TestDecodeMessageRefuses(t *testing.T) {
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	for _, tt := range []struct{ text, want string }{
		{``, "state: \"message\": want a value, got the end of the text"},
		{`[]`, "state: \"message\": want object, got array"},
		{`null`, "state: \"message\": want object, got null"},
		{`{}`, "state: \"message\": $.type: want string, got nothing"},
		{`{"type":1}`, "state: \"message\": $.type: want string, got number"},
		{`{"Type":"text","role":"user","content":""}`, "state: \"message\": $.type: want string, got nothing"},
		{`{"type":"text","content":"a"}`, "state: \"message\": $.role: want string, got nothing"},
		{`{"type":"text","ROLE":"user","content":"a"}`, "state: \"message\": $.role: want string, got nothing"},
		{`{"type":"text","role":"user","content":"a","Content":"b"}`, "state: \"message\": $.Content: want content, got it in another case"},
		{`{"type":"tool_call","role":null,"tools":[]}`, "state: \"message\": $.role: want string, got null"},
		{`{"type":"text","role":"user","role":"system","content":""}`, "state: \"message\": $.role: the member occurs twice"},
		{`{"type":"text","role":"user","r\u006fle":"system","content":""}`, "state: \"message\": $.role: the member occurs twice"},
		{`{"type":"text","role":"user","content":1}`, "state: \"message\": $.content: want string or array, got number"},
		{`{"type":"text","role":"user","content":{}}`, "state: \"message\": $.content: want string or array, got object"},
		{`{"type":"text","role":"user","content":["a"]}`, "state: \"message\": $.content[0]: want object, got string"},
		{`{"type":"text","role":"user","content":[{"type":"text"}]}`, "state: \"message\": $.content[0].text: want string, got nothing"},
		{`{"type":"text","role":"user","content":[{},{"type":"text","text":null}]}`, "state: \"message\": $.content[1].text: want string, got null"},
		{`{"type":"tool_call","role":"assistant"}`, "state: \"message\": $.tools: want array, got nothing"},
		{`{"type":"tool_call","role":"assistant","tools":{}}`, "state: \"message\": $.tools: want array, got object"},
		{`{"type":"tool_call","role":"assistant","tools":[{},1]}`, "state: \"message\": $.tools[1]: want object, got number"},
		{`{"type":"tool_call","role":"assistant","tools":[{"id":5}]}`, "state: \"message\": $.tools[0].id: want string, got number"},
		{`{"type":"tool_call","role":"assistant","tools":[{"name":[]}]}`, "state: \"message\": $.tools[0].name: want string, got array"},
		{`{"type":"tool_result","role":"tool_result","content":1}`, "state: \"message\": $.tool: want object, got nothing"},
		{`{"type":"tool_result","role":"tool_result","tool":{"name":true}}`, "state: \"message\": $.tool.name: want string, got bool"},
		{"{\"type\":\"text\",\"role\":\"user\",\"content\":\"\xff\"}", "state: \"message\": $.content: invalid UTF-8 at byte 40"},
		{`{"type":"text","role":"user","content":"\ud800"}`, "state: \"message\": $.content: invalid escape at byte 40"},
		{`{"type":"x","a":` + deep + `}`, "state: \"message\": limit Depth: 65 is more than 64"},
		{`{"type":"x"}` + strings.Repeat(" ", 64<<20), "state: \"message\": limit Bytes: 67108876 is more than 67108864"},
	} {
		m, err := state.DecodeMessage([]byte(tt.text))
		require.EqualError(t, err, tt.want)
		require.Nil(t, m)
	}
}

func TestConstructorsKeepTheDepthLimit(t *testing.T) {
	nested := func(n int) state.JSON {
		return state.JSON(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	fits, call := nested(63), state.ToolCall{Input: nested(61)}
	require.Equal(t, fits, state.ToolResult(call, fits).Content())
	require.Equal(t, state.JSONText(string(nested(64))), state.ToolResult(call, nested(64)).Content())
	require.Equal(t, nested(61), state.ToolCalls(call).Calls()[0].Input)
	require.Equal(t, state.JSONText(string(nested(62))), state.ToolCalls(state.ToolCall{Input: nested(62)}).Calls()[0].Input)
	call.Extra = `{"x":` + nested(61) + `}`
	for _, m := range []state.Message{state.ToolCalls(call), state.ToolResult(call, fits), state.ToolResult(call, nested(64))} {
		require.Equal(t, m, decodeMessage(t, string(m.Raw())))
		list, err := state.DecodeMessages([]byte("[" + m.Raw() + "]"))
		require.NoError(t, err)
		require.Equal(t, []state.Message{m}, list)
	}
}

func TestDecodeMessages(t *testing.T) {
	want := []state.Message{state.UserText("a"), state.ToolCalls(state.ToolCall{ID: "1"}), decodeMessage(t, `{"type":"x"}`)}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	got, err := state.DecodeMessages(data)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i := range data {
		data[i] = ' '
	}
	require.Equal(t, want, got, "data is not retained")

	got, err = state.DecodeMessages([]byte(` null `))
	require.NoError(t, err)
	require.Nil(t, got)
	got, err = state.DecodeMessages([]byte(`[]`))
	require.NoError(t, err)
	require.Equal(t, []state.Message{}, got)

	for text, want := range map[string]string{
		`{}`: "state: \"messages\": want array, got object",
		`[{"type":"x"},{"type":"text","role":"u","content":7}]`: "state: \"messages\": $[1].content: want string or array, got number",
		`[null]`:                       "state: \"messages\": $[0]: want object, got null",
		`[{"type":"x"},{"a":1,"a":2}]`: "state: \"messages\": $[1].a: the member occurs twice",
		`[{"type":"x"}`:                "state: \"messages\": $[0]: want ',' or ']' after it, got the end of the text",
	} {
		got, err := state.DecodeMessages([]byte(text))
		require.EqualError(t, err, want)
		require.Nil(t, got)
	}
}

func TestMessageEqual(t *testing.T) {
	text := decodeMessage(t, `{"type":"text","role":"user","content":"<a>"}`)
	require.True(t, text.Equal(decodeMessage(t, ` { "content":"\u003ca>", "role":"us\u0065r", "type":"text" } `)))
	require.True(t, text.Equal(state.UserText("<a>")))
	for _, other := range []state.Message{
		nil, state.TextMessage{}, state.UserText("<a> "), state.SystemText("<a>"), state.UnknownMessage{},
		decodeMessage(t, `{"type":"text","role":"user","content":"<a>","x":null}`),
		decodeMessage(t, `{"type":"text","role":"user","content":[{"type":"text","text":"<a>"}]}`),
	} {
		require.False(t, text.Equal(other), "%v", other)
		if other != nil {
			require.False(t, other.Equal(text), "%v", other)
		}
	}
	number := decodeMessage(t, `{"type":"n","v":1}`)
	require.False(t, number.Equal(decodeMessage(t, `{"type":"n","v":1.0}`)), "numbers as spelled")
	require.False(t, number.Equal(decodeMessage(t, `{"type":"n","v":"1"}`)))
}

func TestEncodingJSONEscapesButKeepsTheValue(t *testing.T) {
	m := state.UserText("<script> & \u2028")
	encoded, err := json.Marshal(m)
	require.NoError(t, err)
	require.NotEqual(t, string(m.Raw()), string(encoded))
	var got state.TextMessage
	require.NoError(t, json.Unmarshal(encoded, &got))
	require.True(t, got.Equal(m))
	require.Equal(t, m.Text(), got.Text())
}

func TestUnmarshalWantsTheRightType(t *testing.T) {
	var text state.TextMessage
	require.EqualError(t, json.Unmarshal([]byte(`{"type":"x"}`), &text), `state: "message": $.type: want that of a TextMessage, got "x"`)
	require.Error(t, json.Unmarshal([]byte(`{"type":"text"}`), &text))
	require.Equal(t, state.TextMessage{}, text)
	require.NoError(t, json.Unmarshal([]byte(state.UserText("a").Raw()), &text))
	require.Equal(t, state.UserText("a"), text)

	var calls state.ToolCallMessage
	require.NoError(t, json.Unmarshal([]byte(state.ToolCalls().Raw()), &calls))
	require.EqualError(t, json.Unmarshal([]byte(text.Raw()), &calls), `state: "message": $.type: want that of a ToolCallMessage, got "text"`)
	var result state.ToolResultMessage
	require.NoError(t, json.Unmarshal([]byte(state.ToolResult(state.ToolCall{}, "1").Raw()), &result))
	require.Error(t, json.Unmarshal([]byte(text.Raw()), &result))
	var unknown state.UnknownMessage
	require.NoError(t, json.Unmarshal([]byte(`{"type":"x"}`), &unknown))
	require.Error(t, json.Unmarshal([]byte(text.Raw()), &unknown))
}

func TestZeroMessages(t *testing.T) {
	zeros := []state.Message{state.TextMessage{}, state.ToolCallMessage{}, state.ToolResultMessage{}, state.UnknownMessage{}}
	for i, m := range zeros {
		require.Equal(t, []string{"text", "tool_call", "tool_result", ""}[i], m.Type())
		require.Empty(t, m.Role())
		require.Empty(t, m.Raw())
		require.NotEmpty(t, m.String())
		require.NotEmpty(t, fmt.Sprintf("%v %+v %#v", m, m, m))
		_, ok := m.Extra("x")
		require.False(t, ok)
		data, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, "null", string(data))
		for j, other := range zeros {
			require.Equal(t, i == j, m.Equal(other))
		}
	}
	require.Empty(t, state.TextMessage{}.Text()+state.TextMessage{}.StopReason()+string(state.TextMessage{}.Content()))
	require.Empty(t, state.ToolCallMessage{}.Calls())
	require.Empty(t, state.ToolCallMessage{}.StopReason())
	require.Equal(t, state.ToolCall{}, state.ToolResultMessage{}.Call())
	require.Empty(t, state.ToolResultMessage{}.Text()+string(state.ToolResultMessage{}.Content())+state.ToolResultMessage{}.StopReason())
	require.False(t, state.ToolResultMessage{}.IsError())
}

func TestMessageStringIsOneSafeLine(t *testing.T) {
	long := strings.Repeat("é", 1000) + "\n\x1b[2J\u202e"
	call := state.ToolCall{ID: long, Name: "a\nb"}
	for _, m := range []state.Message{
		state.UserText("a\n\x1b[2J\u202e" + long), state.ToolCalls(call, call, call, call, call, call),
		state.ToolResult(call, state.JSONText(long)), state.ToolError(call, long),
		decodeMessage(t, `{"type":"a\n\u202e","role":"`+strings.Repeat("r", 500)+`"}`),
	} {
		s := m.String()
		require.Less(t, len(s), 3000)
		for _, r := range s {
			require.True(t, r == '…' || r >= 0x20 && r < 0x7f, "%q", s)
		}
	}
	require.Equal(t, `text "user": "hi"`, state.UserText("hi").String())
	require.Equal(t, `tool_call "assistant": "f" id "1"`, state.ToolCalls(state.ToolCall{ID: "1", Name: "f"}).String())
	require.Equal(t, `tool_result (error) "f" id "1": "no"`, state.ToolError(state.ToolCall{ID: "1", Name: "f"}, "no").String())
}

func TestJSON(t *testing.T) {
	require.Equal(t, state.JSON(`"<\"\n\u0000`+"\uFFFD"+`>"`), state.JSONText("<\"\n\x00\xff>"))

	for _, tt := range []struct {
		json state.JSON
		text string
	}{
		{``, ``}, {`"`, `"`}, {`""`, ``}, {`"a"`, `a`}, {`"\u0061\n"`, "a\n"}, {`299.0`, `299.0`}, {`null`, `null`},
		{`{"a": 1}`, `{"a": 1}`}, {`"a"b"`, `"a"b"`}, {`"a\"`, `"a\"`}, {`"a\x"`, `"a\x"`},
		{`"a" `, `a`}, {` "a"`, `a`}, {"\n\"\\n\"\t", "\n"}, {` 1 `, ` 1 `}, {"\"a\nb\"", "\"a\nb\""}, {"\"\xff\"", "\"\xff\""},
	} {
		require.Equal(t, tt.text, tt.json.Text(), "%q", string(tt.json))
	}

	for text, want := range map[state.JSON]bool{
		``: false, `null`: true, ` 1 `: true, `1 2`: false, `{"a":1,"a":1}`: false, `"\ud800"`: false, "\"\xff\"": false,
		state.JSON(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)): true,
		state.JSON(strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)): false,
	} {
		require.Equal(t, want, text.Valid(), "%.40q", string(text))
	}

	for _, tt := range []struct {
		a, b state.JSON
		want bool
	}{
		{``, ``, true}, {``, `null`, false}, {`{"a":1,"b":[2]}`, ` {"b":[ 2 ],"\u0061":1}`, true}, {`1`, `1.0`, false},
		{`"<"`, `"\u003c"`, true}, {`[1,2]`, `[2,1]`, false}, {`{}`, `[]`, false}, {`{}`, `null`, false}, {`{"a":null}`, `{}`, false},
		{`x`, `x`, true}, {`x`, `y`, false}, {`1`, `"1"`, false}, {`1`, `1x`, false},
	} {
		require.Equal(t, tt.want, tt.a.Equal(tt.b), "%s %s", string(tt.a), string(tt.b))
		require.Equal(t, tt.want, tt.b.Equal(tt.a), "%s %s", string(tt.a), string(tt.b))
	}
}

func TestJSONDecode(t *testing.T) {
	var v any
	require.NoError(t, state.JSON(`{"n":[9007199254740993,1.0]}`).Decode(&v))
	require.Equal(t, map[string]any{"n": []any{json.Number("9007199254740993"), json.Number("1.0")}}, v)
	var typed struct{ N uint64 }
	require.NoError(t, state.JSON(`{"n":14836394043272784000}`).Decode(&typed))
	require.Equal(t, uint64(14836394043272784000), typed.N)
	require.Error(t, state.JSON(`{"n":"x"}`).Decode(&typed))
	for _, bad := range []state.JSON{``, `1 2`, `{"n":1,"n":2}`, `{"n":1`} {
		require.ErrorContains(t, bad.Decode(&typed), `state: "JSON": `)
	}
}

func TestJSONOf(t *testing.T) {
	got, err := state.JSONOf(map[string]any{"b": "<&>", "a": state.JSON(`{"x": 1.0, "h":"<"}`), "c": state.JSON("")})
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"a":{"x":1.0,"h":"<"},"b":"<&>","c":null}`), got)
	for _, bad := range []any{make(chan int), state.JSON(`{"a"`), json.RawMessage(`{"a":1,"a":2}`)} {
		_, err := state.JSONOf(bad)
		require.Regexp(t, `^state: "?JSON"?: `, err.Error())
	}
}

func TestJSONInsideStructs(t *testing.T) {
	type call struct {
		Args, Gone, Null state.JSON
		Keep             state.JSON `json:"keep,omitempty"`
	}
	var c call
	data := []byte(`{"Args": {"n" : 1.0, "s": " a "}, "Null": null}`)
	require.NoError(t, json.Unmarshal(data, &c))
	for i := range data {
		data[i] = 'x'
	}
	require.Equal(t, call{Args: `{"n":1.0,"s":" a "}`, Null: "null"}, c)
	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	require.Equal(t, `{"Args":{"n":1.0,"s":" a "},"Gone":null,"Null":null}`, string(encoded))
	require.Error(t, json.Unmarshal([]byte(`{"Args":{"a":1,"a":2}}`), &c))
}

// drawJSON draws a JSON value up to some levels deep.
func drawJSON(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return json.Number(rapid.SampledFrom([]string{"0", "-0", "1.0", "1e400", "9007199254740993", "2.5071593847983196e-06"}).Draw(t, "number"))
	case 3:
		return rapid.String().Draw(t, "string")
	case 4:
		return rapid.SampledFrom([]string{"", "<>&", "\u2028", "😀", "\x00\x1b", `"\`, "text", "299.0"}).Draw(t, "odd string")
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			list = append(list, drawJSON(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		object[rapid.StringN(0, 3, -1).Draw(t, "name")] = drawJSON(t, depth-1)
	}
	return object
}

func drawMessage(t *rapid.T) state.Message {
	text := rapid.String()
	value := func(label string) state.JSON {
		j, err := state.JSONOf(drawJSON(t, 3))
		require.NoError(t, err, label)
		return j
	}
	call := func() state.ToolCall {
		c := state.ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name")}
		if rapid.Bool().Draw(t, "input") {
			c.Input = value("input")
		}
		if rapid.Bool().Draw(t, "extra") {
			c.Extra = `{"signature":` + value("extra") + `}`
		}
		return c
	}
	switch rapid.IntRange(0, 5).Draw(t, "type") {
	case 0:
		return state.UserText(text.Draw(t, "text"))
	case 1:
		return state.AssistantText(text.Draw(t, "text"))
	case 2:
		return state.ToolCalls(call(), call())
	case 3:
		return state.ToolResult(call(), value("content"))
	case 4:
		return state.ToolError(call(), text.Draw(t, "text"))
	}
	return decodeMessage(t, fmt.Sprintf(`{"type":"custom","value":%s,"content":%s}`, value("value"), value("content")))
}

func TestMessageRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		again := decodeMessage(t, string(m.Raw()))
		require.Equal(t, m, again)
		require.True(t, reflect.DeepEqual(m, again))

		// Another order of members and other escapes: equal, so the hash, which
		// Equal compares first, is the same too.
		var v any
		require.NoError(t, m.Raw().Decode(&v))
		sorted, err := json.Marshal(v)
		require.NoError(t, err)
		other := decodeMessage(t, string(sorted))
		require.True(t, m.Equal(other), "%s\n%s", m.Raw(), sorted)
		require.True(t, other.Equal(m))

		n := drawMessage(t)
		require.Equal(t, m.Raw().Equal(n.Raw()), m.Equal(n))

		switch m := m.(type) {
		case state.ToolCallMessage:
			require.Equal(t, m, state.ToolCalls(m.Calls()...))
		case state.ToolResultMessage:
			if !m.IsError() {
				require.Equal(t, m, state.ToolResult(m.Call(), m.Content()))
			}
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"text","role":"user","content":"hi"}`,
		`{"type":"text","role":"assistant","content":[{"type":"text","text":"a\u0062"},{"type":"image"}],"stop_reason":154829}`,
		` { "content" : null , "type" : "text" , "role" : "a" } `,
		`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{"n":1.0}},{"x":{}}],"stop_reason":"tool"}`,
		`{"type":"tool_result","role":"tool_result","tool":{"id":null},"content":"299.0","is_error":true}`,
		`{"type":"compaction","role":1,"a":[],"\u0061b":{}}`,
		`{"type":"text","role":"user","r\u006fle":"system"}`,
		`{"type":"text","role":"user","content":"` + "\u2028<" + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := state.DecodeMessage(data)
		if err != nil {
			require.Nil(t, m)
			if !errors.Is(err, state.ErrLimitExceeded) {
				var wrong *state.TypeError
				require.ErrorAs(t, err, &wrong)
				require.ErrorIs(t, err, state.ErrWrongType)
				require.Regexp(t, `^\$`, wrong.Path)
				at := strings.TrimPrefix(wrong.Path+": ", "$: ") // the message itself has no path
				require.ErrorContains(t, err, "state: \"message\": "+at)
			}
			return
		}
		require.True(t, m.Raw().Equal(state.JSON(data)))
		again := decodeMessage(t, string(m.Raw()))
		require.Equal(t, m, again)
		require.Equal(t, m.Raw(), again.Raw())
		escaped, err := json.Marshal(m)
		require.NoError(t, err)
		require.True(t, m.Equal(decodeMessage(t, string(escaped))))
		require.NotEmpty(t, m.String())

		switch m := m.(type) {
		case state.TextMessage:
			m.Text()
			m.StopReason()
		case state.ToolCallMessage:
			require.Equal(t, m.Calls(), state.ToolCalls(m.Calls()...).Calls())
		case state.ToolResultMessage:
			require.Equal(t, m.Call(), state.ToolResult(m.Call(), m.Content()).Call())
		}

		list, err := state.DecodeMessages([]byte(`[` + string(data) + `]`))
		require.NoError(t, err)
		require.Equal(t, []state.Message{m}, list)
	})
}

func TestTextAndPartsOfAnyRole(t *testing.T) {
	require.Equal(t, state.JSON(`{"type":"text","role":"critic \"2\"","content":"a\nb"}`), state.Text(`critic "2"`, "a\nb").Raw())
	require.True(t, state.Text("user", "hi").Equal(state.UserText("hi")))
	m, err := state.Parts("user", `{ "type": "text", "text": "what is" }`, `{"type":"image","source":{"n":1.0}}`, `{"type":"text","text":"this?"}`)
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"type":"text","role":"user","content":[{"type":"text","text":"what is"},{"type":"image","source":{"n":1.0}},{"type":"text","text":"this?"}]}`), m.Raw())
	require.Equal(t, "what is\nthis?", m.Text())
	decoded, err := state.DecodeMessage([]byte(m.Raw()))
	require.NoError(t, err)
	require.True(t, m.Equal(decoded))
	m, err = state.Parts("user")
	require.NoError(t, err)
	require.Equal(t, state.JSON(`[]`), m.Content())
	deep := state.JSON(`{"a":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}`)
	m, err = state.Parts("user", deep)
	require.NoError(t, err)
	_, err = state.DecodeMessage([]byte(m.Raw()))
	require.NoError(t, err, "what can be made can be read")
	for part, want := range map[state.JSON]string{
		"":                         `$.content[1]: want a value, got the end of the text`,
		`{"a":1},{"b":1}`:          `$.content[1]`,
		`{"a":1,"a":2}`:            `$.content[1].a`,
		`"text"`:                   `$.content[1]: want object, got string`,
		`null`:                     `$.content[1]: want object, got null`,
		`{"type":"text"}`:          `$.content[1].text: want string, got`,
		`{"type":"text","text":1}`: `$.content[1].text: want string, got number`,
		"{\"a\":\"\xff\"}":         `$.content[1].a`,
	} {
		m, err := state.Parts("user", `{"type":"text","text":"a"}`, part)
		require.Empty(t, m.Raw())
		require.ErrorIs(t, err, state.ErrWrongType, part)
		require.ErrorContains(t, err, `state: "message": `+want, part)
	}
	_, err = state.Parts("user", `{"a":`+deep+`}`)
	require.ErrorIs(t, err, state.ErrLimitExceeded)
}

// Results of tools are often parts, and their text is what a reader wants.
func TestTextOfResults(t *testing.T) {
	for content, want := range map[state.JSON]string{
		`"8"`: "8", `8`: "8", `{"a":1}`: `{"a":1}`, `[1,2]`: `[1,2]`, `[]`: `[]`, ``: "null",
		`[{"type":"text","text":"8"}]`: "8",
		`[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b"}]`: "a\nb",
		`[{"type":"image","source":{}}]`:            `[{"type":"image","source":{}}]`,
		`[{"type":"text","text":"a"},{"name":"b"}]`: `[{"type":"text","text":"a"},{"name":"b"}]`,
		`[{"type":"text","text":1}]`:                `[{"type":"text","text":1}]`,
	} {
		require.Equal(t, want, state.ToolResult(state.ToolCall{ID: "1", Name: "f"}, content).Text(), "%s", string(content))
	}
}
