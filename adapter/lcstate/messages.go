package lcstate

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// Format is the format of langchaingo's messages of a chat, for FromChatMessages
// and ChatMessages. Format.Encode reports what these messages cannot say.
var Format = provider.NewMessageFormat("langchaingo", provider.MessageCodec[llms.ChatMessage]{
	Decode: decodeMessage, Encode: encodeMessage, OneResult: true, Names: true, Reasons: true,
	Carries: func(_ string, p provider.Part) bool { return p.Kind == provider.PartText },
})

// FromChatMessages returns messages of langchaingo as messages of a state. A
// message of the assistant that has a text and calls becomes two messages. An
// error names the place of a message of another type than those of package llms.
func FromChatMessages(msgs []llms.ChatMessage) ([]state.Message, error) {
	return Format.Decode(msgs...)
}

// ChatMessages returns messages as those of langchaingo, which have texts only:
// messages of other types are left out, and so are parts such as pictures.
func ChatMessages(msgs []state.Message) []llms.ChatMessage {
	own, _, _ := Format.Encode(msgs...) // messages of a state do not fail
	return append([]llms.ChatMessage{}, own...)
}

// modelAnswer is an answer of a model with the reason of its end.
type modelAnswer struct {
	llms.AIChatMessage
	stop string
}

// extra is what an entry, or a call, does not say of a message.
type extra struct {
	Kind         llms.ChatMessageType `json:"kind,omitempty"`          // if the entry looks like another one
	Type         *string              `json:"type,omitempty"`          // of a call
	FunctionCall *llms.FunctionCall   `json:"function_call,omitempty"` // beside ToolCalls
}

func decodeMessage(m llms.ChatMessage) (e provider.Entry, err error) {
	var more extra
	switch m := m.(type) {
	case llms.HumanChatMessage:
		e = textEntry("user", m.Content)
	case llms.SystemChatMessage:
		e = textEntry("system", m.Content)
	case llms.GenericChatMessage:
		e = textEntry(m.Role, m.Content)
		e.Name = m.Name
	case llms.ToolChatMessage:
		e = resultEntry(provider.Part{ID: m.ID}, m.Content)
	case llms.FunctionChatMessage:
		e = resultEntry(provider.Part{Name: m.Name}, m.Content)
	case llms.AIChatMessage:
		if len(m.ToolCalls) > 0 {
			more.FunctionCall = m.FunctionCall
		}
		if e, err = decodeAnswer(m); err != nil {
			return e, err
		}
	case modelAnswer:
		e, err = decodeAnswer(m.AIChatMessage)
		e.StopReason = m.stop
		return e, err
	default:
		return e, fmt.Errorf("want a message of package llms, got a %T", m)
	}
	if kindOf(e) != m.GetType() {
		more.Kind = m.GetType()
	}
	e.Extra = provider.ExtraOf(&more)
	return e, nil
}

func textEntry(role, text string) provider.Entry {
	return provider.Entry{Role: role, Parts: []provider.Part{{Kind: provider.PartText, Text: text}}}
}

func resultEntry(p provider.Part, content string) provider.Entry {
	p.Kind, p.Content = provider.PartResult, state.JSONText(content)
	return provider.Entry{Role: provider.RoleTool, Parts: []provider.Part{p}}
}

func decodeAnswer(m llms.AIChatMessage) (provider.Entry, error) {
	e := provider.Entry{Role: "assistant", Reasoning: m.ReasoningContent}
	calls := m.ToolCalls
	if len(calls) == 0 && m.FunctionCall != nil {
		calls = []llms.ToolCall{{FunctionCall: m.FunctionCall}}
	}
	if m.Content != "" || len(calls) == 0 || m.ReasoningContent != "" {
		e.Parts = append(e.Parts, provider.Part{Kind: provider.PartText, Text: m.Content})
	}
	for _, c := range calls {
		if c.FunctionCall == nil {
			return e, errors.New("want calls of functions, got a call without one")
		}
		p := provider.Part{
			Kind: provider.PartCall, ID: c.ID, Name: c.FunctionCall.Name, Input: provider.Arguments(c.FunctionCall.Arguments),
		}
		if len(m.ToolCalls) > 0 && (c.Type != "function" || isFunction(p, len(calls))) {
			p.Extra = provider.ExtraOf(&extra{Type: &c.Type})
		}
		e.Parts = append(e.Parts, p)
	}
	return e, nil
}

// isFunction reports whether a call is what langchaingo calls a function call: a
// single one without an id.
func isFunction(p provider.Part, calls int) bool {
	return calls == 1 && p.ID == "" && p.Extra.IsEmpty()
}

// kindOf returns the type of message for an entry.
func kindOf(e provider.Entry) llms.ChatMessageType {
	calls := false
	for _, p := range e.Parts {
		calls = calls || p.Kind == provider.PartCall
		switch {
		case p.Kind == provider.PartResult && p.ID != "":
			return llms.ChatMessageTypeTool
		case p.Kind == provider.PartResult:
			return llms.ChatMessageTypeFunction
		}
	}
	switch {
	case calls || e.Role == "assistant" && (e.Name == "" || e.Reasoning != ""):
		return llms.ChatMessageTypeAI
	case e.Name == "" && e.Role == "user":
		return llms.ChatMessageTypeHuman
	case e.Name == "" && e.Role == "system":
		return llms.ChatMessageTypeSystem
	}
	return llms.ChatMessageTypeGeneric
}

func encodeMessage(e provider.Entry) ([]llms.ChatMessage, error) {
	var more extra
	if err := e.Extra.Decode(&more); err != nil {
		return nil, err
	}
	var texts []string
	var result provider.Part
	var calls []provider.Part
	for _, p := range e.Parts {
		switch p.Kind {
		case provider.PartCall:
			calls = append(calls, p)
		case provider.PartResult:
			texts, result = append(texts, p.ContentText()), p
		default:
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	switch cmp.Or(more.Kind, kindOf(e)) {
	case llms.ChatMessageTypeTool:
		return []llms.ChatMessage{llms.ToolChatMessage{ID: result.ID, Content: text}}, nil
	case llms.ChatMessageTypeFunction:
		return []llms.ChatMessage{llms.FunctionChatMessage{Name: result.Name, Content: text}}, nil
	case llms.ChatMessageTypeHuman:
		return []llms.ChatMessage{llms.HumanChatMessage{Content: text}}, nil
	case llms.ChatMessageTypeSystem:
		return []llms.ChatMessage{llms.SystemChatMessage{Content: text}}, nil
	case llms.ChatMessageTypeGeneric:
		return []llms.ChatMessage{llms.GenericChatMessage{Role: e.Role, Content: text, Name: e.Name}}, nil
	}
	said := llms.AIChatMessage{Content: text, ReasoningContent: e.Reasoning, FunctionCall: more.FunctionCall}
	for _, p := range calls {
		call, err := toolCall(p)
		if err != nil {
			return nil, err
		}
		if isFunction(p, len(calls)) {
			said.FunctionCall = call.FunctionCall
			break
		}
		said.ToolCalls = append(said.ToolCalls, call)
	}
	return []llms.ChatMessage{said}, nil
}

func toolCall(p provider.Part) (llms.ToolCall, error) {
	call := llms.ToolCall{
		ID: p.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: p.Name, Arguments: p.Input.Text()},
	}
	var more extra
	err := p.Extra.Decode(&more)
	if more.Type != nil {
		call.Type = *more.Type
	}
	return call, err
}
