package provider_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

func FuzzDecodeOpenAI(f *testing.F) {
	fuzz(f, provider.OpenAI,
		string(chatRequest(`{"role":"system","content":"a"}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}`)),
		string(chatRequest(`{"role":"assistant","content":"a","refusal":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}}]}`, `{"role":"tool","tool_call_id":"1","name":"f","content":""}`)),
		string(chatRequest(`{"role":"assistant","content":"","tool_calls":[],"function_call":{"name":"f","arguments":""}}`, `{"role":"function","name":"f","content":null}`)),
		string(chatRequest(`{"role":"assistant"}`, `{"role":"assistant","tool_calls":[{"id":null,"type":"custom","custom":{"input":{}}},{"function":{"arguments":null}}]}`)),
		`{"id":"x","created":1e9,"choices":[{"message":{"role":"assistant","content":[{"type":"thinking"}]},"finish_reason":7}]}`,
		`{"error":{"type":7,"message":null},"choices":null}`,
		"data: "+delta(`{"role":"assistant","content":"a","tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{"}},{"function":{"arguments":"}"}}]},"finish_reason":"stop"`)+"\n\ndata: [DONE]\r\r",
		"data: "+delta(`{"content":[{}],"audio":{"data":"a"},"function_call":{"name":""}}`)+"\n\n")
}

func FuzzDecodeOpenAIResponses(f *testing.F) {
	seeds := []string{
		`{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`,
		"data: " + created + "\n\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\n" +
			"data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":1,\"delta\":\"a\"}\n\n",
	}
	for _, c := range responsesRequests {
		seeds = append(seeds, c.body)
	}
	fuzz(f, provider.OpenAIResponses, seeds...)
}

func FuzzDecodeAnthropic(f *testing.F) {
	fuzz(f, provider.Anthropic,
		`{"system":[{"type":"text","text":"a"}],"messages":[{"role":"user","content":"a","x":1},{"role":"system","content":""}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{"k":1.0},"caller":null}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":null,"is_error":true},{"type":"image","source":{}}]},{"role":"user","content":[{}]}]}`,
		`{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":1,"name":"f","input":"{"}],"stop_reason":"tool_use"}`,
		"event: message_start\ndata: "+anthropicStart+"\n\ndata: "+begins("0", `{"type":"tool_use","id":"a","name":"f","input":{}}`)+
			"\n\ndata: "+goesOn("0", `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`)+"\n\ndata: "+anthropicEnd+"\n\ndata: "+anthropicStop+"\n\n")
}

func FuzzDecodeGemini(f *testing.F) {
	fuzz(f, provider.Gemini,
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":""},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"cw=="},{"text":"b","thought":true}]},{"role":"function","parts":[{"function_response":{"id":"1","response":{}}},{"text":"c"}]}],"systemInstruction":"s","tools":[]}`,
		`{"contents":{"parts":[{"type":"a"}]},"system_instruction":{"role":null,"parts":[{"functionCall":{}}]},"systemInstruction":null}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionResponse":{}}]},{"role":"model","parts":[{"functionCall":{}}]},{"role":"system","parts":[]}]}`,
		`[`+geminiChunk(`{"functionCall":{"name":"f","willContinue":true}}`)+`,`+geminiChunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0]['b']","stringValue":"c"}]}},{"text":"t"}`, geminiStops)+`]`,
		"data: "+geminiChunk(`{"text":"t"}`, geminiStops)+"\n\n")
}

func FuzzDecodeTables(f *testing.F) {
	fuzz(f, bedrockFormat,
		`{"system":[{"text":"a"},{"cachePoint":{}}],"messages":[{"role":"user","content":[{"text":"a"},{"image":{"format":"png","source":{"bytes":"aGk="}},"x":1}]},{"role":"x"}],"toolConfig":{"tools":[{}]}}`,
		`{"messages":[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"a","signature":"b"}}},{"toolUse":{"toolUseId":"a","name":"f","input":[1]}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":{"a":1}},{"text":""}],"status":"error"}}]}]}`,
		`{"output":{"message":{"role":"assistant","content":[{"text":"a"}]}},"stopReason":"end_turn"}`)
}

func FuzzDecodeTableWithCallsAside(f *testing.F) {
	fuzz(f, provider.New("chatty", transcript.Profile{}, chatty),
		`{"turns":[{"role":"system","says":"a"},{"role":"bot","says":null,"uses":[{"key":"a","tool":"f","with":"{}"}]},{"role":"tool","key":"a","says":{"b":1},"bad":false},{"role":"user","says":[{"type":"text","text":"a","x":1}]}]}`,
		`{"id":"r","turn":{"says":"a","uses":[]}}`)
}

// eventComment is the begin of a comment of server-sent events, which is not part
// of Raw. A byte of the mark of order may stand alone before it.
var eventComment = regexp.MustCompile(`(^[ \t\r\n\x{feff}\x{fffd}]*|[\r\n]):`)

// fuzz reads any data as a request, as a response and as a stream. What is
// decoded is encoded the same, and errors are those of the package.
func fuzz(f *testing.F, format *provider.Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := format.DecodeRequest(data); err == nil {
			roundTrip(t, format, data)
		} else {
			typed(t, err)
		}
		result, err := format.DecodeResponse(data)
		typed(t, err)
		requireDecodable(t, result.Output)
		require.Equal(t, string(data), result.Raw)
		_, omitted, err := format.EncodeRequest(provider.Request{Messages: result.Output})
		require.NoError(t, err)
		require.Empty(t, omitted)

		s := format.Stream()
		n, err := s.Write(data)
		require.NoError(t, err)
		require.Equal(t, len(data), n)
		result, err = s.Result()
		typed(t, err)
		if !eventComment.Match(data) {
			require.Equal(t, string(data), result.Raw)
		}
		one := format.Stream()
		_ = one.Event(data) // Result reports the error
		_, _ = one.Result()
	})
}

// typed requires that an error is of a type of the package.
func typed(t *testing.T, err error) {
	t.Helper()
	var bad *provider.Error
	var failed *provider.ResponseError
	require.True(t, err == nil || errors.As(err, &bad) || errors.As(err, &failed) || errors.Is(err, provider.ErrIncomplete), "%v", err)
}
