package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// manyEvents returns a stream of n deltas, as the data of its events.
func manyEvents(n int) [][]byte {
	events := make([][]byte, 0, n+1)
	for i := range n {
		events = append(events, fmt.Appendf(nil, `{"id":"c1","object":"chat.completion.chunk","created":1750003603,"model":"m","choices":[{"index":0,"delta":{"content":"word %d "},"finish_reason":null}]}`, i))
	}
	return append(events, []byte(`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`))
}

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

func TestDecodeRequestAllocatesAsMuchAsUnmarshal(t *testing.T) {
	for _, c := range benchRequests {
		body := []byte(c.begin + strings.Repeat(c.turns, 10) + c.last)
		unmarshal := testing.AllocsPerRun(10, func() {
			var v any
			require.NoError(t, json.Unmarshal(body, &v))
		})
		decode := testing.AllocsPerRun(10, func() {
			_, err := c.format.DecodeRequest(body)
			require.NoError(t, err)
		})
		require.LessOrEqual(t, decode, 1.2*unmarshal, c.format)
	}
}

// BenchmarkGoal measures the speed goals of this package.
func BenchmarkGoal(b *testing.B) {
	b.Run("stream-deltas", func(b *testing.B) {
		events := manyEvents(10_000)
		b.Run("baseline", func(b *testing.B) { // each event decoded once
			b.ReportAllocs()
			for b.Loop() {
				for _, event := range events {
					var v any
					if err := json.Unmarshal(event, &v); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run("subject", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stream, text := provider.OpenAI.Stream(), 0
				stream.OnDelta = func(d provider.Delta) { text += len(d.Text) }
				for _, event := range events {
					_ = stream.Event(event) // Result reports the error
				}
				_, err := stream.Result()
				require.NoError(b, err)
			}
		})
	})
	for _, c := range benchRequests {
		body := []byte(c.begin + strings.Repeat(c.turns, 10) + c.last)
		b.Run("decode-"+strings.ToLower(c.format.String()), func(b *testing.B) {
			b.Run("baseline", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var v any
					if err := json.Unmarshal(body, &v); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("subject", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = c.format.DecodeRequest(body)
				}
			})
		})
	}
}
