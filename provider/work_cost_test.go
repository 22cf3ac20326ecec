package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// responsesWithMany are responses with many unknown members at a place.
var responsesWithMany = map[*provider.Format]map[string]string{
	provider.OpenAI: {
		"message":           `{"choices":[{"message":{"role":"assistant","content":"a",MEMBERS},"finish_reason":"stop"}]}`,
		"message and calls": `{"choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}],MEMBERS},"finish_reason":"stop"}]}`,
		"call":              `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"1","type":"function",MEMBERS,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		"function":          `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}",MEMBERS}}]},"finish_reason":"tool_calls"}]}`,
		"choice":            `{MEMBERS,"choices":[{MEMBERS,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`,
	},
	provider.OpenAIResponses: {
		"message":   `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}],MEMBERS}]}`,
		"part":      `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a",MEMBERS}]}]}`,
		"call":      `{"status":"completed","output":[{"type":"function_call","call_id":"1","name":"f","arguments":"{}",MEMBERS}]}`,
		"reasoning": `{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[],MEMBERS},{"type":"message","role":"assistant","content":"a"}]}`,
	},
	provider.Anthropic: {
		"message":  `{MEMBERS,"role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`,
		"text":     `{"role":"assistant","content":[{"type":"text","text":"a",MEMBERS}],"stop_reason":"end_turn"}`,
		"thinking": `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s",MEMBERS},{"type":"text","text":"a"}],"stop_reason":"end_turn"}`,
		"call":     `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{},MEMBERS}],"stop_reason":"tool_use"}`,
	},
	provider.Gemini: {
		"content":  `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}],MEMBERS},"finishReason":"STOP"}]}`,
		"part":     `{"candidates":[{"content":{"role":"model","parts":[{"text":"a",MEMBERS}]},"finishReason":"STOP"}]}`,
		"call":     `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{},MEMBERS}}]},"finishReason":"STOP"}]}`,
		"args":     `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{MEMBERS}}}]},"finishReason":"STOP"}]}`,
		"callPart": `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},MEMBERS}]},"finishReason":"STOP"}]}`,
	},
}

// requestsWithMany are requests with many unknown members at a place that no
// response has.
var requestsWithMany = map[*provider.Format]map[string]string{
	provider.OpenAI: {
		"result":   `{"messages":[{"role":"tool","tool_call_id":"1","content":"a",MEMBERS}]}`,
		"part":     `{"messages":[{"role":"user","content":[{"type":"text","text":"a",MEMBERS},{"type":"image_url","image_url":{"url":"https://a.example",MEMBERS}}]}]}`,
		"tool":     `{"messages":[],"tools":[{"type":"function",MEMBERS,"function":{"name":"f",MEMBERS,"parameters":{MEMBERS}}}]}`,
		"settings": `{"messages":[],MEMBERS}`,
	},
	provider.OpenAIResponses: {
		"result": `{"input":[{"type":"function_call_output","call_id":"1","output":"a",MEMBERS}]}`,
		"tool":   `{"input":[],"tools":[{"type":"function","name":"f",MEMBERS}]}`,
	},
	provider.Anthropic: {
		"result": `{"messages":[{"role":"user",MEMBERS,"content":[{"type":"tool_result","tool_use_id":"1","content":"a",MEMBERS}]}]}`,
		"image":  `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.example",MEMBERS},MEMBERS}]}]}`,
		"tool":   `{"messages":[],"tools":[{"name":"f","input_schema":{},MEMBERS}]}`,
	},
	provider.Gemini: {
		"response": `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{},MEMBERS},MEMBERS}]}]}`,
		"blob":     `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA",MEMBERS}}]}]}`,
		"tool":     `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f",MEMBERS}],MEMBERS}]}`,
	},
	bedrockFormat: {
		"message":  `{"messages":[{"role":"assistant","content":[{"text":"a"}],MEMBERS}]}`,
		"block":    `{"messages":[{"role":"user","content":[{"text":"a",MEMBERS},{"image":{"format":"png","source":{"bytes":"aGk=",MEMBERS},MEMBERS},MEMBERS},{MEMBERS}]}]}`,
		"use":      `{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"u1","name":"add","input":{},MEMBERS},MEMBERS}]}]}`,
		"result":   `{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"u1","content":[{"text":"a",MEMBERS}],MEMBERS},MEMBERS}]}]}`,
		"settings": `{"messages":[],MEMBERS}`,
	},
}

var bedrockFormat = provider.New("bedrock", transcript.Profile{}, bedrock)

// manyMembers returns a body with n members in place of MEMBERS.
func manyMembers(body string, n int) []byte {
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, `,"m%d":%d`, i, i)
	}
	return []byte(strings.ReplaceAll(body, "MEMBERS", members.String()[1:]))
}

