// Package origin reads what a message keeps of the provider's JSON that it came
// from.
//
// Package provider gives each message that it decodes a member with the name of
// the format. The member holds what of the provider's JSON has no place in the
// message. The same format gets all of it back, and other formats see none of
// it. One fact concerns every reader: whether the message was part of the same
// entry of the provider's conversation as the message before it.
package origin

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// The names of the formats, and of the members.
const (
	OpenAI          = "openai"
	OpenAIResponses = "openai_responses"
	Anthropic       = "anthropic"
	Gemini          = "gemini"
)

// Item is the member of an unknown message that holds an entry of the
// provider's conversation as it came. The type of the message is the format, a
// dot and the type of the entry.
const Item = "item"

var formats = [...]string{OpenAI, OpenAIResponses, Anthropic, Gemini}

// Of returns what the message keeps for a format. It returns false if the
// message did not come from the format.
func Of(m state.Message, format string) (jsontext.Object, bool) {
	held, ok := m.Extra(format)
	if !ok {
		return nil, false
	}
	members, err := jsontext.Members([]byte(held))
	return members, err == nil
}

// Joined reports whether the message says that it belongs to the entry of the
// message before it. said is false for a message that does not say: then the
// format for which it is encoded decides.
func Joined(m state.Message) (joined, said bool) {
	for _, format := range formats {
		if held, ok := Of(m, format); ok {
			switch string(held.Get("joined")) {
			case "true":
				return true, true
			case "false":
				return false, true
			}
		}
	}
	return false, false
}

// Joins reports whether a message belongs to the entry of the message before
// it. It does if it says so. Calls that do not say belong to the text or the
// calls of the same role before them. What an assistant and others say is never
// one entry.
func Joins(before, m state.Message) bool {
	if before == nil {
		return false
	}
	if joined, said := Joined(m); said {
		return joined && FromAssistant(before) == FromAssistant(m)
	}
	if _, ok := m.(state.ToolCallMessage); !ok || before.Role() != m.Role() {
		return false
	}
	return before.Type() == "text" || before.Type() == "tool_call"
}

// FromAssistant reports whether an assistant says the message, or calls tools
// in it.
func FromAssistant(m state.Message) bool {
	switch m.(type) {
	case state.ToolCallMessage:
		return true
	case state.ToolResultMessage:
		return false
	}
	return m.Role() == "assistant"
}

// ItemType returns the format and the type of the entry that an unknown message
// holds: openai_responses and reasoning for the type
// "openai_responses.reasoning". Both are empty for a message that package
// provider does not make.
func ItemType(m state.Message) (format, typ string) {
	if m, ok := m.(state.UnknownMessage); ok {
		for _, format := range formats {
			if typ, ok := strings.CutPrefix(m.Type(), format+"."); ok {
				return format, typ
			}
		}
	}
	return "", ""
}

// WithMember returns the message with a member set to value, in its place if
// the message has the member.
func WithMember(m state.Message, name string, value []byte) (state.Message, error) {
	members, err := jsontext.Members([]byte(m.Raw()))
	if err != nil {
		return nil, err
	}
	return state.DecodeMessage(members.With(name, value).JSON())
}
