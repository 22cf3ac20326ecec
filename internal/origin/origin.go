// Package origin reads what a message tells of the provider it came from.
//
// A message that package provider decoded has a member with the name of the
// provider's format. It holds whatever of the provider's JSON has no place in
// the message, so that the format gets all of it back and others see none of
// it. Two of the things it may say concern every reader: that the message
// was part of the same entry of the provider's conversation as the one before
// it, or was not.
package origin

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// The members, one for each format.
const (
	OpenAI          = "openai"
	OpenAIResponses = "openai_responses"
	Anthropic       = "anthropic"
	Gemini          = "gemini"
)

// Item is the member of an unknown message that holds an entry of the
// provider's as it came. The type of the message is the format, a dot and the
// entry's own type.
const Item = "item"

var formats = [...]string{OpenAI, OpenAIResponses, Anthropic, Gemini}

// Of returns what the message holds for a format, and false if it did not come
// from there.
func Of(m state.Message, format string) (jsontext.Object, bool) {
	held, ok := m.Extra(format)
	if !ok {
		return nil, false
	}
	members, err := jsontext.Members([]byte(held))
	return members, err == nil
}

// Joined reports whether the message says that it is of one entry with the
// message before it, and whether it says anything about that. If not, the
// format that it is encoded for decides.
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

// Joins reports whether a message belongs to the same entry of the provider's
// conversation as the one before it. It does if it says so; if it does not say,
// calls go with the text or the calls that the same role said just before. An
// assistant and others never have an entry in common.
func Joins(before, m state.Message) bool {
	if before == nil {
		return false
	}
	if joined, said := Joined(m); said {
		return joined && IsAssistants(before) == IsAssistants(m)
	}
	if _, ok := m.(state.ToolCallMessage); !ok || before.Role() != m.Role() {
		return false
	}
	return before.Type() == "text" || before.Type() == "tool_call"
}

// IsAssistants reports whether an assistant said it, or called.
func IsAssistants(m state.Message) bool {
	switch m.(type) {
	case state.ToolCallMessage:
		return true
	case state.ToolResultMessage:
		return false
	}
	return m.Role() == "assistant"
}

// Unknown splits the type of an unknown message: "openai_responses.reasoning"
// is an entry of type reasoning of the format openai_responses. Both are empty
// for types that package provider does not make.
func Unknown(m state.Message) (format, typ string) {
	if m, ok := m.(state.UnknownMessage); ok {
		for _, format := range formats {
			if typ, ok := strings.CutPrefix(m.Type(), format+"."); ok {
				return format, typ
			}
		}
	}
	return "", ""
}

// With returns a message like m with a member set to value, in its place if m has
// one. Everything else stays as it is.
func With(m state.Message, name string, value []byte) (state.Message, error) {
	members, err := jsontext.Members([]byte(m.Raw()))
	if err != nil {
		return nil, err
	}
	return state.DecodeMessage(jsontext.Object(members).With(name, value).JSON())
}
