package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// fullBodies have every member that the reference of each format gives a
// request. Some SDKs serialise each member that they do not use as null.
// Without a member of required, the provider refuses the request or it says
// something else.
var fullBodies = []struct {
	format   *provider.Format
	profile  transcript.Profile
	body     string
	required []string // paths, with [] for an element of an array
}{
	{provider.OpenAI, transcript.OpenAI, `{"model":"m","temperature":1,"tools":[],"stop":"x","messages":[
		{"role":"system","name":"s","content":"Be brief."},
		{"role":"user","name":"ann","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"low"}},
			{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}},{"type":"file","file":{"filename":"a","file_data":"aGk=","file_id":"f"}}]},
		{"role":"assistant","name":"b","content":"I look.","refusal":"r","reasoning_content":"hm","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}],"audio":{"id":"a"},"annotations":[],
			"function_call":{"name":"","arguments":null},"tool_calls":[{"id":"1","index":0,"type":"function","function":{"name":"f","arguments":"{}","strict":true}}]},
		{"role":"tool","tool_call_id":"1","name":"f","content":"r"}]}`,
		[]string{"$.messages", "$.messages[]", "$.messages[].role", "$.messages[].content", "$.messages[].content[]", "$.messages[].content[].type", "$.messages[].content[].text",
			"$.messages[].tool_calls", "$.messages[].tool_calls[]", "$.messages[].tool_calls[].id", "$.messages[].tool_calls[].function", "$.messages[].tool_calls[].function.name", "$.messages[].tool_call_id"}},
	{provider.OpenAIResponses, transcript.OpenAIResponses, `{"model":"m","instructions":"Be brief.","previous_response_id":"p","conversation":"c","prompt":{"id":"p"},"reasoning":{"effort":"low"},"text":{},"tools":[],"input":[
		{"type":"message","id":"m1","status":"completed","phase":"x","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://e.org/a.png","file_id":"f","detail":"low"},{"type":"input_file","file_url":"https://e.org/a.pdf","file_data":"aGk=","filename":"a","file_id":"f"}]},
		{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":"e","status":"completed"},
		{"type":"message","id":"m2","status":"completed","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[],"logprobs":[]}]},
		{"type":"function_call","id":"fc_1","call_id":"1","name":"f","arguments":"{}","status":"completed","namespace":"n"},
		{"type":"function_call_output","id":"fo_1","call_id":"1","output":"r","status":"completed"}]}`,
		[]string{"$.instructions", "$.input", "$.input[]", "$.input[].type", "$.input[].role", "$.input[].content", "$.input[].content[]", "$.input[].content[].type", "$.input[].content[].text",
			"$.input[].id", "$.input[].call_id", "$.input[].name", "$.input[].output"}},
	{provider.Anthropic, transcript.Anthropic, `{"model":"m","max_tokens":1,"metadata":{},"stop_sequences":[],"thinking":{"type":"enabled","budget_tokens":1},"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"},"citations":[]}],"messages":[
		{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"},"citations":[]},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},
			{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"},"title":"t","context":"c","citations":{"enabled":true}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"b"},{"type":"tool_use","id":"1","name":"f","input":{},"cache_control":{"type":"ephemeral"},"caller":{"type":"direct"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}],"is_error":false,"cache_control":{"type":"ephemeral"}}]}]}`,
		[]string{"$.system", "$.system[]", "$.system[].type", "$.system[].text", "$.messages", "$.messages[]", "$.messages[].role", "$.messages[].content", "$.messages[].content[]", "$.messages[].content[].type", "$.messages[].content[].text",
			"$.messages[].content[].id", "$.messages[].content[].name", "$.messages[].content[].input", "$.messages[].content[].tool_use_id",
			"$.messages[].content[].content[]", "$.messages[].content[].content[].type", "$.messages[].content[].content[].text"}},
	{provider.Gemini, transcript.Gemini, `{"systemInstruction":{"role":"user","parts":[{"text":"Be brief.","thought":false}]},"generationConfig":{"temperature":1},"tools":[],"toolConfig":{},"safetySettings":[],"cachedContent":"c","labels":{},"contents":[
		{"role":"user","parts":[{"text":"a","inlineData":null,"thought":false,"thoughtSignature":"s","videoMetadata":{},"partMetadata":{}},{"inlineData":{"mimeType":"image/png","data":"aGk=","displayName":"n"}},{"fileData":{"mimeType":"image/png","fileUri":"https://e.org/a"}}]},
		{"role":"model","parts":[{"thought":true,"text":"hm"},{"text":"b"},{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"s","thought":false}]},
		{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"a":1},"willContinue":false,"scheduling":"SILENT","parts":[]}}]}]}`,
		[]string{"$.contents", "$.contents[]", "$.contents[].parts", "$.contents[].parts[]", "$.contents[].parts[].text", "$.contents[].parts[].functionCall", "$.contents[].parts[].functionCall.id", "$.contents[].parts[].functionCall.name",
			"$.contents[].parts[].functionResponse", "$.contents[].parts[].functionResponse.id", "$.contents[].parts[].functionResponse.name", "$.contents[].parts[].functionResponse.response", "$.contents[].parts[].functionResponse.response.a", "$.contents[].role",
			"$.systemInstruction.parts", "$.systemInstruction.parts[]", "$.systemInstruction.parts[].text"}},
}

