package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// written returns what a stream makes of a body that comes in one piece.
func written(t *testing.T, f *provider.Format, body string) (state.InferenceResult, error) {
	t.Helper()
	s := f.Stream()
	n, err := io.WriteString(s, body)
	require.NoError(t, err)
	require.Equal(t, len(body), n)
	return s.Result()
}

// outcome describes a result and its error for a comparison.
func outcome(result state.InferenceResult, err error) string {
	return fmt.Sprintf("%q %q %q %v", result.Raw, result.ID, rawMessages(result.Output), err)
}

// Each body has the two deltas "é " and "b" and the end.
func TestStreamOfEvents(t *testing.T) {
	first, second, end := delta(`{"content":"é "}`), delta(`{"content":"b"}`), delta(`{},"finish_reason":"stop"`)
	lines := func(newline string, lines ...string) string { return strings.Join(lines, newline) + newline }
	for _, test := range []struct{ name, body string }{
		{"LF", lines("\n", "data: "+first, "", "data: "+second, "", "data: "+end, "", "data: [DONE]", "")},
		{"CRLF", lines("\r\n", "data: "+first, "", "data: "+second, "", "data: "+end, "", "data: [DONE]", "")},
		{"CR", lines("\r", "data: "+first, "", "data: "+second, "", "data: "+end, "", "data: [DONE]", "")},
		{"all of them", "data: " + first + "\r\n\ndata: " + second + "\n\r\ndata: " + end + "\r\r"},
		{"no space, two spaces", lines("\n", "data:"+first, "", "data:  "+second, "", "data:"+end, "")},
		{"a byte order mark", "\ufeff" + lines("\n", "data: "+first, "", "data: "+second, "", "data: "+end, "")},
		{"empty lines first", "\r\n\n" + lines("\n", "data: "+first, "", "data: "+second, "", "data: "+end, "")},
		{"comments and other fields", lines("\n", ": hello", "", ":", "event: chunk", "id: 7", "data: "+first, "retry: 10", ": ping", "data", "", "datax: 7", "unknown", "", "event: empty", "", "data: "+second, "", "data:", "", "data: "+end, "")},
		{"data on several lines", lines("\n", "data: "+strings.Replace(first, ":[{", ":\ndata: [\ndata: {", 1), "", "data: "+second, "", "data: {", "data:"+end[1:], "")},
		{"something without its end", lines("\n", "data: "+first, "", "data: "+second, "", "data: "+end, "", "data: "+second[:len(second)-1])},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := written(t, provider.OpenAI, test.body)
			require.NoError(t, err)
			require.Equal(t, comments.ReplaceAllString(test.body, ""), result.Raw)
			require.Equal(t, "x", result.ID)
			require.Equal(t, []string{`{"type":"text","role":"assistant","content":"é b","stop_reason":"stop"}`}, rawMessages(result.Output))

			want := outcome(result, err)
			for i := range test.body {
				s := provider.OpenAI.Stream()
				_, _ = io.WriteString(s, test.body[:i])
				_, _ = s.Result() // changes nothing
				_, _ = io.WriteString(s, test.body[i:])
				require.Equal(t, want, outcome(s.Result()), "split at %d", i)
			}
			s := provider.OpenAI.Stream()
			for i := range len(test.body) {
				_, _ = io.WriteString(s, test.body[i:i+1])
			}
			require.Equal(t, want, outcome(s.Result()), "byte by byte")
		})
	}
}

// The last event counts without the empty line after it, which recorders and
// some proxies strip, if it is whole. What comes later does not repeat it.
func TestStreamWithoutLastLine(t *testing.T) {
	for _, test := range []struct {
		format *provider.Format
		begin  string
		last   string
	}{
		{provider.OpenAI, "data: " + delta(`{"content":"a"}`) + "\n\n", delta(`{"content":"b"},"finish_reason":"stop"`)},
		{provider.Anthropic, `data: {"type":"message_start","message":{"role":"assistant","content":[{"type":"text","text":"ab"}]}}` + "\n\n", `{"type":"message_stop"}`},
		{provider.OpenAIResponses, "", `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":"ab"}]}}`},
		{provider.Gemini, `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}` + "\n\n", `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`},
	} {
		for _, line := range []string{"data: ", "data:", "event: x\ndata: "} {
			for _, end := range []string{"", "\n", "\r", "\r\n", " \n", "\nid: 7", "\n: ping\n"} {
				s := test.format.Stream()
				_, _ = io.WriteString(s, test.begin+line+test.last+end)
				result, err := s.Result()
				require.NoError(t, err, "%q", line+test.last+end)
				require.Equal(t, "ab", result.Output[0].(state.TextMessage).Text())
				require.Equal(t, outcome(result, err), outcome(s.Result()), "again")
				for _, more := range []string{"\n", "\r\n", "\n\n", "\n\n: ping\n\n"} {
					_, _ = io.WriteString(s, more)
					result, err = s.Result()
					require.NoError(t, err, "%q, then %q", line+test.last+end, more)
					require.Equal(t, "ab", result.Output[0].(state.TextMessage).Text(), "%q, then %q", line+test.last+end, more)
				}
			}
		}
	}
}

