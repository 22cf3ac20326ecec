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