// eachValue calls visit for every value in a JSON value, with its path and a
// function that replaces it. Replaced by drop, a member is removed.
func eachValue(value any, path string, replace func(any), visit func(path string, replace func(any))) {
	visit(path, replace)
	switch value := value.(type) {
	case jsonObject:
		for name, inner := range value {
			eachValue(inner, path+"."+name, func(with any) {
				if value[name] = with; with == drop {
					delete(value, name)
				}
			}, visit)
		}
	case jsonArray:
		for i, inner := range value {
			eachValue(inner, path+"[]", func(with any) { value[i] = with }, visit)
		}
	}
}

// drop stands for no value.
var drop any = new(int)

// withEach returns the body with one value replaced, for each value whose path
// is not required.
func withEach(t *testing.T, body string, required []string, with any) (paths []string, bodies [][]byte) {
	t.Helper()
	parse := func() (value jsonObject) {
		d := json.NewDecoder(bytes.NewReader([]byte(body)))
		d.UseNumber()
		require.NoError(t, d.Decode(&value))
		return value
	}
	var all []string
	eachValue(parse(), "$", nil, func(path string, _ func(any)) { all = append(all, path) })
	slices.Sort(all)
	all = slices.Compact(all)
	for _, one := range all {
		if one == "$" || slices.Contains(required, one) {
			continue
		}
		value := parse()
		eachValue(value, "$", nil, func(path string, replace func(any)) {
			if path == one {
				replace(with)
			}
		})
		data, err := json.Marshal(value)
		require.NoError(t, err)
		paths, bodies = append(paths, one), append(bodies, data)
	}
	return paths, bodies
}

// withoutNull removes the ways to say that a result is empty.
var withoutNull = strings.NewReplacer("null", "", `{"output":null}`, "", "{}", "")

// meaning describes what messages say to a program that reads them.
func meaning(msgs []state.Message) (said []string) {
	for _, m := range msgs {
		text := m.Type() + " " + m.Role()
		switch m := m.(type) {
		case state.TextMessage:
			text += " " + m.Text()
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				text += fmt.Sprintf(" %s %s %s", c.ID, c.Name, strings.TrimPrefix(string(c.Input), "null"))
			}
		case state.ToolResultMessage:
			text += fmt.Sprintf(" %s %s %t", m.Call().ID, withoutNull.Replace(m.Text()), m.IsError())
		}
		said = append(said, text)
	}
	return said
}

// carriedTo returns what a format reads of the messages that it is sent.
func carriedTo(t *testing.T, f *provider.Format, msgs []state.Message) []state.Message {
	t.Helper()
	body, _, err := f.EncodeRequest(provider.Request{Messages: msgs})
	require.NoError(t, err)
	request, err := f.DecodeRequest(body)
	require.NoError(t, err)
	return request.Messages
}

// A member that may be missing may be null. It is neither a message nor a
// finding, and it stays null.
func TestNullIsLikeMissing(t *testing.T) {
	for _, full := range fullBodies {
		paths, nulls := withEach(t, full.body, full.required, nil)
		_, without := withEach(t, full.body, full.required, drop)
		require.Greater(t, len(paths), 15)
		for i, path := range paths {
			t.Run(full.format.String()+path, func(t *testing.T) {
				request := roundTrip(t, full.format, nulls[i])
				missing := roundTrip(t, full.format, without[i])
				require.Equal(t, meaning(missing.Messages), meaning(request.Messages))
				profile := full.profile.Continued()
				require.Empty(t, transcript.Check(request.Messages, profile))
				for _, to := range targets {
					require.Equal(t, meaning(carriedTo(t, to.format, missing.Messages)), meaning(carriedTo(t, to.format, request.Messages)))
				}
			})
		}
	}
}

