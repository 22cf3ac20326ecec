package provider_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// benchRequests are the same conversation in each format: a system prompt and
// ten turns of a question, a call, its result and an answer.
var benchRequests = []struct {
	format             *provider.Format
	begin, turns, last string
}{
	{provider.OpenAI, `{"model":"m","messages":[{"role":"system","content":"You help."}`, `,{"role":"user","content":"What is the weather in Zürich?"},
		{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Zürich\"}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"{\"celsius\":21}"},{"role":"assistant","content":"It is 21 degrees."}`, `]}`},
	{provider.OpenAIResponses, `{"model":"m","instructions":"You help.","input":[{"role":"user","content":"hi"}`, `,{"role":"user","content":[{"type":"input_text","text":"What is the weather in Zürich?"}]},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"weather","arguments":"{\"city\": \"Zürich\"}","status":"completed"},
		{"type":"function_call_output","call_id":"call_1","output":"{\"celsius\":21}"},
		{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"It is 21 degrees.","annotations":[]}]}`, `]}`},
	{provider.Anthropic, `{"model":"m","system":"You help.","messages":[{"role":"user","content":"hi"}`, `,{"role":"user","content":"What is the weather in Zürich?"},
		{"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"call_1","name":"weather","input":{"city": "Zürich"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"{\"celsius\":21}"}]},{"role":"assistant","content":"It is 21 degrees."}`, `]}`},
	{provider.Gemini, `{"systemInstruction":{"parts":[{"text":"You help."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}`, `,{"role":"user","parts":[{"text":"What is the weather in Zürich?"}]},
		{"role":"model","parts":[{"functionCall":{"name":"weather","args":{"city": "Zürich"}},"thoughtSignature":"abc"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"celsius":21}}}]},{"role":"model","parts":[{"text":"It is 21 degrees."}]}`, `]}`},
}

// BenchmarkRequest decodes a request, encodes it for the format it came from,
// and encodes it for another.
func BenchmarkRequest(b *testing.B) {
	for i, c := range benchRequests {
		body := []byte(c.begin + strings.Repeat(c.turns, 10) + c.last)
		request, err := c.format.DecodeRequest(body)
		require.NoError(b, err)
		b.Run("Decode/"+c.format.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.format.DecodeRequest(body)
			}
		})
		other := benchRequests[(i+2)%len(benchRequests)].format
		foreign := provider.Request{Messages: request.Messages}
		for _, e := range []struct {
			name    string
			format  *provider.Format
			request provider.Request
		}{{"Encode/", c.format, request}, {"Carry/", other, foreign}} {
			b.Run(e.name+c.format.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _, _ = e.format.EncodeRequest(e.request)
				}
			})
		}
	}
}

// BenchmarkStream puts the events of a streamed answer together.
func BenchmarkStream(b *testing.B) {
	for _, c := range []struct {
		format             *provider.Format
		begin, delta, last string
	}{
		{provider.OpenAI, `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, `{"id":"c","choices":[{"index":0,"delta":{"content":"word "}}]}`,
			`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`},
		{provider.OpenAIResponses, `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"word "}`, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`},
		{provider.Anthropic, `{"type":"message_start","message":{"id":"m","role":"assistant","content":[{"type":"text","text":""}]}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}`, `{"type":"message_stop"}`},
		{provider.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"word "}]}}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"word "}]}}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"."}]},"finishReason":"STOP"}]}`},
	} {
		b.Run(c.format.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := c.format.Stream()
				_ = s.Event([]byte(c.begin))
				for range 100 {
					_ = s.Event([]byte(c.delta))
				}
				_ = s.Event([]byte(c.last))
				if _, err := s.Result(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
