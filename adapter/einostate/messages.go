package einostate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Messages returns what messages of eino say as messages of a state. Nothing is
// lost: FromMessages gives them back, with reasoning, metadata and extras.
// Images, sounds and files are parts that every provider's format reads. An
// error names the message, and wraps [state.ErrWrongType] if it cannot be read.
func Messages(msgs ...*schema.Message) ([]state.Message, error) {
	if len(msgs) == 1 {
		if own, ok := answerMessages(msgs[0]); ok {
			return own, nil
		}
	}
	entries := make([]chatEntry, len(msgs))
	for i, m := range msgs {
		if m == nil {
			return nil, fmt.Errorf("einostate: message %d: %w", i, state.ErrInvalid)
		}
		var err error
		if entries[i], err = newChatEntry(m); err != nil {
			return nil, fmt.Errorf("einostate: message %d: %w", i, err)
		}
	}
	body, err := json.Marshal(map[string]any{"messages": entries})
	if err != nil {
		return nil, fmt.Errorf("einostate: messages: %w", err)
	}
	request, err := provider.OpenAI.DecodeRequest(body)
	if err != nil {
		return nil, fmt.Errorf("einostate: messages: %w", err)
	}
	return request.Messages, nil
}

// FromMessages returns messages of a state as messages of eino. A text and the
// calls behind it are one message, and results have the names of their tools. Of
// messages that came from elsewhere, what
// Chat Completions cannot express is left out, as
// [provider.Format.EncodeRequest] does it.
func FromMessages(msgs ...state.Message) ([]*schema.Message, error) {
	body, _, err := provider.OpenAI.EncodeRequest(provider.Request{Messages: msgs})
	if err != nil {
		return nil, fmt.Errorf("einostate: messages: %w", err)
	}
	var request struct {
		Messages []chatEntry `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("einostate: messages: %w", err)
	}
	names := map[string]string{}
	for _, m := range msgs {
		if result, ok := m.(state.ToolResultMessage); ok {
			names[result.Call().ID] = result.Call().Name
		}
	}
	own := make([]*schema.Message, len(request.Messages))
	for i, e := range request.Messages {
		if own[i], err = e.message(); err != nil {
			return nil, fmt.Errorf("einostate: message %d: %w", i, err)
		}
		if own[i].Role == schema.Tool && own[i].ToolName == "" {
			own[i].ToolName = names[own[i].ToolCallID]
		}
	}
	return own, nil
}

// Shape returns the [transcript.Shape] of a message, with which package
// transcript groups, trims and mirrors messages of eino.
func Shape(m *schema.Message) transcript.Shape {
	shape := transcript.Shape{Role: string(m.Role)}
	for _, c := range m.ToolCalls {
		shape.Calls = append(shape.Calls, callOf(c))
	}
	if m.Role == schema.Tool {
		shape.Answers = []state.ToolCall{{ID: m.ToolCallID, Name: m.ToolName}}
	}
	return shape
}

func callOf(c schema.ToolCall) state.ToolCall {
	return state.ToolCall{ID: c.ID, Name: c.Function.Name, Input: state.JSON(c.Function.Arguments)}
}

// plainMessage is a message without methods.
type plainMessage schema.Message

// chatEntry is a message as an entry of Chat Completions. Members that Chat
// Completions does not have are kept in the messages of the state as they are.
type chatEntry struct {
	plainMessage
	Content json.RawMessage `json:"content"`
	// Input and Output hide the members of the message, whose parts are the
	// content. They have what a message with parts and a text has besides.
	Input  []schema.MessageInputPart  `json:"user_input_multi_content,omitempty"`
	Output []schema.MessageOutputPart `json:"assistant_output_multi_content,omitempty"`
}

func newChatEntry(m *schema.Message) (e chatEntry, err error) {
	e.plainMessage = plainMessage(*m)
	switch {
	case m.Content != "" || len(m.UserInputMultiContent) > 0 && len(m.AssistantGenMultiContent) > 0:
		e.Content, err = json.Marshal(m.Content)
		e.Input, e.Output = m.UserInputMultiContent, m.AssistantGenMultiContent
	case len(m.UserInputMultiContent) > 0:
		e.Content, err = convertParts[json.RawMessage](m.UserInputMultiContent, (*part).chat)
	case len(m.AssistantGenMultiContent) > 0:
		e.Content, err = convertParts[json.RawMessage](m.AssistantGenMultiContent, (*part).chat)
	case len(m.ToolCalls) > 0:
		e.Content = json.RawMessage("null")
	default:
		e.Content = json.RawMessage(`""`)
	}
	return e, err
}

func (e *chatEntry) message() (*schema.Message, error) {
	m := schema.Message(e.plainMessage)
	m.UserInputMultiContent, m.AssistantGenMultiContent = e.Input, e.Output
	if m.Role == "developer" {
		m.Role = schema.System
	}
	if !strings.HasPrefix(string(e.Content), "[") {
		return &m, json.Unmarshal(e.Content, &m.Content)
	}
	var err error
	if m.Role == schema.Assistant {
		m.AssistantGenMultiContent, err = convertParts[[]schema.MessageOutputPart](e.Content, (*part).eino)
	} else {
		m.UserInputMultiContent, err = convertParts[[]schema.MessageInputPart](e.Content, (*part).eino)
	}
	return &m, err
}
