package provider_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// anthropicEvents returns the events of a message with deltas.
func anthropicEvents(block string, deltas ...string) []string {
	events := []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[]}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
	}
	for _, delta := range deltas {
		events = append(events, `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
	}
	return append(events, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)
}

func anthropicWhole(blocks string) string {
	return `{"id":"m","type":"message","role":"assistant","content":[` + blocks + `],"stop_reason":"end_turn"}`
}

// chatEvents returns the chunks with deltas.
func chatEvents(deltas ...string) []string {
	events := make([]string, len(deltas), len(deltas)+1)
	for i, what := range deltas {
		events[i] = delta(what)
	}
	return append(events, delta(`{},"finish_reason":"stop"`))
}

func chatWhole(message string) string {
	return `{"id":"x","created":1700000000,"choices":[{"message":` + message + `,"finish_reason":"stop"}]}`
}

// responsesEvents returns the events of a response whose last one has no items.
func responsesEvents(item string, events ...string) []string {
	all := []string{`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","output_index":0,"item":` + item + `}`}
	for _, event := range events {
		all = append(all, `{"output_index":0,`+event[1:])
	}
	return append(all, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)
}

func responsesWhole(items string) string {
	return `{"id":"r","object":"response","status":"completed","output":[` + items + `]}`
}

func geminiEvents(parts ...string) []string {
	events := make([]string, len(parts), len(parts)+1)
	for i, part := range parts {
		events[i] = `{"candidates":[{"content":{"role":"model","parts":[` + part + `]}}]}`
	}
	return append(events, `{"candidates":[{"finishReason":"STOP"}]}`)
}

func geminiWhole(parts string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP"}]}`
}

// streamLaws are streams, and the whole response of the same answer.
var streamLaws = []struct {
	name   string
	format *provider.Format
	events []string
	whole  string
}{
	{"thinking that is omitted has no count of tokens", provider.Anthropic,
		anthropicEvents(`{"type":"thinking","thinking":"","signature":""}`,
			`{"type":"thinking_delta","thinking":"","estimated_tokens":50}`, `{"type":"signature_delta","signature":"S","x":1}`),
		anthropicWhole(`{"type":"thinking","thinking":"","signature":"S"}`)},
	{"a text has nothing of its deltas", provider.Anthropic,
		anthropicEvents(`{"type":"text","text":""}`, `{"type":"text_delta","text":"a","index":7,"token":"x"}`, `{"type":"citations_delta","citation":{"type":"page_location"}}`),
		anthropicWhole(`{"type":"text","text":"a","citations":[{"type":"page_location"}]}`)},
	{"a delta of a type to come", provider.Anthropic,
		anthropicEvents(`{"type":"poem","verse":""}`, `{"type":"poem_delta","verse":"a"}`, `{"type":"poem_delta","verse":"b","feet":5}`),
		anthropicWhole(`{"type":"poem","verse":"ab","feet":5}`)},
	{"a compaction", provider.Anthropic,
		anthropicEvents(`{"type":"compaction","content":null}`, `{"type":"compaction_delta","content":"a","encrypted_content":"e","tokens":3}`),
		anthropicWhole(`{"type":"compaction","content":"a","encrypted_content":"e"}`)},
	{"arguments that are spaces", provider.Anthropic,
		anthropicEvents(`{"type":"tool_use","id":"1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":" "}`),
		anthropicWhole(`{"type":"tool_use","id":"1","name":"f","input":{}}`)},

	{"the channel of a delta (Groq)", provider.OpenAI,
		chatEvents(`{"role":"assistant","channel":"analysis","reasoning":"hm"}`, `{"channel":"final","content":"hi"}`),
		chatWhole(`{"role":"assistant","reasoning":"hm","content":"hi"}`)},
	{"scalars of a delta and of a call", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":"a","token_count":1,"finished":false,"note":"x"}`,
			`{"tool_calls":[{"index":0,"id":"1","type":"function","seq":1,"function":{"name":"f","arguments":"{","seq":1}}]}`,
			`{"tool_calls":[{"index":0,"seq":2,"function":{"arguments":"}","seq":2}}],"extra":{"a":1},"more":[1]}`),
		chatWhole(`{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}],"extra":{"a":1},"more":[1]}`)},
	{"lists of thinking, texts and references (Mistral)", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":""}`,
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}`,
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"b"}],"closed":true}]}`,
			`{"content":"Hel"}`, `{"content":"lo"}`,
			`{"content":[{"type":"reference","reference_ids":[1]}]}`, `{"content":[{"type":"reference","reference_ids":[2]}]}`,
			`{"content":[{"type":"text","text":"!"}]}`, `{"content":[{"type":"text","text":"?"}]}`, `{"content":"."}`),
		chatWhole(`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}],"closed":true},` +
			`{"type":"text","text":"Hello"},{"type":"reference","reference_ids":[1,2]},{"type":"text","text":"!?."}]}`)},
	{"parts of one list are parts of their own", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, `{"content":[{"type":"text","text":"c"}]}`),
		chatWhole(`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"bc"}]}`)},
	{"details of reasoning by their index (OpenRouter)", provider.OpenAI,
		chatEvents(`{"role":"assistant","reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"f","index":0}]}`,
			`{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","format":"f","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","signature":"S","format":"f","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"c","index":1},{"type":"reasoning.encrypted","data":"d","id":"rs","index":1}]}`,
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"c","index":1},{"type":"reasoning.text","text":"e","index":2}]}`),
		chatWhole(`{"role":"assistant","content":null,"reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"ab","format":"f","index":0,"signature":"S"},` +
			`{"type":"reasoning.summary","summary":"cc","index":1},{"type":"reasoning.encrypted","data":"d","id":"rs","index":1},{"type":"reasoning.text","text":"e","index":2}]}`)},
	{"details of reasoning without an index", provider.OpenAI,
		chatEvents(`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"a"}]}`, `{"reasoning_details":[{"type":"reasoning.text","text":"b","signature":"S"}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"c"}]}`, `{"content":"x"}`),
		chatWhole(`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"ab","signature":"S"},{"type":"reasoning.text","text":"c"}],"content":"x"}`)},
	{"a call that comes twice, without an id", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
			`{"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`),
		chatWhole(`{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`)},
	{"a call that comes twice, with its id", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
			`{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`),
		chatWhole(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`)},
	{"a call in pieces that comes again whole", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{\"a\""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`,
			`{"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`),
		chatWhole(`{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`)},
	{"two calls of one index, without ids", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
			`{"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]}`),
		chatWhole(`{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]}`)},
	{"the call of the time before tools, twice", provider.OpenAI,
		chatEvents(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}}`, `{"function_call":{"name":"f","arguments":"{\"a\":1}"}}`),
		chatWhole(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}}`)},

	{"what only events have", provider.OpenAIResponses,
		responsesEvents(`{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}`,
			`{"type":"response.content_part.added","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
			`{"type":"response.output_text.delta","content_index":0,"delta":"a","logprobs":[{"token":"a"}],"obfuscation":"x","sequence_number":3}`,
			`{"type":"response.output_text.annotation.added","content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"u"}}`,
			`{"type":"response.output_text.delta","content_index":0,"delta":"b","obfuscation":"xy"}`,
			`{"type":"response.refusal.delta","content_index":1,"delta":"no","sequence_number":5}`),
		responsesWhole(`{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"ab","annotations":[{"type":"url_citation","url":"u"}]},{"type":"refusal","refusal":"no"}]}`)},

	{"arguments in pieces", provider.Gemini,
		geminiEvents(`{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}]},"thoughtSignature":"S"}`,
			`{"functionCall":{"willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":"y"},{"jsonPath":"$.b[0]","numberValue":1}]}}`, `{"functionCall":{}}`),
		geminiWhole(`{"functionCall":{"name":"f","args":{"a":"xy","b":[1]}},"thoughtSignature":"S"}`)},
}

