package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// said is what a response says, by the kinds of deltas.
type said struct {
	Text, Thinking string
	Inputs         []state.ToolCall // the Input of each is JSON
}

// add adds a delta.
func (s *said) add(t *testing.T, d provider.Delta) {
	t.Helper()
	switch d.Kind {
	case provider.DeltaText:
		s.Text += d.Text
	case provider.DeltaThinking:
		s.Thinking += d.Text
	case provider.DeltaInput:
		if d.Call == len(s.Inputs) {
			s.Inputs = append(s.Inputs, state.ToolCall{ID: d.CallID, Name: d.Name})
		}
		require.Less(t, d.Call, len(s.Inputs))
		call := &s.Inputs[d.Call]
		call.Name = d.Name
		call.Input += state.JSON(d.Text)
	default:
		t.Errorf("a delta of kind %s", d.Kind)
	}
}

// saidBy returns what the messages of a response say.
func saidBy(output []state.Message) said {
	var all said
	for _, m := range output {
		if m, ok := m.(state.ToolCallMessage); ok {
			for _, call := range m.Calls() {
				all.Inputs = append(all.Inputs, state.ToolCall{ID: call.ID, Name: call.Name, Input: call.Input})
			}
		}
		var message map[string]any
		_ = json.Unmarshal([]byte(m.Raw()), &message)
		if item, ok := message["item"].(map[string]any); ok { // one that only its format has
			message = item
		}
		kept, _ := message["openai"].(map[string]any)
		more, _ := kept["more"].(map[string]any)
		refusal, _ := more["refusal"].(string)
		all.Text += refusal
		for _, name := range []string{"reasoning", "reasoning_content", "reasoning_text"} {
			if text, _ := more[name].(string); text != "" {
				all.Thinking += text
				break
			}
		}
		if text, ok := message["content"].(string); ok {
			all.Text += text
			continue
		}
		for _, list := range []string{"content", "summary"} {
			parts, _ := message[list].([]any)
			for _, part := range parts {
				part, _ := part.(map[string]any)
				text, _ := part["text"].(string)
				thinking, _ := part["thinking"].(string)
				refusal, _ := part["refusal"].(string)
				switch typ, _ := part["type"].(string); {
				case typ == "reasoning_text" || typ == "summary_text" || part["thought"] == true:
					all.Thinking += text
				default:
					all.Text += text + refusal
					all.Thinking += thinking
				}
			}
		}
	}
	return all
}

// The pieces of a stream make what the whole response says.
func TestDeltasMakeTheResponse(t *testing.T) {
	for _, target := range targets {
		t.Run(target.api, func(t *testing.T) {
			streams := 0
			for _, e := range exchanges(t, target.api) {
				if e.stream == nil {
					continue
				}
				var got said
				s := target.format.Stream()
				s.OnDelta = func(d provider.Delta) { got.add(t, d) }
				for _, event := range e.stream {
					require.False(t, s.Done() && target.format == provider.OpenAI, "%s: done too early", e.name)
					_ = s.Event(event)
				}
				result, err := s.Result()
				if err != nil { // an error of the provider, after a piece
					continue
				}
				streams++
				want := saidBy(result.Output)
				require.Equal(t, want.Text, got.Text, "%s %s %d", e.file, e.name, e.index)
				require.Equal(t, want.Thinking, got.Thinking, "%s %s %d", e.file, e.name, e.index)
				require.Len(t, got.Inputs, len(want.Inputs), "%s %s", e.file, e.name)
				for i, call := range want.Inputs {
					require.Equal(t, call.ID, got.Inputs[i].ID, "%s %s", e.file, e.name)
					require.Equal(t, call.Name, got.Inputs[i].Name, "%s %s", e.file, e.name)
					requireInput(t, call.Input, got.Inputs[i].Input, fmt.Sprint(e.file, " ", e.name, " ", e.index))
				}
			}
			require.NotZero(t, streams)
		})
	}
}

// requireInput requires that the pieces of an input make it. An input that is no
// JSON is a text in the call.
func requireInput(t *testing.T, want, got state.JSON, at string) {
	t.Helper()
	if text := strings.TrimSpace(string(got)); text == "" || text == "{}" {
		require.Contains(t, []string{"", "{}", `""`, "null"}, string(want), at)
	} else if !want.Equal(got) {
		require.Equal(t, want.Text(), string(got), at)
	}
}

// Each format's last event is known.
func TestDone(t *testing.T) {
	for _, test := range []struct {
		format *provider.Format
		before []string
		last   string
	}{
		{provider.OpenAI, []string{
			`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":1}}`,
		}, `[DONE]`},
		{provider.OpenAIResponses, []string{`{"type":"response.created","response":{"id":"r"}}`}, `{"type":"response.completed","response":{"id":"r","output":[]}}`},
		{provider.Anthropic, []string{`{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`}, `{"type":"message_stop"}`},
		{provider.Gemini, []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`}, `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`},
	} {
		t.Run(test.format.String(), func(t *testing.T) {
			s := test.format.Stream()
			require.False(t, s.Done())
			for _, event := range test.before {
				_, _ = io.WriteString(s, "data: "+event+"\n\n")
				require.False(t, s.Done(), event)
			}
			_, _ = io.WriteString(s, "data: "+test.last+"\n\n")
			require.Equal(t, test.format != provider.Gemini, s.Done())

			failed := test.format.Stream()
			_, _ = io.WriteString(failed, `data: {"type":"error","error":{"type":"overloaded_error","message":"m"},"code":"c","message":"m"}`+"\n\n")
			require.False(t, failed.Done())
			whole := test.format.Stream()
			_, _ = io.WriteString(whole, `[{"a":1}]`)
			require.False(t, whole.Done())
		})
	}
}
