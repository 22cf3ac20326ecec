package transcript

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// isMessage reports whether m is a message, not nil and not a zero value.
func isMessage(m state.Message) bool {
	switch m := m.(type) {
	case state.TextMessage:
		return m.Raw() != ""
	case state.ToolCallMessage:
		return m.Raw() != ""
	case state.ToolResultMessage:
		return m.Raw() != ""
	case state.UnknownMessage:
		return m.Raw() != ""
	}
	return false
}

// isResult reports whether it is a result.
func isResult(m state.Message) bool {
	_, ok := m.(state.ToolResultMessage)
	return ok
}

// isSystems reports whether the system said it.
func isSystems(m state.Message) bool {
	_, ok := m.(state.TextMessage)
	return ok && (m.Role() == "system" || m.Role() == "developer")
}

// partsOf returns the parts of a text message, none if its content is a string.
func partsOf(m state.Message) []jsontext.Object {
	text, ok := m.(state.TextMessage)
	if !ok {
		return nil
	}
	content := text.Content()
	if content == "" || content[0] != '[' {
		return nil
	}
	elements, _ := jsontext.Elements([]byte(content)) // checked when the message was made
	parts := make([]jsontext.Object, len(elements))
	for i, element := range elements {
		parts[i], _ = jsontext.Members(element)
	}
	return parts
}

// isReasoning reports whether a message consists of what the model thought and
// not said.
func isReasoning(m state.Message) bool {
	if m, ok := m.(state.UnknownMessage); ok {
		return strings.HasSuffix(m.Type(), "reasoning")
	}
	parts := partsOf(m)
	for _, part := range parts {
		if !isThought(part) {
			return false
		}
	}
	return len(parts) > 0
}

func isThought(part jsontext.Object) bool {
	switch part.String("type") {
	case "thinking", "redacted_thinking", "reasoning":
		return true
	}
	return string(part.Get("thought")) == "true"
}

// serverTool returns the id of a tool call that the provider itself executes, if
// the part is one, or the id that the part is the result of.
func serverTool(part jsontext.Object) (call, result string) {
	switch typ := part.String("type"); {
	case strings.HasSuffix(typ, "_tool_use"): // server_tool_use, mcp_tool_use
		return part.String("id"), ""
	case strings.HasSuffix(typ, "_tool_result"): // web_search_tool_result …
		return "", part.String("tool_use_id")
	}
	return "", ""
}

// itemOf returns the entry that an unknown message of package provider holds.
func itemOf(m state.Message) jsontext.Object {
	item, _ := m.Extra(origin.Item)
	members, _ := jsontext.Members([]byte(item)) // none if it is no object
	return members
}