// A stream gives the message that the whole response gives.
func TestStreamsAreWholeAnswers(t *testing.T) {
	for _, law := range streamLaws {
		t.Run(law.name, func(t *testing.T) { requireWhole(t, law.format, law.events, law.whole) })
	}
}

// requireWhole requires that events give what a whole body gives, and that the
// pieces make the text.
func requireWhole(t *testing.T, f *provider.Format, events []string, body string) state.InferenceResult {
	t.Helper()
	var got said
	s := f.Stream()
	s.OnDelta = func(d provider.Delta) { got.add(t, d) }
	for _, event := range events {
		_, _ = io.WriteString(s, "data: "+event+"\n\n")
	}
	streamed, err := s.Result()
	require.NoError(t, err)
	whole, err := f.DecodeResponse([]byte(body))
	require.NoError(t, err)
	require.Equal(t, rawMessages(whole.Output), rawMessages(streamed.Output))
	require.Equal(t, whole.Stop, streamed.Stop)
	require.Equal(t, whole.Usage, streamed.Usage)
	want := saidBy(streamed.Output)
	require.Equal(t, want.Text, got.Text)
	require.Len(t, got.Inputs, len(want.Inputs))
	for i, call := range want.Inputs {
		requireInput(t, call.Input, got.Inputs[i].Input, call.Name)
	}
	return streamed
}

