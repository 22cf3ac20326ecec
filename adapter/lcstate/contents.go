package lcstate

import (
	"encoding/base64"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// roles are the roles of langchaingo by those of a state.
var roles = map[string]llms.ChatMessageType{
	"user": llms.ChatMessageTypeHuman, "assistant": llms.ChatMessageTypeAI,
	"system": llms.ChatMessageTypeSystem, "developer": llms.ChatMessageTypeSystem,
}

// Contents returns messages as a prompt for the client of a provider. The
// profile is that of the provider, for which [transcript.Repair] has made the
// messages fit. It decides the form, because the clients of langchaingo read
// different parts of a content: that of Anthropic reads the first one only, that
// of Gemini wants all results in one content, and others take a text and calls
// together, but each result alone.
//
// Parts of the user's messages become texts, pictures and, for Gemini, other
// data. Messages of other types are left out.
func Contents(msgs []state.Message, p transcript.Profile) []llms.MessageContent {
	format := p.Rules().Format
	out := make([]llms.MessageContent, 0, len(msgs))
	add := func(role llms.ChatMessageType, join bool, parts ...llms.ContentPart) {
		if last := len(out) - 1; join && last >= 0 && out[last].Role == role {
			out[last].Parts = append(out[last].Parts, parts...)
			return
		}
		out = append(out, llms.MessageContent{Role: role, Parts: parts})
	}
	open := false // whether calls may join the text of the assistant
	for _, m := range msgs {
		text, isText := m.(state.TextMessage)
		switch m := m.(type) {
		case state.TextMessage:
			role, ok := roles[m.Role()]
			if !ok {
				role = llms.ChatMessageTypeGeneric
			}
			add(role, false, parts(m, format)...)
		case state.ToolCallMessage:
			calls := m.Calls()
			made := make([]llms.ContentPart, len(calls))
			for i, c := range calls {
				made[i] = toolCall(c)
			}
			if format != "anthropic" {
				add(llms.ChatMessageTypeAI, open, made...)
				break
			}
			for _, call := range made {
				add(llms.ChatMessageTypeAI, false, call)
			}
		case state.ToolResultMessage:
			call := m.Call()
			add(llms.ChatMessageTypeTool, format == "gemini",
				llms.ToolCallResponse{ToolCallID: call.ID, Name: call.Name, Content: m.Text()})
		}
		open = isText && text.Role() == "assistant" && text.StopReason() == ""
	}
	return out
}

// parts returns the parts of a text. Pictures and files of the user may be in the
// words of any provider, which package provider translates.
func parts(m state.TextMessage, format string) []llms.ContentPart {
	if m.Role() != "user" || !strings.HasPrefix(string(m.Content()), "[") {
		return []llms.ContentPart{llms.TextContent{Text: m.Text()}}
	}
	var request struct {
		Messages []struct {
			Content []struct {
				Type, Text string
				ImageURL   struct{ URL, Detail string }  `json:"image_url"`
				Audio      struct{ Data, Format string } `json:"input_audio"`
				File       struct {
					Data string `json:"file_data"`
				}
			}
		}
	}
	body, _, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: []state.Message{m}})
	if err == nil {
		err = state.JSON(body).Decode(&request)
	}
	if err != nil || len(request.Messages) != 1 {
		return []llms.ContentPart{llms.TextContent{Text: m.Text()}}
	}
	var out []llms.ContentPart
	for _, p := range request.Messages[0].Content {
		url := p.ImageURL.URL + p.File.Data
		if p.Audio.Data != "" {
			url = "data:audio/" + p.Audio.Format + ";base64," + p.Audio.Data
		}
		mime, data, isData := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		raw, err := base64.StdEncoding.DecodeString(data)
		switch {
		case p.Type == "text":
			out = append(out, llms.TextContent{Text: p.Text})
		case p.Type == "image_url" && (format == "openai" || !isData):
			out = append(out, llms.ImageURLContent{URL: p.ImageURL.URL, Detail: p.ImageURL.Detail})
		case isData && err == nil && (p.Type == "image_url" || format == "gemini"):
			out = append(out, llms.BinaryContent{MIMEType: mime, Data: raw})
		default:
			out = append(out, llms.TextContent{Text: "[" + p.Type + " left out]"})
		}
	}
	return out
}