// fullResponses are the same for responses. The same members are null in the
// chunks of streams.
var fullResponses = []struct {
	format   *provider.Format
	body     string
	stream   func(body string) string // the event that says the same, "" if there is none
	required []string
}{
	{provider.OpenAI, `{"id":"r","object":"chat.completion","created":1700000000,"model":"m","service_tier":"x","system_fingerprint":"x","usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":0}},"error":null,"choices":[
		{"index":0,"finish_reason":"tool_calls","logprobs":{},"native_finish_reason":"x","message":{"role":"assistant","content":"b","refusal":"r","reasoning_content":"hm","audio":{"id":"a"},"annotations":[],"function_call":{"name":"","arguments":""},
			"tool_calls":[{"id":"1","index":0,"type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`,
		func(body string) string { return strings.Replace(body, `"message":`, `"delta":`, 1) },
		[]string{"$.error", "$.choices", "$.choices[]", "$.choices[].finish_reason", "$.choices[].message", "$.choices[].message.content", "$.choices[].message.tool_calls", "$.choices[].message.tool_calls[]",
			"$.choices[].message.tool_calls[].id", "$.choices[].message.tool_calls[].function", "$.choices[].message.tool_calls[].function.name"}},
	{provider.OpenAIResponses, `{"id":"r","object":"response","created_at":1700000000,"status":"completed","error":null,"incomplete_details":{"reason":"x"},"instructions":"i","model":"m","usage":{"input_tokens":1},"output":[
		{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":"e","status":"completed"},
		{"type":"message","id":"m","status":"completed","role":"assistant","phase":"x","content":[{"type":"output_text","text":"b","annotations":[],"logprobs":[]}]},
		{"type":"function_call","id":"fc","call_id":"1","name":"f","arguments":"{}","status":"completed"}]}`,
		func(body string) string { return `{"type":"response.completed","response":` + body + `}` },
		[]string{"$.error", "$.output", "$.output[]", "$.output[].type", "$.output[].role", "$.output[].content", "$.output[].content[]", "$.output[].content[].type", "$.output[].content[].text", "$.output[].call_id", "$.output[].name", "$.output[].id"}},
	{provider.Anthropic, `{"id":"r","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":"x","container":{"id":"c"},"usage":{"input_tokens":1},"context_management":{},"content":[
		{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"b","citations":[]},{"type":"tool_use","id":"1","name":"f","input":{},"caller":{"type":"direct"}}]}`,
		nil,
		[]string{"$.content", "$.content[]", "$.content[].type", "$.content[].text", "$.content[].id", "$.content[].name"}},
	{provider.Gemini, `{"responseId":"r","createTime":"2023-11-14T22:13:20Z","modelVersion":"m","usageMetadata":{"promptTokenCount":1},"promptFeedback":{"blockReason":"x","safetyRatings":[]},"candidates":[
		{"index":0,"finishReason":"STOP","finishMessage":"x","safetyRatings":[],"citationMetadata":{},"tokenCount":1,"groundingMetadata":{},"avgLogprobs":1,"content":{"role":"model","parts":[
			{"thought":true,"text":"hm"},{"text":"b","thoughtSignature":"s"},{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"s"}]}}]}`,
		func(body string) string { return body },
		[]string{"$.candidates", "$.candidates[]", "$.candidates[].finishReason", "$.candidates[].content", "$.candidates[].content.parts", "$.candidates[].content.parts[]", "$.candidates[].content.parts[].text", "$.candidates[].content.parts[].functionCall",
			"$.candidates[].content.parts[].functionCall.id", "$.candidates[].content.parts[].functionCall.name"}},
}

// A member of a response that may be missing may be null, in a response and in
// a stream.
func TestNullInResponses(t *testing.T) {
	for _, full := range fullResponses {
		paths, nulls := withEach(t, full.body, full.required, nil)
		_, without := withEach(t, full.body, full.required, drop)
		for i, path := range paths {
			t.Run(full.format.String()+path, func(t *testing.T) {
				missing, err := full.format.DecodeResponse(without[i])
				require.NoError(t, err)
				result, err := full.format.DecodeResponse(nulls[i])
				require.NoError(t, err)
				require.Equal(t, meaning(missing.Output), meaning(result.Output))
				require.Equal(t, missing.ID, result.ID)
				require.Equal(t, missing.CreatedAt, result.CreatedAt)
				if full.stream == nil {
					return
				}
				s := full.format.Stream()
				require.NoError(t, s.Event([]byte(full.stream(string(nulls[i])))))
				streamed, err := s.Result()
				require.NoError(t, err)
				require.Equal(t, meaning(result.Output), meaning(streamed.Output))
			})
		}
	}
}