// Halves of a character in two deltas are the character, and a half that is alone
// is U+FFFD: in texts, reasoning and arguments, in all formats, streamed and whole.
func TestHalvesOfCharacters(t *testing.T) {
	text := func(typ, member string) func(pieces ...string) []string {
		return func(pieces ...string) []string {
			for i, piece := range pieces {
				pieces[i] = `{"type":"` + typ + `_delta","` + member + `":"` + piece + `"}`
			}
			return pieces
		}
	}
	each := func(begin, end string) func(pieces ...string) []string {
		return func(pieces ...string) []string {
			for i, piece := range pieces {
				pieces[i] = begin + piece + end
			}
			return pieces
		}
	}
	for _, test := range []struct {
		name   string
		format *provider.Format
		events func(pieces ...string) []string
		whole  func(text string) string
	}{
		{"a text", provider.OpenAI, func(p ...string) []string { return chatEvents(each(`{"role":"assistant","content":"`, `"}`)(p...)...) },
			func(s string) string { return chatWhole(`{"role":"assistant","content":"` + s + `"}`) }},
		{"a refusal", provider.OpenAI, func(p ...string) []string { return chatEvents(each(`{"role":"assistant","refusal":"`, `"}`)(p...)...) },
			func(s string) string { return chatWhole(`{"role":"assistant","refusal":"` + s + `","content":null}`) }},
		{"reasoning", provider.OpenAI, func(p ...string) []string {
			return chatEvents(each(`{"role":"assistant","content":null,"reasoning_content":"`, `"}`)(p...)...)
		},
			func(s string) string {
				return chatWhole(`{"role":"assistant","content":null,"reasoning_content":"` + s + `"}`)
			}},
		{"parts", provider.OpenAI, func(p ...string) []string {
			return chatEvents(each(`{"role":"assistant","content":[{"type":"text","text":"`, `"}]}`)(p...)...)
		},
			func(s string) string {
				return chatWhole(`{"role":"assistant","content":[{"type":"text","text":"` + s + `"}]}`)
			}},
		{"arguments", provider.OpenAI, func(p ...string) []string {
			return chatEvents(append(append([]string{`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":\""}}]}`},
				each(`{"tool_calls":[{"index":0,"function":{"arguments":"`, `"}}]}`)(p...)...), `{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`)...)
		}, func(s string) string {
			return chatWhole(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":\"` + s + `\"}"}}]}`)
		}},
		{"a text", provider.Anthropic, func(p ...string) []string {
			return anthropicEvents(`{"type":"text","text":""}`, text("text", "text")(p...)...)
		},
			func(s string) string { return anthropicWhole(`{"type":"text","text":"` + s + `"}`) }},
		{"thinking", provider.Anthropic, func(p ...string) []string {
			return anthropicEvents(`{"type":"thinking","thinking":"","signature":"S"}`, text("thinking", "thinking")(p...)...)
		},
			func(s string) string {
				return anthropicWhole(`{"type":"thinking","thinking":"` + s + `","signature":"S"}`)
			}},
		{"arguments", provider.Anthropic, func(p ...string) []string {
			return anthropicEvents(`{"type":"tool_use","id":"1","name":"f","input":{}}`, text("input_json", "partial_json")(append(append([]string{`{\"a\":\"`}, p...), `\"}`)...)...)
		},
			func(s string) string {
				return anthropicWhole(`{"type":"tool_use","id":"1","name":"f","input":{"a":"` + s + `"}}`)
			}},
		{"a text", provider.OpenAIResponses, func(p ...string) []string {
			return responsesEvents(`{"type":"message","role":"assistant","content":[]}`, each(`{"type":"response.output_text.delta","content_index":0,"delta":"`, `"}`)(p...)...)
		},
			func(s string) string {
				return responsesWhole(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + s + `"}]}`)
			}},
		{"a summary", provider.OpenAIResponses, func(p ...string) []string {
			return responsesEvents(`{"type":"reasoning","id":"rs","summary":[]}`, each(`{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":"`, `"}`)(p...)...)
		},
			func(s string) string {
				return responsesWhole(`{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"` + s + `"}]}`)
			}},
		{"arguments", provider.OpenAIResponses, func(p ...string) []string {
			return responsesEvents(`{"type":"function_call","call_id":"1","name":"f","arguments":""}`,
				each(`{"type":"response.function_call_arguments.delta","delta":"`, `"}`)(append(append([]string{`{\"a\":\"`}, p...), `\"}`)...)...)
		}, func(s string) string {
			return responsesWhole(`{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":\"` + s + `\"}"}`)
		}},
		{"a text", provider.Gemini, func(p ...string) []string { return geminiEvents(each(`{"text":"`, `"}`)(p...)...) },
			func(s string) string { return geminiWhole(`{"text":"` + s + `"}`) }},
		{"a thought", provider.Gemini, func(p ...string) []string { return geminiEvents(each(`{"text":"`, `","thought":true}`)(p...)...) },
			func(s string) string { return geminiWhole(`{"text":"` + s + `","thought":true}`) }},
		{"arguments", provider.Gemini, func(p ...string) []string {
			return geminiEvents(append(append([]string{`{"functionCall":{"name":"f","willContinue":true}}`},
				each(`{"functionCall":{"willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":"`, `"}]}}`)(p...)...), `{"functionCall":{}}`)...)
		}, func(s string) string { return geminiWhole(`{"functionCall":{"name":"f","args":{"a":"` + s + `"}}}`) }},
	} {
		t.Run(test.format.String()+"/"+test.name, func(t *testing.T) {
			for _, c := range []struct {
				pieces []string
				want   string
			}{
				{[]string{`hi \ud83d`, `\ude00!`}, "hi 😀!"},
				{[]string{`\ud83d`, `\ude00`}, "😀"},
				{[]string{`a\ud83d`, ``, `\ude00b`, `\ud83d`, `\ude01`}, "a😀b😁"},
				{[]string{`hi \ud83d`, `!`}, "hi \ufffd!"},
				{[]string{`hi `, `\ude00!`}, "hi \ufffd!"},
				{[]string{`\ude00\ud83d`, `\ud83dx`}, "\ufffd\ufffd\ufffdx"},
				{[]string{`x`, `\ud83d`}, "x\ufffd"},
				{[]string{"x\xf0\x9f", "\x98\x80\xffy"}, "x😀\ufffdy"}, // cut between its bytes
			} {
				requireWhole(t, test.format, test.events(append([]string(nil), c.pieces...)...), test.whole(c.want))
				result, err := test.format.DecodeResponse([]byte(test.whole(strings.Join(c.pieces, ""))))
				require.NoError(t, err)
				whole, err := test.format.DecodeResponse([]byte(test.whole(c.want)))
				require.NoError(t, err)
				for i, m := range whole.Output {
					require.JSONEq(t, string(m.Raw()), string(result.Output[i].Raw()), "whole")
				}
			}
		})
	}
}

