package lcstate

import (
	"cmp"
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
				made[i] = llms.ToolCall{
					ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: cmp.Or(c.Input.Text(), "{}")},
				}
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
// words of any provider, which package provider reads.
func parts(m state.TextMessage, format string) []llms.ContentPart {
	if m.Role() != "user" || !strings.HasPrefix(string(m.Content()), "[") {
		return []llms.ContentPart{llms.TextContent{Text: m.Text()}}
	}
	detail := details(m)
	out, _, _ := provider.NewMessageFormat("contents", provider.MessageCodec[llms.ContentPart]{
		Encode: func(e provider.Entry) (out []llms.ContentPart, err error) {
			for _, p := range e.Parts {
				part := contentPart(p, format)
				if image, ok := part.(llms.ImageURLContent); ok {
					image.Detail = detail[image.URL]
					part = image
				}
				out = append(out, part)
			}
			return out, nil
		},
	}).Encode(m) // a message of a state does not fail
	return out
}

// details returns how closely the model is to look at the pictures of a message,
// by their URLs, where OpenAI's APIs say it. A [provider.Part] does not.
func details(m state.TextMessage) map[string]string {
	var parts []struct {
		Image  state.JSON `json:"image_url"`
		Detail string     // of an input_image, whose image_url is a text
	}
	if m.Content().Decode(&parts) != nil {
		return nil
	}
	found := map[string]string{}
	for _, p := range parts {
		image := struct{ URL, Detail string }{p.Image.Text(), p.Detail}
		if _ = p.Image.Decode(&image); image.Detail != "" {
			found[image.URL] = image.Detail
		}
	}
	return found
}

// kinds are the names of the kinds of media in Chat Completions.
var kinds = map[provider.PartKind]string{
	provider.PartImage: "image_url", provider.PartAudio: "input_audio", provider.PartFile: "file",
}

// contentPart returns a part of the user's message, or a text that stands for what
// the client does not take.
func contentPart(p provider.Part, format string) llms.ContentPart {
	data, err := base64.StdEncoding.DecodeString(p.Data)
	switch image := p.Kind == provider.PartImage; {
	case p.Kind == provider.PartText:
		return llms.TextContent{Text: p.Text}
	case image && (format == "openai" || p.Data == ""):
		return llms.ImageURLContent{URL: p.DataURL()}
	case p.Data != "" && err == nil && (image || format == "gemini"):
		return llms.BinaryContent{MIMEType: p.MIME, Data: data}
	}
	return llms.TextContent{Text: "[" + kinds[p.Kind] + " left out]"}
}
