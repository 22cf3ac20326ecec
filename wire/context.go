package wire

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// withContext returns messages with a text behind them. If the user has spoken
// last, it is the last part of what the user says: some servers refuse two
// messages of the user in a row. If the assistant has, it is a part of the last
// message of the user, so that the model goes on with its own words. Otherwise it
// is a message of the user.
func withContext(
	msgs []state.Message, text string, format *provider.Format, profile transcript.Profile,
) []state.Message {
	if i := contextPlace(msgs, profile); i < len(msgs) {
		if m, err := withPart(msgs[i], text, format); err == nil {
			msgs = slices.Clone(msgs)
			msgs[i] = m
			return msgs
		}
	}
	var added state.Message = state.UserText(text)
	if n := len(msgs); n > 0 && format == provider.Anthropic && msgs[n-1].Type() == "tool_result" {
		joined := []byte(`{"joined":true}`) // one entry has the results and the text
		if m, err := origin.WithMember(added, origin.Anthropic, joined); err == nil {
			added = m
		}
	}
	return append(slices.Clip(msgs), added)
}

// contextPlace returns the index of the message that the context becomes a part
// of, len(msgs) for a message of its own.
func contextPlace(msgs []state.Message, profile transcript.Profile) int {
	i := len(msgs) - 1
	if i < 0 || !isUserText(msgs[i]) && !wantsAssistant(msgs[i], profile) {
		return len(msgs)
	}
	for i >= 0 && !isUserText(msgs[i]) {
		i--
	}
	if i < 0 {
		return len(msgs)
	}
	return i
}

// wantsAssistant reports whether the assistant must speak after a message.
func wantsAssistant(m state.Message, profile transcript.Profile) bool {
	return origin.FromAssistant(m) || m.Type() == "tool_result" && profile.Rules().AssistantAfterResults
}

func isUserText(m state.Message) bool {
	_, ok := m.(state.TextMessage)
	return ok && m.Role() == "user"
}

// withPart returns a text with another one behind it. What stood there stays the
// same to the byte. Not every server with a format of OpenAI takes parts.
func withPart(m state.Message, text string, format *provider.Format) (state.Message, error) {
	content := []byte(m.(state.TextMessage).Content())
	part := jsontext.Object{}.WithString("type", "text").WithString("text", text)
	var parts [][]byte
	switch jsontext.Kind(content) {
	case "string":
		said := jsontext.Unquote(content)
		if format != provider.Anthropic && format != provider.Gemini {
			return origin.WithMember(m, "content", jsontext.AppendQuote(nil, said+"\n\n"+text))
		}
		parts = [][]byte{jsontext.Object{}.WithString("type", "text").WithString("text", said).JSON()}
	case "array":
		parts, _ = jsontext.Elements(content) // checked with the message
		if _, own := origin.Of(m, origin.OpenAIResponses); own && format == provider.OpenAIResponses {
			part = jsontext.Object{}.WithString("type", "input_text").WithString("text", text)
		}
	}
	return origin.WithMember(m, "content", jsontext.Array(append(slices.Clip(parts), part.JSON())))
}
