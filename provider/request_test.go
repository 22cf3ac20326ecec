package provider_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/transcript"
)

// The settings of a request decide which rules hold for it.
func TestProfileOfRequest(t *testing.T) {
	thinking, continued := transcript.Anthropic, transcript.Anthropic
	thinking.Thinking, continued.Continued = true, true
	both := thinking
	both.Continued = true
	for _, row := range []struct {
		settings state.JSON
		want     transcript.Profile
	}{
		{``, transcript.Anthropic},
		{`{}`, transcript.Anthropic},
		{`[]`, transcript.Anthropic},
		{`{"thinking":{"type":"enabled","budget_tokens":1024}}`, thinking},
		{`{"thinking":{"type":"adaptive"}}`, transcript.Anthropic}, // such a turn may begin without thinking
		{`{"thinking":{"type":"disabled"}}`, transcript.Anthropic},
		{`{"thinking":null,"previous_response_id":null}`, transcript.Anthropic},
		{`{"previous_response_id":"r"}`, continued},
		{`{"conversation":"c","thinking":{"type":"enabled"}}`, both},
	} {
		request := provider.Request{Settings: row.settings}
		require.Equal(t, row.want, request.Profile(transcript.Anthropic), row.settings)
		strict := transcript.Anthropic
		strict.NoPrefill, row.want.NoPrefill = true, true
		require.Equal(t, row.want, request.Profile(strict), row.settings)
	}
}

// Calls of OpenAI that wait for their results go on with Anthropic and thinking.
func TestForeignTurnWithThinking(t *testing.T) {
	request, err := provider.OpenAI.DecodeRequest(chatRequest(`{"role":"user","content":"hi"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"r"}`))
	require.NoError(t, err)
	request.Settings = `{"model":"m","thinking":{"type":"enabled","budget_tokens":1024}}`
	profile := request.Profile(transcript.Anthropic)
	request.Messages, _ = transcript.Repair(request.Messages, profile, transcript.Policy{AnswerCalls: true})
	body, omitted, err := provider.Anthropic.EncodeRequest(request)
	require.NoError(t, err)
	require.Empty(t, omitted)
	jsonEqual(t, []byte(`{"model":"m","thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"hi"},{"role":"user","content":"Result of f: r"}]}`), body)
}

// requireDecodable requires that [state.DecodeMessage] takes messages that a
// format made. Formats check a body as a whole, not each message made of it.
func requireDecodable(t *testing.T, msgs []state.Message) {
	t.Helper()
	for _, m := range msgs {
		again, err := state.DecodeMessage([]byte(m.Raw()))
		require.NoError(t, err)
		require.True(t, m.Equal(again))
		require.Equal(t, m.Raw(), again.Raw())
	}
}