// What goes on after Result is not an event yet.
func TestStreamGoesOnAfterResult(t *testing.T) {
	end := delta(`{"content":"a"},"finish_reason":"stop"`)
	s := provider.OpenAI.Stream()
	_, _ = io.WriteString(s, "data: "+end[:len(end)-1])
	_, err := s.Result()
	require.ErrorIs(t, err, provider.ErrIncomplete)
	_, _ = io.WriteString(s, end[len(end)-1:])
	_, err = s.Result()
	require.NoError(t, err)
	_, _ = io.WriteString(s, "\ndata: x\n\n")
	result, err := s.Result()
	require.Equal(t, "a", result.Output[0].(state.TextMessage).Text())
	require.ErrorContains(t, err, "event 1", "the event has another line")
}

// A stream that broke off returns ErrIncomplete, and what came before.
func TestStreamBrokenOffAnywhere(t *testing.T) {
	body := "data: " + delta(`{"content":"a"}`) + "\n\ndata: " + delta(`{"content":"b"}`) + "\n\ndata: " + delta(`{"content":"c"},"finish_reason":"stop"`) + "\n\n"
	texts := map[string]bool{}
	for i := range len(body) - len("}\n\n") { // up to the end of the last event
		result, err := written(t, provider.OpenAI, body[:i])
		require.Equal(t, provider.ErrIncomplete.Error(), err.Error(), "broken off at %d", i)
		require.ErrorIs(t, err, provider.ErrIncomplete)
		text := ""
		if len(result.Output) > 0 {
			text = result.Output[0].(state.TextMessage).Text()
		}
		texts[text] = true
	}
	require.Equal(t, map[string]bool{"": true, "a": true, "ab": true}, texts)
}

