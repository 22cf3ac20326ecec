package provider_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// A request whose conversation has been repaired calls its tools by the names
// that it offers, whichever name the provider refuses.
func TestToolsAndCallsHaveTheSameNames(t *testing.T) {
	choices := map[*provider.Format]string{
		provider.OpenAI:          `{"tool_choice":{"type":"function","function":{"name":"NAME"}}}`,
		provider.OpenAIResponses: `{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"NAME"},{"type":"web_search"}]}}`,
		provider.Anthropic:       `{"max_tokens":1.0,"tool_choice":{"type":"tool","name":"NAME"}}`,
		provider.Gemini:          `{"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["NAME","other"]}}}`,
	}
	for _, name := range []string{"mail/send", strings.Repeat("long", 40), "ä", "send"} {
		for format, choice := range choices {
			call := state.ToolCall{ID: "1", Name: name, Input: `{}`}
			given := provider.Request{
				Messages: []state.Message{state.UserText("go"), state.ToolCalls(call), state.ToolResult(call, `"done"`)},
				Tools:    []provider.Tool{{Name: name, Schema: `{"type":"object"}`}, {Name: "other", Schema: `{"type":"object"}`}},
				Settings: state.JSON(strings.ReplaceAll(choice, "NAME", name)),
			}
			request, names := given.RenameTools(format.Profile())
			require.Equal(t, name, given.Tools[0].Name) // not changed
			request.Messages, _ = transcript.Repair(request.Messages, format.Profile(), transcript.Policy{})
			body, omitted, err := format.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)

			sent, err := format.DecodeRequest(body)
			require.NoError(t, err)
			accepted := format.Profile().ToolName(name)
			require.Equal(t, accepted, format.Profile().ToolName(accepted))
			require.Equal(t, accepted, sent.Tools[0].Name)
			require.Equal(t, "other", sent.Tools[1].Name)
			require.Equal(t, accepted, sent.Messages[1].(state.ToolCallMessage).Calls()[0].Name)
			require.JSONEq(t, strings.ReplaceAll(choice, "NAME", accepted), string(sent.Settings))
			if name == "send" {
				require.Empty(t, names)
			}

			restored := names.Restore(sent.Messages)
			require.Equal(t, name, restored[1].(state.ToolCallMessage).Calls()[0].Name)
			require.Equal(t, sent.Messages[0], restored[0])
			again, _ := transcript.Repair(restored, format.Profile(), transcript.Policy{})
			require.Equal(t, sent.Messages[1], again[1])

			// A body in the words of the format gets the names in its own place.
			sent.Tools[0].Name = name
			own, _ := sent.RenameTools(format.Profile())
			second, _, err := format.EncodeRequest(own)
			require.NoError(t, err)
			require.JSONEq(t, string(body), string(second))
		}
	}
}

// Tools that only the provider has keep their names.
func TestRenameToolsLeavesToolsOfTheProvider(t *testing.T) {
	const body = `{"tools":[{"type":"search/1","name":"web/search"}],"messages":[]}`
	request, err := provider.Anthropic.DecodeRequest([]byte(body))
	require.NoError(t, err)
	same, names := request.RenameTools(transcript.Anthropic)
	require.Empty(t, names)
	require.Equal(t, request, same)
}