// The messages of the deepest body that a format accepts are not too deep,
// although messages add levels.
func TestMessagesOfDeepBodies(t *testing.T) {
	for _, c := range []struct {
		format *provider.Format
		body   string // with DEEP for nested arrays
	}{
		{provider.OpenAI, `{"messages":[{"role":"user","content":"a","x":DEEP}]}`},
		{provider.OpenAI, `{"messages":[{"role":"user","content":[{"type":"x","y":DEEP}]}]}`},
		{provider.OpenAI, `{"messages":[{"role":"tool","tool_call_id":"1","content":DEEP,"x":DEEP}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":DEEP,"x":DEEP},"y":DEEP}]}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":DEEP}"}}]}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{\"a\": DEEP}"}}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"x","y":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"role":"user","content":[{"type":"x","y":DEEP}],"z":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":DEEP}","x":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"shell_call","call_id":"c","action":DEEP,"status":DEEP}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"shell_call_output","call_id":"c","output":DEEP,"x":DEEP}]}`},
		{provider.Anthropic, `{"system":[{"type":"text","text":"a","x":DEEP}],"messages":[]}`},
		{provider.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":DEEP,"x":DEEP}],"y":DEEP}]}`},
		{provider.Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":DEEP,"is_error":DEEP}]}]}`},
		{provider.Gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":DEEP,"x":DEEP},"y":DEEP}],"z":DEEP}]}`},
		{provider.Gemini, `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":DEEP,"x":DEEP},"y":DEEP}]}]}`},
		{provider.Gemini, `{"contents":{"parts":[{"text":"a","x":DEEP}]},"systemInstruction":{"parts":[{"type":DEEP}]}}`},
	} {
		deepest := 0
		for depth := 1; depth < 64; depth++ {
			deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
			request, err := c.format.DecodeRequest([]byte(strings.ReplaceAll(c.body, "DEEP", deep)))
			if err != nil {
				require.ErrorIs(t, err, state.ErrLimitExceeded, c.body)
				continue
			}
			deepest = depth
			requireDecodable(t, request.Messages)
		}
		require.Greater(t, deepest, 40, c.body)
	}
}

// A message of more than 256 calls is a limit error in requests and responses.
func TestMessagesOfManyCalls(t *testing.T) {
	for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini, bedrockFormat} {
		for n, fits := range map[int]bool{256: true, 257: false} {
			calls := make([]state.ToolCall, n)
			for i := range calls {
				calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
			}
			msgs := []state.Message{state.ToolCalls(calls...)}
			request, _, err := format.EncodeRequest(provider.Request{Messages: msgs})
			require.NoError(t, err)
			_, inRequest := format.DecodeRequest(request)
			inResponse := inRequest
			if format != bedrockFormat {
				response, _, err := statetest.Response(format, "m", state.InferenceResult{Output: msgs})
				require.NoError(t, err)
				_, inResponse = format.DecodeResponse(response)
			}
			for _, err := range []error{inRequest, inResponse} {
				if fits {
					require.NoError(t, err, format)
					continue
				}
				require.ErrorIs(t, err, state.ErrLimitExceeded, format)
				require.ErrorContains(t, err, "limit Calls: 257 is more than 256", format)
			}
		}
	}
}

// The errors with which Repair answers calls say that they are errors, also where
// an API has no member for that. Other errors are reported there.
func TestAnswersOfRepairAreNoOmissions(t *testing.T) {
	call := state.ToolCalls(state.ToolCall{ID: "call_00000001", Name: "f", Input: "{}"})
	for _, target := range targets {
		msgs, changes := transcript.Repair([]state.Message{state.UserText("a"), call, state.UserText("b")}, target.format.Profile(), transcript.Policy{AnswerCalls: true})
		require.NotEmpty(t, changes)
		_, omitted, err := target.format.EncodeRequest(provider.Request{Messages: msgs})
		require.NoError(t, err)
		require.Empty(t, omitted)
	}
	failed := state.ToolError(call.Calls()[0], "no network")
	_, omitted, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: []state.Message{call, failed}})
	require.NoError(t, err)
	require.Len(t, omitted, 1)
}

