package statetest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

var streamFormats = map[string]*provider.Format{
	"chat": provider.OpenAI, "responses": provider.OpenAIResponses,
	"anthropic": provider.Anthropic, "gemini": provider.Gemini,
}

// What a provider streams is what it would have sent whole.
func TestStreamsSayWhatBodiesSay(t *testing.T) {
	for name, format := range streamFormats {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			output := outputs().Draw(t, "output")
			a := answer{from: &scripted{}, id: "resp_1", output: output}
			body, err := a.body(format)
			require.NoError(t, err)
			whole, err := format.DecodeResponse(body)
			require.NoError(t, err)
			list, err := streamOf(format, body)
			require.NoError(t, err)
			stream := format.Stream()
			if rapid.Bool().Draw(t, "events") {
				for _, e := range list {
					require.NoError(t, stream.Event(e.data))
				}
			} else {
				_, err := io.Copy(stream, strings.NewReader(string(sse(list))))
				require.NoError(t, err)
			}
			got, err := stream.Result()
			require.NoError(t, err)
			require.Len(t, got.Output, len(whole.Output))
			for i, m := range whole.Output {
				require.Equal(t, string(m.Raw()), string(got.Output[i].Raw()))
			}
			require.Equal(t, format != provider.Gemini, stream.Done()) // Gemini has no last event
		}))
	}
}

// outputs are texts and calls of a model.
func outputs() *rapid.Generator[[]state.Message] {
	return rapid.Custom(func(t *rapid.T) []state.Message {
		var output []state.Message
		if text := rapid.String().Draw(t, "text"); text != "" {
			output = append(output, state.AssistantText(text))
		}
		var calls []state.ToolCall
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			input, err := state.JSONOf(rapid.MapOf(rapid.StringMatching(`[a-z]{1,5}`), rapid.String()).Draw(t, "input"))
			require.NoError(t, err)
			calls = append(calls, state.ToolCall{
				ID: fmt.Sprintf("call_%d", i+1), Name: rapid.SampledFrom([]string{"look", "refund"}).Draw(t, "name"), Input: input,
			})
		}
		if len(calls) > 0 {
			output = append(output, state.ToolCalls(calls...))
		}
		if len(output) == 0 {
			output = append(output, state.AssistantText("nothing"))
		}
		return output
	})
}

func TestCutStreams(t *testing.T) {
	for name, format := range streamFormats {
		t.Run(name, func(t *testing.T) {
			m := NewModel(t, format, Say("Refunded at once.").Cut(1), Say("x").Cut(0))
			result, err := m.Next(t.Context(), "a", []state.Message{state.UserText("hi")})
			require.ErrorIs(t, err, provider.ErrIncomplete)
			require.Len(t, result.Output, 1)
			require.Equal(t, "Refunded", result.Output[0].(state.TextMessage).Text())
			_, err = m.Next(t.Context(), "a", []state.Message{state.UserText("hi"), state.UserText("again")})
			require.ErrorIs(t, err, provider.ErrIncomplete)
		})
	}
}

func TestStreamOverHTTP(t *testing.T) {
	for _, tt := range []struct{ name, path, body, kind, want string }{
		{"chat", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "text/event-stream", "data: [DONE]\n\n"},
		{"responses", "/v1/responses", `{"model":"m","stream":true,"input":"hi"}`, "text/event-stream", "event: response.completed\n"},
		{"anthropic", "/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, "text/event-stream", "event: message_stop\n"},
		{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, "text/event-stream", `"finishReason":"STOP"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewModel(t, provider.OpenAI, Say("Good morning to all."), Say("Good morning to all.").Cut(1))
			post := func() (*http.Response, string, error) {
				r, err := m.Client().Post("https://model.test"+tt.path, "application/json", strings.NewReader(tt.body))
				require.NoError(t, err)
				defer r.Body.Close()
				data, err := io.ReadAll(r.Body)
				return r, string(data), err
			}
			r, data, err := post()
			require.NoError(t, err)
			require.Equal(t, tt.kind, r.Header.Get("Content-Type"))
			require.Contains(t, data, tt.want)
			require.Contains(t, data, `"Good mor`) // it comes in pieces
			_, _, err = post()
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
	}
}
