package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

func TestOpenAIResponse(t *testing.T) {
	for _, test := range []struct {
		name, body, id string
		created        int64
		out            []string
	}{
		{"text", `{"id":"x","created":1700000000,"choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null,"annotations":[]},"finish_reason":"stop"}],"usage":{}}`, "x", 1700000000, []string{
			`{"type":"text","role":"assistant","content":"a","openai":{"more":{"refusal":null,"annotations":[]}},"stop_reason":"stop"}`}},
		{"calls", `{"id":null,"created":1.5e9,"choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"},{"message":7}]}`, "", 1500000000, []string{
			`{"type":"text","role":"assistant","content":"a"}`,
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{}}],"openai":{},"stop_reason":"tool"}`}},
		{"calls although it says stop", `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, "", 0, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":{}}],"openai":{},"stop_reason":"stop"}`}},
		{"a reason that is a number", `{"created":1e400,"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":154829}]}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a","stop_reason":154829}`}},
		{"an empty reason, none", `{"created":"now","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":""}]}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a","stop_reason":""}`}},
		{"no role", `{"created":-1,"choices":[{"message":{"content":"a"},"finish_reason":null}]}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a"}`}},
		{"an odd message", `{"choices":[{"message":{"role":"assistant","content":7},"finish_reason":"length"}]}`, "", 0, []string{
			`{"type":"openai.message","role":"assistant","item":{"role":"assistant","content":7},"stop_reason":"length"}`}},
		{"no choices", `{"id":"x","choices":[]}`, "x", 0, []string{}},
		{"null choices", `{"choices":null}`, "", 0, []string{}},
		{"a choice without a message", `{"choices":[{"finish_reason":"content_filter"}],"error":null}`, "", 0, []string{}},
		{"a null message", `{"choices":[{"message":null}]}`, "", 0, []string{}},
		{"an error next to the answer", `{"choices":[{"message":{"role":"assistant","content":"a"}}],"error":{"code":1}}`, "", 0, []string{
			`{"type":"text","role":"assistant","content":"a"}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := provider.OpenAI.DecodeResponse([]byte(test.body))
			require.NoError(t, err)
			require.Equal(t, test.out, rawMessages(result.Output))
			require.Equal(t, test.body, result.Raw)
			require.Equal(t, test.id, result.ID)
			if test.created == 0 {
				require.True(t, result.CreatedAt.IsZero())
			} else {
				require.Equal(t, time.Unix(test.created, 0).UTC(), result.CreatedAt)
			}
		})
	}
}

// delta returns a chunk of a stream. what is a delta, or a delta and the other
// members of the choice.
func delta(what string) string {
	return `{"id":"x","object":"chat.completion.chunk","created":1700000000,"choices":[{"index":0,"delta":` + what + `}]}`
}

// Each row is the events of a stream, and the whole response that they are equal
// to.
func TestOpenAIStream(t *testing.T) {
	call := func(what string) string { return delta(`{"tool_calls":[` + what + `]}`) }
	stop, tool := delta(`{},"finish_reason":"stop"`), delta(`{},"finish_reason":"tool_calls"`)
	for _, test := range []struct {
		name    string
		events  []string
		message string
		reason  string
	}{
		{"text, usage at the end", []string{delta(`{"role":"assistant","content":"","refusal":null}`), delta(`{"content":"a\u0020"}`), delta(`{"content":"b"}`), delta(`{"content":null}`), stop, `{"id":"","choices":[],"usage":{}}`, `[DONE]`},
			`{"role":"assistant","content":"a b","refusal":null}`, `"stop"`},
		{"reasoning, repeated and null members", []string{delta(`{"role":"assistant","reasoning":"a","channel":"x","reasoning_details":[{"i":1}]}`), delta(`{"role":"assistant","reasoning":"b","channel":"x","reasoning_details":[{"i":2}]}`), delta(`{"reasoning":null,"reasoning_content":"c","reasoning_details":[],"content":"d"}`), stop},
			`{"role":"assistant","reasoning":"ab","channel":"x","reasoning_details":[{"i":1},{"i":2}],"reasoning_content":"c","content":"d"}`, `"stop"`},
		{"a refusal", []string{delta(`{"role":"assistant","content":null,"refusal":"I "}`), delta(`{"refusal":"won't"}`), stop},
			`{"role":"assistant","content":null,"refusal":"I won't"}`, `"stop"`},
		{"parts and text (Mistral)", []string{delta(`{"role":"assistant","content":""}`), delta(`{"content":[{"type":"thinking","thinking":[]}]}`), delta(`{"content":"a"}`), delta(`{"content":"b"}`), delta(`{"content":[{"type":"x"}]}`), delta(`{"content":"c"}`), stop},
			`{"role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"ab"},{"type":"x"},{"type":"text","text":"c"}]}`, `"stop"`},
		{"nothing but reasoning: content is null, as in a response", []string{delta(`{"role":"assistant","reasoning_content":"hm"}`), stop},
			`{"role":"assistant","content":null,"reasoning_content":"hm"}`, `"stop"`},
		{"an empty text", []string{delta(`{"content":""}`), stop}, `{"role":"assistant","content":""}`, `"stop"`},
		{"no role at all", []string{delta(`{"content":"a"}`), stop}, `{"role":"assistant","content":"a"}`, `"stop"`},
		{"calls that take turns", []string{
			delta(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":""}}]}`), call(`{"index":0,"function":{"arguments":"{\"a\""}}`),
			call(`{"index":1,"id":"2","type":"function","function":{"name":"g","arguments":"{"}}`), call(`{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"}"}}`), tool},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`},
		{"a name that is empty at first, or later", []string{
			call(`{"index":0,"id":"1","function":{"name":"","arguments":""}}`), call(`{"index":0,"function":{"name":"f"}}`), call(`{"index":0,"id":"","function":{"name":"","arguments":"{}"}}`), call(`{"index":0,"id":null,"function":null}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"the same index for every call (Ollama)", []string{
			call(`{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}`), call(`{"index":0,"id":"2","function":{"name":"f","arguments":"{"}}`), call(`{"index":0,"function":{"arguments":"}"}}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"an id that comes later", []string{
			call(`{"index":0,"function":{"name":"f","arguments":"{"}}`), call(`{"index":0,"id":"1","function":{"arguments":"}"}}`), tool},
			`{"tool_calls":[{"function":{"name":"f","arguments":"{}"},"id":"1"}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"no index (Gemini)", []string{
			call(`{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{"}}`), call(`{"function":{"arguments":"}"}}`), call(`{"id":"1","extra_content":{"s":1}}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"},"extra_content":{"s":1}},{"id":"2","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"large indices", []string{
			call(`{"index":99999999999999999999,"id":"1","function":{"name":"f","arguments":"{}"}}`), call(`{"index":-7,"id":"2","function":{"name":"f","arguments":"{}"}}`), tool},
			`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{}"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"a custom tool", []string{
			call(`{"index":0,"id":"1","type":"custom","custom":{"name":"f","input":"a"}}`), call(`{"index":0,"custom":{"input":"b"}}`), tool},
			`{"tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"ab"}}],"role":"assistant","content":null}`, `"tool_calls"`},
		{"before there were tools", []string{
			delta(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}`), delta(`{"function_call":{"arguments":"{}"}}`), delta(`{},"finish_reason":"function_call"`)},
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `"function_call"`},
		{"no calls", []string{delta(`{"content":"a","tool_calls":[]}`), delta(`{"tool_calls":null}`), stop},
			`{"content":"a","tool_calls":[],"role":"assistant"}`, `"stop"`},
		{"a sound", []string{delta(`{"audio":{"id":"1","transcript":"a","data":"QU"}}`), delta(`{"audio":{"transcript":"b","data":"JD","expires_at":1}}`), stop},
			`{"audio":{"id":"1","transcript":"ab","data":"QUJD","expires_at":1},"role":"assistant","content":null}`, `"stop"`},
		{"other choices, events without", []string{`{"prompt_filter_results":[]}`, `{"choices":null}`, delta(`{"content":"a"}`), `{"choices":[{"index":1,"delta":{"content":"z"},"finish_reason":"length"}]}`, delta(`null,"finish_reason":"stop"`)},
			`{"content":"a","role":"assistant"}`, `"stop"`},
		{"a reason that is null or empty later", []string{delta(`{"content":"a"},"finish_reason":"length"`), delta(`{},"finish_reason":null`), delta(`{},"finish_reason":""`)},
			`{"content":"a","role":"assistant"}`, `"length"`},
		{"an empty reason, but done", []string{delta(`{"content":"a"},"finish_reason":""`), `[DONE]`},
			`{"content":"a","role":"assistant"}`, `""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := provider.OpenAI.Stream()
			for _, event := range test.events {
				require.NoError(t, s.Event([]byte(event)))
			}
			result, err := s.Result()
			require.NoError(t, err)
			require.Equal(t, strings.Join(test.events, "\n")+"\n", result.Raw)
			whole, err := provider.OpenAI.DecodeResponse([]byte(`{"id":"x","created":1700000000,"choices":[{"message":` + test.message + `,"finish_reason":` + test.reason + `}]}`))
			require.NoError(t, err)
			require.Equal(t, whole.ID, result.ID)
			require.Equal(t, whole.CreatedAt, result.CreatedAt)
			require.Equal(t, rawMessages(whole.Output), rawMessages(result.Output))
			again, err := s.Result()
			require.NoError(t, err)
			require.Equal(t, result, again)
		})
	}
}

func TestOpenAIBrokenStreams(t *testing.T) {
	const said = `{"type":"text","role":"assistant","content":"a"}`
	for _, test := range []struct {
		name   string
		events []string
		out    []string
		errs   []string // in their order
	}{
		{"broken off", []string{delta(`{"content":"a"}`)}, []string{said}, []string{"provider: incomplete stream"}},
		{"broken off in a call", []string{delta(`{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a"}}]}`)}, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":"f","input":"{\"a"}],"openai":{}}`}, []string{"provider: incomplete stream"}},
		{"nothing", nil, []string{}, []string{"provider: incomplete stream"}},
		{"nothing but the end", []string{`[DONE]`}, []string{}, []string{"provider: incomplete stream"}},
		{"no choice", []string{`{"choices":[]}`}, []string{}, []string{"provider: incomplete stream"}},
		{"an error", []string{delta(`{"content":"a"}`), `{"error":{"code":400,"message":"m"}}`, `[DONE]`}, []string{said}, []string{`event 1: provider: OpenAI: the response is an error of type "400"`}},
		{"an error in a chunk", []string{`{"error":{"code":400},"choices":[{"index":0,"delta":{"content":"a"}}]}`}, []string{said}, []string{`event 0: provider: OpenAI: the response is an error of type "400"`}},
		{"invalid events", []string{`oops`, `7`, delta(`{"content":"a"}`), `{"choices":{}}`, `{"choices":[7]}`, delta(`"a"`), delta(`{"tool_calls":[7]}`), delta(`{"function_call":{},"audio":{"id":null}},"finish_reason":"stop"`)},
			[]string{`{"type":"text","role":"assistant","content":"a","openai":{"more":{"tool_calls":[],"function_call":{},"audio":{"id":null}}},"stop_reason":"stop"}`}, []string{
				"event 0: provider: OpenAI: $: ", "event 1: provider: OpenAI: $: want object, got number", "event 3: provider: OpenAI: $.choices: want array, got object", "event 4: provider: OpenAI: $.choices[0]: want object, got number",
				"event 5: provider: OpenAI: $.choices[0].delta: want object, got string", "event 6: provider: OpenAI: $.choices[0].delta.tool_calls[0]: want object, got number"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := provider.OpenAI.Stream()
			failed := 0
			for _, event := range test.events {
				if s.Event([]byte(event)) != nil {
					failed++
				}
			}
			result, err := s.Result()
			require.Error(t, err)
			require.Equal(t, test.out, rawMessages(result.Output))
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(test.errs))
			for i, want := range test.errs {
				require.Contains(t, lines[i], want)
			}
			incomplete := test.errs[len(test.errs)-1] == provider.ErrIncomplete.Error()
			if incomplete {
				require.ErrorIs(t, err, provider.ErrIncomplete)
				failed++
			}
			require.Equal(t, failed, len(test.errs))
		})
	}
}