// Providers have accepted these requests: recordings show it.
func TestAcceptedSpellings(t *testing.T) {
	for _, test := range []struct {
		name     string
		format   *provider.Format
		body     string
		messages int
	}{
		{"a part that is not in an array", provider.Gemini, `{"systemInstruction":{"parts":{"text":"s"}},"contents":[{"role":"user","parts":{"text":"hi"}},{"role":"model","parts":{"functionCall":{"name":"f","args":{}}}},{"role":"user","parts":{"functionResponse":{"name":"f","response":{}}}}]}`, 4},
		{"a system prompt that is empty", provider.Anthropic, `{"model":"m","max_tokens":9,"system":"","messages":[{"role":"user","content":"hi"}]}`, 1},
		{"blank text between the provider's own tools", provider.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]},{"type":"text","text":"a"},{"type":"text","text":" "},{"type":"text","text":"b"}]},{"role":"user","content":"go on"}]}`, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := test.format.DecodeRequest([]byte(test.body))
			require.NoError(t, err)
			require.Len(t, request.Messages, test.messages)
			require.Empty(t, transcript.Check(request.Messages, test.format.Profile()))
			again, omitted, err := test.format.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)
			jsonEqual(t, []byte(test.body), again)
		})
	}
}

var tooDeep = strings.Repeat("[", 60) + strings.Repeat("]", 60)

// Errors say where a body is wrong, and show nothing of it.
func TestMalformedRequests(t *testing.T) {
	for _, test := range []struct {
		format        *provider.Format
		body, problem string // the problem with the path before it
	}{
		{provider.OpenAI, `{}`, "$.messages: want array, got nothing"},
		{provider.OpenAI, `{"messages":null}`, "$.messages: want array, got null"},
		{provider.OpenAI, `{"messages":{"secret":1}}`, "$.messages: want array, got object"},
		{provider.OpenAI, `{"messages":[{"role":"user"},"secret"]}`, "$.messages[1]: want object, got string"},
		{provider.OpenAI, `[]`, "$: want object, got array"},
		{provider.OpenAI, `{"messages":[{"role":"user","role":"user"}]}`, "$.messages[0].role: "},
		{provider.OpenAI, `{"messages":[`, "$.messages[0]: "},
		{provider.OpenAI, `{"messages":` + tooDeep + `}`, "$"},
		{provider.OpenAIResponses, `{"input":`, "$.input: "},
		{provider.OpenAIResponses, `{"input":{}}`, "$.input: "},
		{provider.OpenAIResponses, `{"input":[{"role":"user","content":"a"},"b"]}`, "$.input[1]: "},
		{provider.OpenAIResponses, `{"input":[null]}`, "$.input[0]: "},
		{provider.OpenAIResponses, `{"instructions":["a"]}`, "$.instructions: "},
		{provider.OpenAIResponses, `{"input":[{"type":"x","y":` + tooDeep + `}]}`, "$.input[0]"},
		{provider.Anthropic, `{"model":"m"}`, "$.messages: "},
		{provider.Anthropic, `{"messages":{}}`, "$.messages: "},
		{provider.Anthropic, `{"messages":[{"role":"user","content":""},"hi"]}`, "$.messages[1]: "},
		{provider.Anthropic, `{"system":1,"messages":[]}`, "$.system: "},
		{provider.Anthropic, `{"system":["a"],"messages":[]}`, "$.system"},
		{provider.Anthropic, `{"messages":[{"role":"user","content":` + tooDeep + `}]}`, "$.messages[0].content"},
		{provider.Gemini, `{}`, "$.contents: "},
		{provider.Gemini, `{"contents":null}`, "$.contents: "},
		{provider.Gemini, `{"contents":"hi"}`, "$.contents: "},
		{provider.Gemini, `{"contents":["hi"]}`, "$.contents[0]: "},
		{provider.Gemini, `{"contents":[],"systemInstruction":[]}`, "$.systemInstruction: "},
		{provider.Gemini, `{"contents":[{"role":1}]}`, "$.contents[0].role: "},
		{provider.Gemini, `{"contents":{"parts":7}}`, "$.contents.parts: "},
		{provider.Gemini, `{"contents":[{"parts":[null]}]}`, "$.contents[0].parts[0]: "},
		{provider.Gemini, `{"contents":[{"parts":[{"text":1}]}]}`, "$.contents[0].parts[0].text: "},
		{provider.Gemini, `{"contents":[{"parts":[{"functionCall":[]}]}]}`, "$.contents[0].parts[0].functionCall: "},
		{provider.Gemini, `{"contents":[{"parts":[{"function_response":{"name":1}}]}]}`, "$.contents[0].parts[0].function_response.name: "},
	} {
		_, err := test.format.DecodeRequest([]byte(test.body))
		requireWrong(t, test.format, err, test.problem)
	}
}

func TestMalformedResponses(t *testing.T) {
	for _, test := range []struct {
		format        *provider.Format
		body, problem string
	}{
		{provider.OpenAI, `{}`, "$.choices: want array or null, got nothing"},
		{provider.OpenAI, `{"choices":{}}`, "$.choices: want array or null, got object"},
		{provider.OpenAI, `{"choices":[null]}`, "$.choices[0]: want object, got null"},
		{provider.OpenAI, `{"choices":[{"message":"secret"}]}`, "$.choices[0].message: want object, got string"},
		{provider.OpenAI, `<html>`, "$: "},
		{provider.OpenAI, ``, "$: "},
		{provider.OpenAIResponses, `{}`, "$.output: "},
		{provider.OpenAIResponses, `{"output":{}}`, "$.output: "},
		{provider.OpenAIResponses, `{"output":[{"type":"message"},7]}`, "$.output[1]: "},
		{provider.Anthropic, `{"id":"msg_1"}`, "$.content: "},
		{provider.Anthropic, `{"content":null}`, "$.content: "},
		{provider.Anthropic, `{"content":{}}`, "$.content: "},
		{provider.Gemini, `{}`, "$: want candidates or promptFeedback"},
		{provider.Gemini, `{"candidates":null}`, "$: want candidates or promptFeedback"},
		{provider.Gemini, `{"promptFeedback":null,"responseId":"r"}`, "$: want candidates or promptFeedback"},
		{provider.Gemini, `{"candidates":{}}`, "$.candidates: "},
		{provider.Gemini, `{"candidates":[1]}`, "$.candidates[0]: "},
		{provider.Gemini, `{"candidates":[{"content":[]}]}`, "$.candidates[0].content: "},
		{provider.Gemini, `{"candidates":[{"content":{"parts":[[]]}}]}`, "$.candidates[0].content.parts[0]: "},
		{provider.Gemini, `{"candidates":[{"content":{"role":"","x":{}`, "$.candidates[0].content[…]: "},
	} {
		result, err := test.format.DecodeResponse([]byte(test.body))
		requireWrong(t, test.format, err, test.problem)
		require.Equal(t, test.body, result.Raw)
		require.Empty(t, result.Output)
	}
}

// requireWrong requires an error that begins with a path and a problem, and shows
// nothing of the body.
func requireWrong(t *testing.T, f *provider.Format, err error, problem string) {
	t.Helper()
	var wrong *provider.Error
	require.ErrorAs(t, err, &wrong, problem)
	require.Equal(t, f.String(), wrong.Format)
	require.True(t, strings.HasPrefix(wrong.Path+": "+wrong.Problem, problem), "%v, want %s", err, problem)
	require.NotContains(t, err.Error(), "secret")
	require.True(t, errors.Is(err, state.ErrWrongType) || errors.Is(err, state.ErrLimitExceeded), "%v", err)
}

// A failure that a provider reports is a ResponseError. Its message is not in the
// text of the error.
func TestReportedFailures(t *testing.T) {
	for _, test := range []struct {
		format     *provider.Format
		body, code string
	}{
		{provider.OpenAI, `{"error":{"type":"invalid_request_error","code":"c","message":"secret"}}`, "invalid_request_error"},
		{provider.OpenAI, `{"error":{"type":null,"code":400,"message":"secret"},"choices":null}`, "400"},
		{provider.OpenAI, `{"error":"secret"}`, ""},
		{provider.OpenAIResponses, `{"error":{"message":"secret","type":"invalid_request_error","code":null}}`, "invalid_request_error"},
		{provider.OpenAIResponses, `{"id":"r","status":"failed","error":{"code":"invalid_request_error","message":"secret"},"output":[]}`, "invalid_request_error"},
		{provider.OpenAIResponses, `{"id":"r","status":"failed","error":{"code":"invalid_request_error","message":"secret"},"output":null}`, "invalid_request_error"},
		{provider.Anthropic, `{"type":"error","error":{"type":"overloaded_error","message":"secret"},"request_id":"r"}`, "overloaded_error"},
		{provider.Gemini, `{"error":{"code":429,"message":"secret","status":"RESOURCE_EXHAUSTED"}}`, "RESOURCE_EXHAUSTED"},
	} {
		result, err := test.format.DecodeResponse([]byte(test.body))
		var failed *provider.ResponseError
		require.ErrorAs(t, err, &failed, test.body)
		require.Equal(t, provider.ResponseError{Format: test.format.String(), Code: test.code, Message: "secret"}, *failed)
		require.NotContains(t, err.Error(), "secret")
		require.Equal(t, test.body, result.Raw)
		require.Empty(t, result.Output)
	}
}

// What is repaired for a server that is stricter than the API that it offers, and
// encoded for that API, is accepted by the server.
func TestRepairForStricterServers(t *testing.T) {
	var strict []transcript.Profile
	formats := map[transcript.Profile]*provider.Format{}
	for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		rules := format.Profile().Rules()
		rules.Name = "strict " + rules.Name
		rules.IDs = transcript.Labels{Chars: "a-zA-Z0-9", MinBytes: 9, MaxBytes: 9}
		rules.RequireIDs, rules.AdjacentResults, rules.SystemFirst, rules.UserFirst, rules.UserLast = true, true, true, true, true
		rules.AssistantAfterResults = true
		rules.Names = transcript.Labels{Chars: "a-z0-9_", First: "a-z", MaxBytes: 32}
		profile, err := transcript.NewProfile(rules)
		require.NoError(t, err)
		strict, formats[profile] = append(strict, profile), format
	}
	histories.Law[transcript.Profile]{
		Cases: strict, Parts: true,
		History: func(rng *rand.Rand, _ transcript.Profile) []state.Message {
			return histories.Mutate(rng, histories.Valid(rng, histories.Formats[rng.IntN(len(histories.Formats))]))
		},
		Obeys: func(p transcript.Profile, msgs []state.Message) error {
			repaired, _ := transcript.Repair(msgs, p, transcript.Policy{AnswerCalls: true})
			body, _, err := formats[p].EncodeRequest(provider.Request{Messages: repaired})
			if err != nil {
				return err
			}
			sent, err := formats[p].DecodeRequest(body)
			if err != nil {
				return err
			}
			if findings := besidesNoMessages(transcript.Check(sent.Messages, p)); len(findings) > 0 {
				return fmt.Errorf("%v\n%s", findings, body)
			}
			return nil
		},
	}.Hold(t)
}

// besidesNoMessages returns the findings of a conversation that is sent if it has
// messages.
func besidesNoMessages(findings []transcript.Finding) []transcript.Finding {
	return slices.DeleteFunc(findings, func(f transcript.Finding) bool { return f.Rule == "no-messages" })
}
