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
	"iter"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// The names of the built-in formats, and of the members.
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

// Container is the member of what a message keeps for Anthropic that holds the
// container in which the provider runs code, as the answer that ends with the
// message has named it.
const Container = "container"

var builtIn = [...]string{OpenAI, OpenAIResponses, Anthropic, Gemini}

// foreign begins the members of all other formats. It tells them from the
// members of programs without a register: a message means the same in a program
// that does not know the format.
const foreign = "format:"

// Mark returns the name of the member that messages have for the format of a
// name, "" for no name.
func Mark(name string) string {
	if name == "" || slices.Contains(builtIn[:], name) {
		return name
	}
	return ForeignMark(name)
}

// ForeignMark returns the mark of a format that is made outside of this module,
// also if it has the name of a built-in one.
func ForeignMark(name string) string { return foreign + strings.ToValidUTF8(name, "\ufffd") }

// Marks yields the formats for which a message keeps something, with that.
func Marks(m state.Message) iter.Seq2[string, state.JSON] {
	return func(yield func(string, state.JSON) bool) {
		for k := 0; ; k++ {
			name, value, ok := inside.ExtraMember(m, k)
			if !ok || IsFormat(name) && !yield(name, state.JSON(value)) {
				return
			}
		}
	}
}

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

// IsHandmade reports whether the message came from no format: a program made
// it, and its parts may be in the words of any format.
func IsHandmade(m state.Message) bool {
	for range Marks(m) {
		return false
	}
	return true
}

// IsForeign reports whether a member is what a message keeps for a format that is
// made outside of this module.
func IsForeign(name string) bool { return strings.HasPrefix(name, foreign) }

// IsFormat reports whether a member is what a message keeps for a format.
func IsFormat(name string) bool {
	return slices.Contains(builtIn[:], name) || IsForeign(name)
}

// Joined reports whether the message says that it belongs to the entry of the
// message before it. said is false for a message that does not say: then the
// format for which it is encoded decides.
func Joined(m state.Message) (joined, said bool) {
	for _, held := range Marks(m) {
		switch held { // what most messages keep
		case "{}":
			continue
		case `{"joined":true}`:
			return true, true
		case `{"joined":false}`:
			return false, true
		}
		members, _ := jsontext.Members([]byte(held)) // none if it is not an object
		switch string(members.Get("joined")) {
		case "true":
			return true, true
		case "false":
			return false, true
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

// IsSystem reports whether a message is a system prompt, or a part of one.
func IsSystem(m state.Message) bool {
	_, ok := m.(state.TextMessage)
	return ok && (m.Role() == "system" || m.Role() == "developer")
}

// StopReason returns why the model stopped after a message of any type, "" if
// the message does not say.
func StopReason(m state.Message) string {
	if m, ok := m.(interface{ StopReason() string }); ok {
		return m.StopReason()
	}
	reason, _ := m.Extra("stop_reason")
	return reason.Text()
}

// ItemType returns the format and the type of the entry that an unknown message
// holds: openai_responses and reasoning for the type
// "openai_responses.reasoning". Both are empty for a message that package
// provider does not make.
func ItemType(m state.Message) (format, typ string) {
	if m, ok := m.(state.UnknownMessage); ok {
		for _, format := range builtIn {
			if typ, ok := strings.CutPrefix(m.Type(), format+"."); ok {
				return format, typ
			}
		}
		// The name of a foreign format may contain a dot, and its type cannot.
		if dot := strings.LastIndexByte(m.Type(), '.'); dot >= 0 && IsForeign(m.Type()) {
			return m.Type()[:dot], m.Type()[dot+1:]
		}
	}
	return "", ""
}

// NoResult is the text of the errors that answer calls without a result in place
// of their tools.
const NoResult = "There is no result: the call may have been made."

// WithMember returns the message with a member set to value, in its place if
// the message has the member.
func WithMember(m state.Message, name string, value []byte) (state.Message, error) {
	members, err := jsontext.Members([]byte(m.Raw()))
	if err != nil {
		return nil, err
	}
	return state.DecodeMessage(members.With(name, value).JSON())
}

// The tags around what a model is told behind the conversation, and which is no
// part of it.
const (
	contextBegin = "<context>\n"
	contextEnd   = "</context>"
)

// TagContext returns a text as it stands behind a conversation.
func TagContext(text string) string {
	return contextBegin + strings.TrimSuffix(text, "\n") + "\n" + contextEnd
}

// IsContext reports whether a message has nothing but what stands behind a
// conversation.
func IsContext(m state.Message) bool {
	text, ok := m.(state.TextMessage)
	if !ok || m.Role() != "user" {
		return false
	}
	said := text.Text()
	return strings.HasPrefix(said, contextBegin) && strings.HasSuffix(said, contextEnd)
}