// A body that is not a stream is read as a whole, however it is split.
func TestStreamOfWholeBodies(t *testing.T) {
	const whole = `{"id":"x","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
	const said = `{"type":"text","role":"assistant","content":"a","stop_reason":"stop"}`
	for _, test := range []struct {
		name, body string
		out        []string
		err        string
	}{
		{"an object", whole, []string{said}, ""},
		{"an object with space", "\r\n\t " + strings.ReplaceAll(whole, ",", ",\n\n") + "\n", []string{said}, ""},
		{"a byte order mark", "\ufeff" + whole, []string{said}, ""},
		{"an array of chunks", "[" + delta(`{"content":"a"}`) + "\n,\r\n" + delta(`{},"finish_reason":"stop"`) + "]", []string{said}, ""},
		{"an array that was broken off between chunks", "[" + delta(`{"content":"a"}`) + "]", []string{`{"type":"text","role":"assistant","content":"a"}`}, "provider: incomplete stream"},
		{"an array that was broken off in a chunk", "[" + delta(`{"content":"a"}`) + ",\n{\"id", []string{`{"type":"text","role":"assistant","content":"a"}`}, "provider: OpenAI: $[1]: want the end of the string, got the end of the text\nprovider: incomplete stream"},
		{"an array that was broken off at its end", "[" + delta(`{"content":"a"},"finish_reason":"stop"`), []string{said}, "provider: OpenAI: $[0]: want ',' or ']' after it, got the end of the text\nprovider: incomplete stream"},
		{"an empty array", "[]", []string{}, "provider: incomplete stream"},
		{"an array of something else", "[1," + delta(`{"content":"a"},"finish_reason":"stop"`) + "]", []string{said}, "event 0: provider: OpenAI: $: want object, got number"},
		{"an object that was broken off", whole[:40], []string{}, "provider: OpenAI: $.choices[0].message.role: want a value, got the end of the text\nprovider: incomplete stream"},
		{"an error", `{"error":{"type":"invalid_request_error","message":"m"}}`, []string{}, `provider: OpenAI: the response is an error of type "invalid_request_error"`},
		{"something else", `{"choices":7}`, []string{}, "provider: OpenAI: $.choices: want array or null, got number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := written(t, provider.OpenAI, test.body)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
			require.Equal(t, test.body, result.Raw)
			require.Equal(t, test.out, rawMessages(result.Output))
			for i := range test.body {
				s := provider.OpenAI.Stream()
				_, _ = io.WriteString(s, test.body[:i])
				_, _ = io.WriteString(s, test.body[i:])
				require.Equal(t, outcome(result, err), outcome(s.Result()), "split at %d", i)
			}
		})
	}
}

// Bodies that are neither events nor JSON have no events, and Raw shows them.
func TestStreamOfOtherBodies(t *testing.T) {
	for _, body := range []string{"", "\n", "<html>\n\n</html>\n\n", "upstream connect error", "Data: {}\n\n", "\xff\xfe\n\n"} {
		result, err := written(t, provider.OpenAI, body)
		require.EqualError(t, err, "provider: incomplete stream")
		require.ErrorIs(t, err, provider.ErrIncomplete)
		require.Equal(t, body, result.Raw)
		require.Empty(t, result.Output)
	}
}

// An event that cannot be used is an error, and the others count.
func TestStreamGoesOnAfterABadEvent(t *testing.T) {
	body := "data: " + delta(`{"content":"a"}`) + "\n\ndata: secret\n\ndata: \"secret\"\n\ndata: {\"a\":1,\"a\":2}\n\ndata: " + delta(`{"content":"b"},"finish_reason":"stop"`) + "\n\n"
	result, err := written(t, provider.OpenAI, body)
	require.Equal(t, []string{`{"type":"text","role":"assistant","content":"ab","stop_reason":"stop"}`}, rawMessages(result.Output))
	require.NotErrorIs(t, err, provider.ErrIncomplete)
	require.ErrorIs(t, err, state.ErrWrongType)
	require.NotContains(t, err.Error(), "secret")
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3)
	for i, want := range []string{"event 1: provider: OpenAI: $: ", "event 2: provider: OpenAI: $: want object, got string", "event 3: provider: OpenAI: $[…]: "} {
		require.Contains(t, lines[i], want)
	}
}

// A failure that the provider reports within a stream is not ErrIncomplete.
func TestStreamWithAnError(t *testing.T) {
	for _, end := range []string{"", "data: [DONE]\n\n"} {
		_, err := written(t, provider.OpenAI, "data: "+delta(`{"content":"a"}`)+"\n\nevent: error\ndata: {\"error\":{\"type\":\"overloaded\",\"message\":\"m\"}}\n\n"+end)
		var failed *provider.ResponseError
		require.True(t, errors.As(err, &failed))
		require.Equal(t, provider.ResponseError{Format: "OpenAI", Code: "overloaded", Message: "m"}, *failed)
		require.NotErrorIs(t, err, provider.ErrIncomplete)
	}
}

// Event returns what is wrong with an event, and otherwise does what Write does.
func TestStreamEvents(t *testing.T) {
	s := provider.OpenAI.Stream()
	require.NoError(t, s.Event([]byte(" "+delta(`{"content":"a"}`)+"\n")))
	require.NoError(t, s.Event(nil))
	var bad *provider.Error
	require.ErrorAs(t, s.Event([]byte("oops")), &bad)
	require.NoError(t, s.Event([]byte("[DONE]")))
	result, err := s.Result()
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []string{`{"type":"text","role":"assistant","content":"a"}`}, rawMessages(result.Output))
	require.Equal(t, " "+delta(`{"content":"a"}`)+"\n\n\noops\n[DONE]\n", result.Raw)
}

// A caller may reuse its buffer.
func TestStreamDoesNotRetainWhatItIsGiven(t *testing.T) {
	event := []byte(delta(`{"role":"assistant","refusal":"r"},"finish_reason":"stop"`))
	s := provider.OpenAI.Stream()
	require.NoError(t, s.Event(event))
	clear(event)
	result, err := s.Result()
	require.NoError(t, err)
	require.Equal(t, []string{`{"type":"text","role":"assistant","content":null,"openai":{"more":{"refusal":"r"}},"stop_reason":"stop"}`}, rawMessages(result.Output))
}

var comments = regexp.MustCompile(`(?m)^:.*\n`)

// A stream takes nothing more than MaxBytes, however it comes.
func TestStreamsAreLimited(t *testing.T) {
	body := strings.Repeat("data: {}\n", 100)
	for n := range 40 {
		s := provider.OpenAI.Stream()
		s.MaxBytes = 300 + n
		_, err := s.Write([]byte(body[:300]))
		require.NoError(t, err)
		_, err = s.Write([]byte(body[300:]))
		require.ErrorIs(t, err, state.ErrLimitExceeded)
		_, err = s.Write([]byte("\n"))
		require.ErrorIs(t, err, state.ErrLimitExceeded)
		result, err := s.Result()
		require.ErrorIs(t, err, state.ErrLimitExceeded)
		require.LessOrEqual(t, len(result.Raw), s.MaxBytes)
	}
	s := provider.OpenAI.Stream()
	s.MaxBytes = 10
	require.ErrorIs(t, s.Event([]byte(`{"choices":[]}`)), state.ErrLimitExceeded)
}

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
