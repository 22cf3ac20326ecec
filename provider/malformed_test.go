package provider_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

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
