package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// geminiStreamed reads events one by one, as server-sent events in one piece and in
// bytes, and as an array, requires the same result, and returns it.
func geminiStreamed(t *testing.T, events [][]byte) state.InferenceResult {
	t.Helper()
	stream, array := provider.Gemini.Stream(), []string{}
	var sse strings.Builder
	for _, event := range events {
		require.NoError(t, stream.Event(event))
		array = append(array, string(event))
		sse.WriteString("data: " + string(event) + "\r\n\r\n")
	}
	result, err := stream.Result()
	require.NoError(t, err)
	whole := "[" + strings.Join(array, "\n,") + "]"
	for _, body := range []string{sse.String(), whole} {
		for _, step := range []int{1, len(body)} {
			split := provider.Gemini.Stream()
			for at := 0; at < len(body); at += step {
				_, _ = split.Write([]byte(body[at : at+step]))
			}
			got, err := split.Result()
			require.NoError(t, err)
			require.Equal(t, body, got.Raw)
			require.Equal(t, rawMessages(result.Output), rawMessages(got.Output))
			require.Equal(t, result.ID, got.ID)
			require.Equal(t, result.CreatedAt, got.CreatedAt)
		}
	}
	return result
}

func TestGeminiResponse(t *testing.T) {
	result, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP","index":0},{"content":{"parts":[{"text":"other"}]},"index":1}],"responseId":"r","createTime":"2026-04-02T17:03:50.399550Z"}`))
	require.NoError(t, err)
	require.Equal(t, []string{`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"","name":"f","input":{}}],"gemini":{},"stop_reason":"stop"}`}, rawMessages(result.Output))
	require.Equal(t, "r", result.ID)
	require.Equal(t, time.Date(2026, 4, 2, 17, 3, 50, 0, time.UTC), result.CreatedAt)

	for content, again := range map[string]string{ // a content without a role would be the user's
		`{}`:                          `{"role":"model"}`,
		`{"role":"model"}`:            `{"role":"model"}`,
		`{"parts":[{"text":"a"}]}`:    `{"role":"model","parts":[{"text":"a"}]}`,
		`{"role":"model","parts":[]}`: `{"role":"model","parts":[]}`,
	} {
		result, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":` + content + `,"finishReason":"MAX_TOKENS"}]}`))
		require.NoError(t, err)
		require.Len(t, result.Output, 1)
		require.Equal(t, "assistant", result.Output[0].Role())
		require.Equal(t, "MAX_TOKENS", result.Output[0].(state.TextMessage).StopReason())
		requireEncoded(t, provider.Gemini, result.Output, `{"contents":[`+again+`]}`, nil)
	}
	for _, body := range []string{`{}`, `{"candidates":null}`, `{"promptFeedback":null,"responseId":"r"}`} {
		_, err := provider.Gemini.DecodeResponse([]byte(body))
		require.ErrorIs(t, err, state.ErrWrongType, body)
	}
	for _, body := range []string{`{"candidates":[]}`, `{"candidates":[{"finishReason":"SAFETY"}]}`, `{"candidates":[{"content":null}]}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`} {
		result, err := provider.Gemini.DecodeResponse([]byte(body))
		require.NoError(t, err)
		require.Empty(t, result.Output)
	}
	_, err = provider.Gemini.DecodeResponse([]byte(`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`))
	require.Equal(t, &provider.ResponseError{Format: "Gemini", Code: "RESOURCE_EXHAUSTED", Message: "slow down"}, err)
}

// geminiChunk returns an event with parts.
func geminiChunk(parts string, more ...string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + strings.Join(more, "") + `}],"responseId":"r"}`
}

const geminiStops = `,"finishReason":"STOP"`

