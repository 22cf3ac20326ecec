package einostate

import (
	"encoding/json"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
)

// answerMessages returns what provider.OpenAI makes of an answer of a model that
// has nothing but a text, calls and metadata, in a fifth of the time. It returns
// false for other messages.
func answerMessages(m *schema.Message) ([]state.Message, bool) {
	if m == nil || m.Role != schema.Assistant || len(m.MultiContent)+len(m.UserInputMultiContent)+len(m.AssistantGenMultiContent) > 0 ||
		m.ToolCallID != "" || m.ToolName != "" || m.Content == "" && len(m.ToolCalls) == 0 {
		return nil, false
	}
	var more []byte
	if m.Name != "" || m.ResponseMeta != nil || m.ReasoningContent != "" || len(m.Extra) > 0 {
		rest := struct {
			Name             string               `json:"name,omitempty"`
			ResponseMeta     *schema.ResponseMeta `json:"response_meta,omitempty"`
			ReasoningContent string               `json:"reasoning_content,omitempty"`
			Extra            map[string]any       `json:"extra,omitempty"`
		}{m.Name, m.ResponseMeta, m.ReasoningContent, m.Extra}
		var err error
		if more, err = json.Marshal(rest); err != nil {
			return nil, false
		}
	}
	own := make([]state.Message, 0, 2)
	if m.Content != "" {
		b := append(make([]byte, 0, 128+len(m.Content)+len(more)), `{"type":"text","role":"assistant","content":`...)
		b = append(b, state.JSONText(m.Content)...)
		if more != nil {
			b = append(append(append(b, `,"openai":{"more":`...), more...), '}')
			more = nil
		}
		text, err := state.DecodeMessage(append(b, '}'))
		if err != nil {
			return nil, false
		}
		own = append(own, text)
	}
	if len(m.ToolCalls) == 0 {
		return own, true
	}
	b := append(make([]byte, 0, 128+256*len(m.ToolCalls)+len(more)), `{"type":"tool_call","role":"assistant","tools":[`...)
	for i, c := range m.ToolCalls {
		if c.Index != nil || c.Type != "function" || c.Function.Name == "" || len(c.Extra) > 0 || !strings.HasPrefix(c.Function.Arguments, "{") {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"type":"tool","id":`...), state.JSONText(c.ID)...)
		b = append(append(b, `,"name":`...), state.JSONText(c.Function.Name)...)
		b = append(append(append(b, `,"input":`...), c.Function.Arguments...), '}')
	}
	b = append(b, `],"openai":{`...)
	if more != nil {
		b = append(append(b, `"more":`...), more...)
	}
	b = append(b, `}}`...)
	msg, err := state.DecodeMessage(b)
	if err != nil || len(msg.Raw()) != len(b) { // the arguments are not JSON, or have space that Raw leaves out
		return nil, false
	}
	return append(own, msg), true
}