// encodeForAll encodes a conversation for each format, twice as it would be
// after a request and an answer.
func encodeForAll(t *testing.T, r provider.Request) {
	for _, to := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini, bedrockFormat} {
		r.Settings = ""
		_, _, err := to.EncodeRequest(r)
		require.NoError(t, err)
	}
	turns := provider.NewMessageFormat("turns", turnCodec)
	_, _, err := turns.Encode(r.Messages...)
	require.NoError(t, err)
}

// What a message keeps of its format costs in proportion to its size: whoever
// can put a message into a conversation cannot make each later request of it
// quadratic.
func TestWorkIsLinear(t *testing.T) {
	effort.Cost(t)
	work := testkit.Work{
		Packages: "deps,slices,strings,bytes",
		Size:     625, More: 16, // 10 000 members
		Cases: map[string]func(*testing.T, int){},
	}
	for format, bodies := range responsesWithMany {
		for place, body := range bodies {
			work.Cases[format.String()+" response "+place] = func(t *testing.T, n int) {
				body := manyMembers(body, n)
				result, err := format.DecodeResponse(body)
				require.NoError(t, err)
				require.NotEmpty(t, result.Output)
				encodeForAll(t, provider.Request{Messages: result.Output})
				provider.Summarize(result.Raw)
			}
			work.Cases[format.String()+" stream "+place] = func(t *testing.T, n int) {
				stream := format.Stream()
				event := manyMembers(body, n)
				require.NoError(t, stream.Event(event))
				_, _ = stream.Result()
			}
		}
	}
	for format, bodies := range requestsWithMany {
		for place, body := range bodies {
			work.Cases[format.String()+" request "+place] = func(t *testing.T, n int) {
				request, err := format.DecodeRequest(manyMembers(body, n))
				require.NoError(t, err)
				_, _, err = format.EncodeRequest(request)
				require.NoError(t, err)
				encodeForAll(t, request)
				request.RenameTools(transcript.OpenAI)
			}
		}
	}
	work.Cases["members of no format"] = func(t *testing.T, n int) {
		m, err := state.DecodeMessage(manyMembers(`{"type":"text","role":"user","content":"a",MEMBERS}`, n))
		require.NoError(t, err)
		encodeForAll(t, provider.Request{Messages: []state.Message{m}})
	}
	work.Cases["members of no format of a call"] = func(t *testing.T, n int) {
		m, err := state.DecodeMessage(manyMembers(`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{},MEMBERS}]}`, n))
		require.NoError(t, err)
		encodeForAll(t, provider.Request{Messages: []state.Message{m}})
	}
	work.Cases["one message of many formats"] = func(t *testing.T, n int) {
		var marks []string
		for i := range n {
			marks = append(marks, fmt.Sprintf(`"format:%d":{"joined":true}`, i))
		}
		body := fmt.Sprintf(`{"type":"tool_result","role":"tool_result","content":[{"type":"text","text":"a"}],"tool":{"id":"1","name":"f"},%s}`, strings.Join(marks, ","))
		m, err := state.DecodeMessage([]byte(body))
		require.NoError(t, err)
		conversation := []state.Message{state.UserText("u"), m, m}
		encodeForAll(t, provider.Request{Messages: conversation})
		for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic, transcript.Gemini} {
			transcript.Repair(conversation, profile, transcript.Policy{KeepResults: true})
		}
	}
	work.Cases["one entry of many messages"] = func(t *testing.T, n int) {
		var msgs []state.Message
		for i := range n {
			m, err := state.DecodeMessage(fmt.Appendf(nil, `{"type":"tool_call","role":"assistant","name":"n%[1]d","tools":[{"type":"tool","id":"%[1]d","name":"f","input":{}}],
				"openai":{"joined":true,"more":{"m%[1]d":1}},"anthropic":{"joined":true,"more":{"m%[1]d":1}},"gemini":{"joined":true,"more":{"m%[1]d":1}}}`, i))
			require.NoError(t, err)
			msgs = append(msgs, m)
		}
		encodeForAll(t, provider.Request{Messages: msgs})
	}
	work.Cases["one turn of calls and results"] = func(t *testing.T, n int) {
		var e provider.Entry
		for i := range n {
			if i%250 == 0 { // the calls in between become one message
				e.Parts = append(e.Parts, provider.Part{Kind: provider.PartText, Text: "t"})
			}
			e.Parts = append(e.Parts, provider.Part{Kind: provider.PartCall, ID: fmt.Sprint(i), Name: "f"})
		}
		for i := range n {
			e.Parts = append(e.Parts, provider.Part{Kind: provider.PartResult, ID: fmt.Sprint(i), Content: "1"})
		}
		msgs, err := provider.NewMessageFormat("whole", provider.MessageCodec[provider.Entry]{
			Decode: func(e provider.Entry) (provider.Entry, error) { return e, nil },
			Encode: func(e provider.Entry) ([]provider.Entry, error) { return []provider.Entry{e}, nil },
		}).Decode(e)
		require.NoError(t, err)
		encodeForAll(t, provider.Request{Messages: msgs})
	}
	work.Linear(t)
}