// A stream gives the content that the whole response has.
func TestGeminiStream(t *testing.T) {
	call := func(inner string) string { return geminiChunk(`{"functionCall":` + inner + `}`) }
	tests := []struct {
		name   string
		events []string
		parts  string
	}{
		{"texts", []string{geminiChunk(`{"text":"a"}`), geminiChunk(`{"text":"b"},{"text":"c"}`), geminiChunk(`{"text":""}`, geminiStops)}, `{"text":"abc"}`},
		{"thoughts", []string{geminiChunk(`{"text":"h","thought":true}`), geminiChunk(`{"thought":true,"text":"m"}`), geminiChunk(`{"text":"a"}`, geminiStops)}, `{"text":"hm","thought":true},{"text":"a"}`},
		{"a signature ends a text", []string{geminiChunk(`{"text":"4"}`), geminiChunk(`{"text":"","thoughtSignature":"cw=="}`), geminiChunk(`{"text":"2"}`, geminiStops)}, `{"text":"4"},{"text":"","thoughtSignature":"cw=="},{"text":"2"}`},
		{"nothing", []string{geminiChunk(`{"text":""}`), geminiChunk(`{"text":""}`, geminiStops)}, `{"text":""}`},
		{"other parts", []string{geminiChunk(`{"text":"a"}`), geminiChunk(`{"inlineData":{"data":"aQ=="}}`), geminiChunk(`{"text":"b"}`, geminiStops)}, `{"text":"a"},{"inlineData":{"data":"aQ=="}},{"text":"b"}`},
		{"other candidates", []string{geminiChunk(`{"text":"a"}`), `{"candidates":[{"index":1,"content":{"parts":[{"text":"x"}]}},{"index":0,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`}, `{"text":"ab"}`},
		{"calls", []string{call(`{"name":"f","args":{"a":1.0}}`), geminiChunk(`{"functionCall":{"name":"f","id":"2"}},{"text":""}`, geminiStops)}, `{"functionCall":{"name":"f","args":{"a":1.0}}},{"functionCall":{"name":"f","id":"2"}}`},
		{"arguments", []string{
			geminiChunk(`{"functionCall":{"name":"f","id":"1","willContinue":true},"thoughtSignature":"cw=="}`),
			call(`{"partialArgs":[{"jsonPath":"$.a","stringValue":"x\"","willContinue":true}],"willContinue":true}`),
			call(`{"partialArgs":[{"jsonPath":"$.a","stringValue":"😀"},{"jsonPath":"$.b[0].c","numberValue":1.50}],"willContinue":true}`),
			call(`{"partialArgs":[{"jsonPath":"$.b[0]['it\\'s \"d\".']","boolValue":true},{"jsonPath":"$.b[1]","nullValue":"NULL_VALUE"},{"jsonPath":"$['e'][\"f\"]","stringValue":""}],"willContinue":true}`),
			call(`{"willContinue":true}`), call(`{"partialArgs":[{"jsonPath":"$.g[1]","numberValue":2}]}`), call(`{}`), geminiChunk(``, geminiStops)},
			`{"functionCall":{"name":"f","id":"1","args":{"a":"x\"😀","b":[{"c":1.50,"it's \"d\".":true},null],"e":{"f":""},"g":[null,2]}},"thoughtSignature":"cw=="}`},
		{"a call without an end", []string{call(`{"name":"f","willContinue":true}`), call(`{"name":"g","willContinue":true}`), call(`{"partialArgs":[{"jsonPath":"$.a","nullValue":null}],"willContinue":true}`), geminiChunk(`{"text":"t"}`, geminiStops)}, `{"functionCall":{"name":"f"}},{"functionCall":{"name":"g","args":{"a":null}}},{"text":"t"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			events := make([][]byte, len(test.events))
			for i, event := range test.events {
				events[i] = []byte(event)
			}
			result := geminiStreamed(t, events)
			require.Equal(t, "r", result.ID)
			content := `{"role":"model","parts":[` + test.parts + `]}`
			requireEncoded(t, provider.Gemini, result.Output, `{"contents":[`+content+`]}`, nil)
			whole, err := provider.Gemini.DecodeResponse([]byte(`{"candidates":[{"content":` + content + geminiStops + `}]}`))
			require.NoError(t, err)
			require.Equal(t, rawMessages(whole.Output), rawMessages(result.Output))
		})
	}
}

func TestGeminiStreamTroubles(t *testing.T) {
	partial := func(piece string) string {
		return geminiChunk(`{"functionCall":{"name":"f","partialArgs":[` + piece + `,{"jsonPath":"$.a","numberValue":1}]}}`)
	}
	tests := []struct {
		name   string
		events []string
		output []string // of each message, its String, or the input of a call
		errs   []string
	}{
		{"broken off", []string{geminiChunk(`{"text":"a"}`)}, []string{"a"}, []string{"provider: incomplete stream"}},
		{"no JSON", []string{geminiChunk(`{"text":"a"}`), `{"candidates":`, geminiChunk(`{"text":"b"}`, geminiStops)}, []string{"ab"}, []string{"event 1: provider: Gemini: $.candidates: "}},
		{"of another kind", []string{`{"candidates":1}`, geminiChunk(`1,{"text":"a"}`, geminiStops)}, []string{"a"}, []string{"event 0: provider: Gemini: $.candidates: want array", "event 1: provider: Gemini: $.candidates[0].content.parts[0]: want object"}},
		{"failed", []string{geminiChunk(`{"text":"a"}`), `{"error":{"code":500,"message":"m","status":"INTERNAL"}}`}, []string{"a"}, []string{`the response is an error of type "INTERNAL"`}},
		{"blocked", []string{`{"promptFeedback":{"blockReason":"SAFETY"},"responseId":"r"}`}, nil, nil},
		{"nothing", nil, nil, []string{"provider: incomplete stream"}},
		{"a path too far", []string{partial(`{"jsonPath":"$.b[99999999]","numberValue":1}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"parts[0].functionCall.partialArgs[0].jsonPath: is not a path"}},
		{"a path too deep", []string{partial(`{"jsonPath":"$` + strings.Repeat(".b", 41) + `","numberValue":1}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"partialArgs[0].jsonPath: is not a path"}},
		{"a value in two places", []string{geminiChunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a.b","numberValue":2},{"jsonPath":"$.a","stringValue":"c"},{"jsonPath":"$","stringValue":"c"}]}}`, geminiStops)}, []string{`{"a":"c"}`}, []string{"partialArgs[1].jsonPath: is not a path"}},
		{"values of other kinds", []string{partial(`{"jsonPath":"$.b","numberValue":"1"}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"partialArgs[0].numberValue: want number, got string"}},
	}
	for _, path := range []string{"", "a", "$", "$.", "$a", "$[", "$[]", "$[-1]", "$[a]", "$['a", "$['a'", "$['a']b", "$['\\x']", "$[0", "$..a"} {
		tests = append(tests, struct {
			name   string
			events []string
			output []string
			errs   []string
		}{"path " + path, []string{partial(`{"jsonPath":` + string(state.JSONText(path)) + `,"boolValue":true}`), geminiChunk(``, geminiStops)}, []string{`{"a":1}`}, []string{"jsonPath: is not a path"}})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stream := provider.Gemini.Stream()
			for _, event := range test.events {
				_ = stream.Event([]byte(event)) // Result returns it
			}
			result, err := stream.Result()
			var output []string
			for _, m := range result.Output {
				switch m := m.(type) {
				case state.TextMessage:
					output = append(output, m.Text())
				case state.ToolCallMessage:
					output = append(output, string(m.Calls()[0].Input))
				}
			}
			require.Equal(t, test.output, output)
			if test.errs == nil {
				require.NoError(t, err)
			}
			for _, want := range test.errs {
				require.ErrorContains(t, err, want)
			}
		})
	}

	failed := provider.Gemini.Stream()
	_, _ = failed.Write([]byte(`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`))
	_, err := failed.Result()
	var refused *provider.ResponseError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "INVALID_ARGUMENT", refused.Code)
}

// Google's REST clients ask for enums as numbers.
func TestGeminiEnumsAsNumbers(t *testing.T) {
	for _, test := range []struct {
		reason, stop string
		complete     bool
	}{
		{`1`, "stop", true}, {`"STOP"`, "stop", true}, {`2`, "MAX_TOKENS", true}, {`3`, "SAFETY", true}, {`4`, "RECITATION", true}, {`5`, "OTHER", true},
		{`8`, "8", true}, {`0`, "", false}, {`"FINISH_REASON_UNSPECIFIED"`, "", false}, {`null`, "", false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			body := `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":` + test.reason + `}]}`
			whole, err := provider.Gemini.DecodeResponse([]byte(body))
			require.NoError(t, err)
			require.Equal(t, test.stop, whole.Output[0].(state.TextMessage).StopReason())
			s := provider.Gemini.Stream()
			require.NoError(t, s.Event([]byte(body)))
			streamed, err := s.Result()
			if test.complete {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, provider.ErrIncomplete)
			}
			require.Equal(t, rawMessages(whole.Output), rawMessages(streamed.Output))
		})
	}
	s := provider.Gemini.Stream()
	require.NoError(t, s.Event([]byte(`{"promptFeedback":{"blockReason":1}}`)))
	_, err := s.Result()
	require.NoError(t, err, "the prompt was blocked")

	s = provider.Gemini.Stream()
	require.NoError(t, s.Event([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","nullValue":0}]}}]},"finishReason":1}]}`)))
	result, err := s.Result()
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"a":null}`), result.Output[0].(state.ToolCallMessage).Calls()[0].Input)
}
