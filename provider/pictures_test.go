package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Pictures in results go behind all results of the turn, where Chat Completions has no
// other place for them, and each says of which call it is.
func TestPicturesInResults(t *testing.T) {
	calls := []state.ToolCall{{ID: "a", Name: "shot", Input: `{}`}, {ID: "b", Name: "shot", Input: `{}`}}
	one := state.ToolResult(calls[0], state.JSON(`[{"type":"text","text":"Done."},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]`))
	two := state.ToolResult(calls[1], state.JSON(`[{"type":"image","source":{"type":"url","url":"https://e.org/b.png"}}]`))
	msgs := []state.Message{
		state.UserText("Look."), state.ToolCalls(calls...), one, two, state.AssistantText("A map."),
		state.UserText("Again."), state.ToolCalls(state.ToolCall{ID: "c", Name: "shot", Input: `{}`}),
		state.ToolResult(state.ToolCall{ID: "c", Name: "shot"}, state.JSON(`[{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"text","text":"No picture."}]`)),
	}
	body, omitted, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: msgs, Pictures: true})
	require.NoError(t, err)
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(body, &request))
	roles := ""
	for _, m := range request.Messages {
		roles += m.Role[:1]
	}
	require.Equal(t, "uattuauat", roles)
	require.JSONEq(t, `[{"type":"text","text":"Done."},{"type":"text","text":"[the image stands behind the results]"}]`, string(request.Messages[2].Content))
	require.JSONEq(t, `[
		{"type":"text","text":"Image in the result of shot a:"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},
		{"type":"text","text":"Image in the result of shot b:"},
		{"type":"image_url","image_url":{"url":"https://e.org/b.png"}}
	]`, string(request.Messages[4].Content))
	for _, o := range omitted {
		require.Equal(t, 7, o.Message, "%v", o) // by the messages that were given
	}
	require.NotEmpty(t, omitted)
	back, err := provider.OpenAI.DecodeRequest(body)
	require.NoError(t, err)
	require.Empty(t, transcript.Check(back.Messages, provider.OpenAI.Profile()))
	for _, other := range []*provider.Format{provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		with, _, err := other.EncodeRequest(provider.Request{Messages: msgs, Pictures: true})
		require.NoError(t, err)
		without, _, err := other.EncodeRequest(provider.Request{Messages: msgs})
		require.NoError(t, err)
		require.Equal(t, string(without), string(with), "%v has a place for them", other)
	}
	again, _, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: back.Messages, Pictures: true})
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(again), "what came from the format stays")
}

func TestModelsThatReadPictures(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-4o": true, "openai/gpt-4o-2024-08-06": true, "gpt-4.1-mini": true, "gpt-5": true, "o4-mini": true,
		"gpt-3.5-turbo": false, "o3-mini": false, "llama-3.3-70b": false, "": false,
	} {
		require.Equal(t, want, transcript.OpenAI.At("api.openai.com", model).Pictures, model)
	}
	set := transcript.OpenAI
	set.Pictures = true
	require.True(t, set.At("localhost", "llava").Pictures)
}
