package lcstate

import (
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
)

// FromChatMessages returns messages of langchaingo as messages of a state. A
// message of the assistant that has a text and calls becomes two messages. An
// error names the place of a message of another type than those of package llms.
func FromChatMessages(msgs []llms.ChatMessage) ([]state.Message, error) {
	out := make([]state.Message, 0, len(msgs))
	for i, m := range msgs {
		switch m := m.(type) {
		case llms.HumanChatMessage:
			out = append(out, state.UserText(m.Content))
		case llms.SystemChatMessage:
			out = append(out, state.SystemText(m.Content))
		case llms.GenericChatMessage:
			out = append(out, textMessage{Role: m.Role, Content: m.Content, Name: m.Name}.message())
		case llms.AIChatMessage:
			calls := m.ToolCalls
			if len(calls) == 0 && m.FunctionCall != nil {
				calls = []llms.ToolCall{{FunctionCall: m.FunctionCall}}
			}
			out = appendSaid(out, m.Content, m.ReasoningContent, "stop", calls)
		case llms.ToolChatMessage:
			out = append(out, state.ToolResult(state.ToolCall{ID: m.ID}, state.JSONText(m.Content)))
		case llms.FunctionChatMessage:
			out = append(out, state.ToolResult(state.ToolCall{Name: m.Name}, state.JSONText(m.Content)))
		default:
			return nil, fmt.Errorf("lcstate: message %d is a %T", i, m)
		}
	}
	return out, nil
}

// ChatMessages returns messages as those of langchaingo, which have texts only:
// parts such as pictures, and messages of other types, are left out.
func ChatMessages(msgs []state.Message) []llms.ChatMessage {
	out := make([]llms.ChatMessage, 0, len(msgs))
	for i := 0; i < len(msgs); i++ {
		switch m := msgs[i].(type) {
		case state.TextMessage:
			name, _ := m.Extra("name")
			switch role := m.Role(); {
			case role == "assistant":
				reasoning, _ := m.Extra("reasoning_content")
				said := llms.AIChatMessage{Content: m.Text(), ReasoningContent: reasoning.Text()}
				if next := i + 1; next < len(msgs) && m.StopReason() == "" {
					if calls, ok := msgs[next].(state.ToolCallMessage); ok {
						said.FunctionCall, said.ToolCalls = functionOrTools(calls)
						i = next
					}
				}
				out = append(out, said)
			case role == "user" && name == "":
				out = append(out, llms.HumanChatMessage{Content: m.Text()})
			case role == "system" && name == "":
				out = append(out, llms.SystemChatMessage{Content: m.Text()})
			default:
				out = append(out, llms.GenericChatMessage{Role: role, Content: m.Text(), Name: name.Text()})
			}
		case state.ToolCallMessage:
			var said llms.AIChatMessage
			said.FunctionCall, said.ToolCalls = functionOrTools(m)
			out = append(out, said)
		case state.ToolResultMessage:
			if call := m.Call(); call.ID != "" {
				out = append(out, llms.ToolChatMessage{ID: call.ID, Content: m.Text()})
			} else {
				out = append(out, llms.FunctionChatMessage{Name: call.Name, Content: m.Text()})
			}
		}
	}
	return out
}

// functionOrTools returns the calls of a message. A single call without an id is
// what langchaingo calls a function call.
func functionOrTools(m state.ToolCallMessage) (*llms.FunctionCall, []llms.ToolCall) {
	var tools []llms.ToolCall
	for _, c := range m.Calls() {
		tools = append(tools, toolCall(c))
	}
	if len(tools) == 1 && tools[0].ID == "" {
		return tools[0].FunctionCall, nil
	}
	return nil, tools
}

// toolCall returns a call with arguments that are an object whenever the model
// has written one: clients of some providers decode them.
func toolCall(c state.ToolCall) llms.ToolCall {
	arguments := c.Input.Text()
	if arguments == "" {
		arguments = "{}"
	}
	return llms.ToolCall{ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: arguments}}
}

// appendSaid appends what a model said: a text, calls or both. A text in front of
// calls has no reason of a stop, and belongs to them.
func appendSaid(out []state.Message, content, reasoning, stop string, calls []llms.ToolCall) []state.Message {
	var made []state.ToolCall
	for _, c := range calls {
		if c.FunctionCall != nil {
			made = append(made, state.ToolCall{ID: c.ID, Name: c.FunctionCall.Name, Input: state.JSON(c.FunctionCall.Arguments)})
		}
	}
	if len(made) > 0 {
		stop = ""
	}
	if len(made) == 0 || content != "" || reasoning != "" {
		out = append(out, textMessage{Role: "assistant", Content: content, Reasoning: reasoning, Stop: stop}.message())
	}
	if len(made) > 0 {
		out = append(out, state.ToolCalls(made...))
	}
	return out
}

// textMessage has what a text of langchaingo says, in the words of a state.
type textMessage struct {
	Type      string `json:"type"`
	Role      string `json:"role"`
	Content   string `json:"content"`
	Name      string `json:"name,omitempty"`
	Reasoning string `json:"reasoning_content,omitempty"`
	Stop      string `json:"stop_reason,omitempty"`
}

func (t textMessage) message() state.Message {
	if t.Name == "" && t.Reasoning == "" && t.Stop == "" {
		return state.Text(t.Role, t.Content)
	}
	t.Type = "text"
	raw, _ := state.JSONOf(t)
	m, err := state.DecodeMessage([]byte(raw))
	if err != nil { // of more than 64 MiB
		return state.Text(t.Role, t.Content)
	}
	return m
}
