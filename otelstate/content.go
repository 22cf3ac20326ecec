package otelstate

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// maxContent is about the maximum length of an attribute with content, in
// bytes.
const maxContent = 8 << 10

// maxName is the maximum length of an id or a name that a provider has made.
const maxName = 256

// A chatMessage is a message in the form of the conventions.
type chatMessage struct {
	Role   string     `json:"role"`
	Parts  []chatPart `json:"parts"`
	Finish string     `json:"finish_reason,omitempty"`
}

type chatPart struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// inputMessages returns what the model got as the JSON of the conventions. If
// that is too much, the oldest messages are left out.
func inputMessages(r *state.InferenceResult, redact func(string) string) string {
	list := slices.Concat(r.Prompt, r.History)
	if r.Input != "" {
		list = append(list, state.UserText(r.Input))
	}
	slices.Reverse(list)
	messages := chatMessages(list, redact)
	slices.Reverse(messages)
	return encode(messages)
}

// outputMessages returns what the model has answered.
func outputMessages(r *state.InferenceResult, finish string, redact func(string) string) string {
	messages := chatMessages(r.Output, redact)
	if n := len(messages); n > 0 {
		messages[n-1].Finish = finish
	}
	return encode(messages)
}

func encode(messages []chatMessage) string {
	if len(messages) == 0 {
		return ""
	}
	data, _ := jsontext.Marshal(messages) // strings only
	return string(data)
}

// chatMessages returns as many messages, from the first, as an attribute may
// have.
func chatMessages(list []state.Message, redact func(string) string) []chatMessage {
	var messages []chatMessage
	room := maxContent
	take := func(text string) string {
		text = fault.ClipTo(redact(text), max(room, 0)) // half a secret is not found, a whole one is masked
		room -= len(text)
		return text
	}
	for _, m := range list {
		if room <= 0 {
			break
		}
		out := chatMessage{Role: take(m.Role())}
		room -= 64 // what a message takes without its texts
		switch m := m.(type) {
		case state.TextMessage:
			out.Parts = append(out.Parts, chatPart{Type: "text", Content: take(m.Text())})
		case state.ToolCallMessage:
			for _, call := range m.Calls() {
				if room <= 0 {
					break
				}
				room -= 64
				out.Parts = append(out.Parts, chatPart{
					Type: "tool_call", ID: take(call.ID), Name: take(call.Name), Arguments: take(string(call.Input)),
				})
			}
		case state.ToolResultMessage:
			out.Role = "tool"
			out.Parts = append(out.Parts, chatPart{Type: "tool_call_response", ID: take(m.Call().ID), Response: take(m.Text())})
		default:
			out.Parts = append(out.Parts, chatPart{Type: other})
		}
		messages = append(messages, out)
	}
	return messages
}