// Halves in the JSON of arguments are U+FFFD, too, and what was sent goes back.
func TestHalvesInTheJSONOfArguments(t *testing.T) {
	for _, test := range []struct {
		format *provider.Format
		events []string
		body   string
	}{
		{provider.OpenAI, chatEvents(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]}`),
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]}]}`},
		{provider.OpenAIResponses, responsesEvents(`{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":\"\\ud83d\"}"}`),
			`{"input":[{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":\"\\ud83d\"}"}]}`},
		{provider.Anthropic, anthropicEvents(`{"type":"tool_use","id":"1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"a\":\"\\ud83d\"}"}`),
			`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a":"` + "\ufffd" + `"}}]}]}`},
	} {
		s := test.format.Stream()
		for _, event := range test.events {
			require.NoError(t, s.Event([]byte(event)))
		}
		result, err := s.Result()
		require.NoError(t, err)
		require.JSONEq(t, `{"a":"`+"\ufffd"+`"}`, string(result.Output[0].(state.ToolCallMessage).Calls()[0].Input))
		requireEncoded(t, test.format, result.Output, test.body, nil)
	}
}

// Arguments that are only spaces count as missing.
func TestArgumentsOfSpaces(t *testing.T) {
	for _, arguments := range []string{"", " ", `\n\t `} {
		for f, body := range map[*provider.Format]string{
			provider.OpenAI:          chatWhole(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"` + arguments + `"}}]}`),
			provider.OpenAIResponses: responsesWhole(`{"type":"function_call","call_id":"1","name":"f","arguments":"` + arguments + `"}`),
		} {
			result, err := f.DecodeResponse([]byte(body))
			require.NoError(t, err)
			require.Empty(t, result.Output[0].(state.ToolCallMessage).Calls()[0].Input, "%s %q", f, arguments)
			sent, _, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: result.Output})
			require.NoError(t, err)
			require.Contains(t, string(sent), `"input":{}`)
		}
	}
}

// An event that the format does not know costs nobody the answer.
func TestUnknownEventsOfAnyKind(t *testing.T) {
	answers := map[*provider.Format][]string{
		provider.OpenAI: chatEvents(`{"role":"assistant","content":"ok"}`), provider.Gemini: geminiEvents(`{"text":"ok"}`),
		provider.Anthropic:       anthropicEvents(`{"type":"text","text":""}`, `{"type":"text_delta","text":"ok"}`),
		provider.OpenAIResponses: responsesEvents(`{"type":"message","role":"assistant","content":[]}`, `{"type":"response.output_text.delta","content_index":0,"delta":"ok"}`),
	}
	read := func(f *provider.Format, odd string) (state.InferenceResult, error) {
		s := f.Stream()
		for _, event := range answers[f] {
			_, _ = io.WriteString(s, odd+"data: "+event+"\n\n")
		}
		return s.Result()
	}
	for f := range answers {
		for _, data := range []string{"keep-alive", "", "7", `"x"`, "[1]", "{oops", `{"a":1,"a":2}`, "<html>", `{"tokens": 5,}`, "data: two\ndata: lines"} {
			for _, line := range []string{"event: heartbeat\n", "event:x.y\n"} {
				result, err := read(f, line+"data: "+data+"\n\n")
				require.NoError(t, err, "%s %s%s", f, line, data)
				require.Equal(t, "ok", result.Output[0].(state.TextMessage).Text())
			}
		}
		known := map[*provider.Format]string{
			provider.OpenAI: `{"choices":[{"delta":`, provider.Gemini: `{"candidates":[{`, provider.Anthropic: "oops", provider.OpenAIResponses: "oops",
		}[f]
		for _, name := range []string{"", "event: message\n", "event: error\n", "event: " + map[*provider.Format]string{
			provider.OpenAI: "chunk", provider.Gemini: "chunk", provider.Anthropic: "content_block_delta", provider.OpenAIResponses: "response.output_text.delta",
		}[f] + "\n"} {
			_, err := read(f, name+"data: "+known+"\n\n")
			require.Error(t, err, "%s %s: a piece is missing", f, name)
		}
	}
}
