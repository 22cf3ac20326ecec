package lcstate

import (
	"encoding/base64"

	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// roles are the roles of langchaingo by those of a state.
var roles = map[string]llms.ChatMessageType{
	"user": llms.ChatMessageTypeHuman, "assistant": llms.ChatMessageTypeAI, provider.RoleTool: llms.ChatMessageTypeTool,
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
	out, _, _ := provider.NewMessageFormat("langchaingo contents", provider.MessageCodec[llms.MessageContent]{
		OneResult: format != "gemini",
		Carries:   func(role string, p provider.Part) bool { return p.Kind == provider.PartText || role == "user" },
		Encode:    func(e provider.Entry) ([]llms.MessageContent, error) { return encodeContents(e, format) },
	}).Encode(msgs...) // messages of a state do not fail
	return append([]llms.MessageContent{}, out...)
}

func encodeContents(e provider.Entry, format string) (out []llms.MessageContent, err error) {
	role, ok := roles[e.Role]
	if !ok {
		role = llms.ChatMessageTypeGeneric
	}
	text := ""
	for i, p := range e.Parts {
		var part llms.ContentPart
		switch p.Kind {
		case provider.PartText:
			text += p.Text
			if next := i + 1; next < len(e.Parts) && e.Role != "user" && e.Parts[next].Kind == provider.PartText {
				text += "\n" // a client may read the first part only
				continue
			}
			part, text = llms.TextContent{Text: text}, ""
		case provider.PartCall:
			if part, err = toolCall(p); err != nil {
				return nil, err
			}
		case provider.PartResult:
			part = llms.ToolCallResponse{ToolCallID: p.ID, Name: p.Name, Content: p.ContentText()}
		default:
			part = medium(p, format)
		}
		if len(out) == 0 || format == "anthropic" && p.Kind == provider.PartCall {
			out = append(out, llms.MessageContent{Role: role})
		}
		last := &out[len(out)-1]
		last.Parts = append(last.Parts, part)
	}
	return out, nil
}

// kinds are the names of the kinds of media in Chat Completions.
var kinds = map[provider.PartKind]string{
	provider.PartImage: "image_url", provider.PartAudio: "input_audio", provider.PartFile: "file",
}

// medium returns a picture or a file of the user, or a text that stands for what
// the client does not take.
func medium(p provider.Part, format string) llms.ContentPart {
	data, err := base64.StdEncoding.DecodeString(p.Data)
	switch image := p.Kind == provider.PartImage; {
	case image && (format == "openai" || p.Data == ""):
		return llms.ImageURLContent{URL: p.DataURL()}
	case p.Data != "" && err == nil && (image || format == "gemini"):
		return llms.BinaryContent{MIMEType: p.MIME, Data: data}
	}
	return llms.TextContent{Text: "[" + kinds[p.Kind] + " left out]"}
}
