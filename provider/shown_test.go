package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// recordedWith returns a conversation with a result, as a State with a limit of 300
// bytes records it.
func recordedWith(t *testing.T, result state.Message) []state.Message {
	t.Helper()
	call := state.ToolCall{ID: "c1", Name: "read", Input: `{}`}
	st := state.New(state.MustSchema(state.Limits{ResultBytes: 300}))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Read."), state.ToolCalls(call), result}))
	return state.Messages.GetOr(st, nil)
}

// A large result is a text in each format, which names recall if it is offered.
func TestRequestsShowTheEndsOfLargeResults(t *testing.T) {
	call := state.ToolCall{ID: "c1", Name: "read", Input: `{}`}
	msgs := recordedWith(t, state.ToolResult(call, state.JSONText(strings.Repeat("0123456789", 100))))
	tools := []provider.Tool{{Name: "recall", Description: "Finds.", Schema: `{"type":"object"}`}}
	plain := strings.Repeat("0123456789", 12) + `\n[820 characters are left out here.%s]\n` + strings.Repeat("0123456789", 6)
	for format, want := range map[*provider.Format]string{
		provider.OpenAI: `{"messages":[{"role":"user","content":"Read."},
			{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}],"content":null},
			{"role":"tool","tool_call_id":"c1","content":"%s"}]%s}`,
		provider.OpenAIResponses: `{"input":[{"role":"user","content":"Read."},
			{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":"%s"}]%s}`,
		provider.Anthropic: `{"messages":[{"role":"user","content":"Read."},
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"%s"}]}]%s}`,
		provider.Gemini: `{"contents":[{"role":"user","parts":[{"text":"Read."}]},
			{"role":"model","parts":[{"functionCall":{"id":"c1","name":"read","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read","response":{"output":"%s"}}}]}]%s}`,
	} {
		t.Run(format.String(), func(t *testing.T) {
			for _, recall := range []bool{false, true} {
				request, text, more := provider.Request{Messages: msgs}, fmt.Sprintf(plain, ""), ""
				if recall {
					request.Tools, text = tools, fmt.Sprintf(plain, " The tool recall finds words in them.")
				}
				body, omitted, err := format.EncodeRequest(request)
				require.NoError(t, err)
				require.Empty(t, omitted, "what is left out is said in the request")
				if recall {
					more = offerOf(t, body)
				}
				require.JSONEq(t, fmt.Sprintf(want, text, more), string(body))
			}
			require.Equal(t, strings.Repeat("0123456789", 100), msgs[2].Text())
		})
	}
}

// offerOf returns the member of a body with its tools.
func offerOf(t *testing.T, body []byte) string {
	t.Helper()
	var members map[string]state.JSON
	require.NoError(t, state.JSON(body).Decode(&members))
	return `,"tools":` + string(members["tools"])
}

// Whatever a large result is, and wherever it came from, the body is that of the
// text that a program would have returned.
func TestLargeResultsOfAnyKindAreTexts(t *testing.T) {
	call := state.ToolCall{ID: "c1", Name: "read", Input: `{}`}
	long := strings.Repeat("0123456789", 100)
	image := `{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`
	results := map[string]state.Message{}
	for name, content := range map[string]string{
		"object": `{"rows":"` + long + `"}`, "list": `["` + long + `"]`,
		"parts": `[{"type":"text","text":"` + long + `"}]`, "image": `[` + image + `,{"type":"text","text":"` + long + `"}]`,
		"resource": `[{"type":"resource","resource":{"uri":"file:///a.txt","text":"` + long + `"}}]`,
	} {
		results[name] = state.ToolResult(call, state.JSON(content))
	}
	results["error"] = state.ToolError(call, long)
	for format, entry := range map[*provider.Format]string{
		provider.OpenAI:          `{"messages":[{"role":"tool","tool_call_id":"c1","content":"` + long + `"}]}`,
		provider.OpenAIResponses: `{"input":[{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"` + long + `"}]}]}`,
		provider.Anthropic:       `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"` + long + `","cache_control":{"type":"ephemeral"}}]}]}]}`,
		provider.Gemini:          `{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read","response":{"rows":"` + long + `"}}}]}]}`,
	} {
		request, err := format.DecodeRequest([]byte(entry))
		require.NoError(t, err)
		results["of "+format.String()] = request.Messages[0]
	}
	for name, result := range results {
		msgs := recordedWith(t, result)
		_, sized := msgs[2].Extra("shown")
		require.True(t, sized, name)
		shown := transcript.Shown(msgs, false)
		text := shown[2].(state.ToolResultMessage)
		plain := state.ToolResult(text.Call(), text.Content())
		if text.IsError() {
			plain = state.ToolError(text.Call(), text.Text())
		}
		require.LessOrEqual(t, len(text.Text()), 300, name)
		require.Equal(t, name == "image", strings.Contains(string(text.Raw()), "iVBOR"))
		for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
			body, _, err := format.EncodeRequest(provider.Request{Messages: msgs})
			require.NoError(t, err)
			want, _, err := format.EncodeRequest(provider.Request{Messages: []state.Message{msgs[0], msgs[1], plain}})
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(body), "%s to %s", name, format)
			require.Contains(t, string(body), "characters are left out here.")
			require.Equal(t, transcript.Check(msgs, format.Profile()), transcript.Check(shown, format.Profile()))
		}
	}
}
