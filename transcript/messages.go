package transcript

import (
	"fmt"
	"iter"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

func isResult(m state.Message) bool {
	_, ok := m.(state.ToolResultMessage)
	return ok
}

// isSystem reports whether m is a system prompt, or a part of one.
func isSystem(m state.Message) bool {
	_, ok := m.(state.TextMessage)
	return ok && (m.Role() == "system" || m.Role() == "developer")
}

// isUserTurn reports whether m is in the user's turn. Results are.
func isUserTurn(m state.Message) bool { return !origin.FromAssistant(m) && !isSystem(m) }

// isAssistantTurn reports whether both messages are in one turn of the
// assistant.
func isAssistantTurn(before, m state.Message) bool {
	return origin.FromAssistant(before) && origin.FromAssistant(m)
}

// isReasoning reports whether a message contains only reasoning of the model.
func isReasoning(m state.Message) bool {
	if m, ok := m.(state.UnknownMessage); ok {
		return strings.HasSuffix(m.Type(), "reasoning")
	}
	parts := textParts(m)
	for _, part := range parts {
		if !isReasoningPart(part) {
			return false
		}
	}
	return len(parts) > 0
}

// isMissing reports whether there is no content at all.
func isMissing(content state.JSON) bool { return content == "" || content == "null" }

// isBlank reports whether a text message has neither a text nor parts.
func isBlank(m state.TextMessage) bool { return isMissing(m.Content()) || m.Content() == "[]" }

// textParts returns the parts of a text message. There are none if its content
// is a string.
func textParts(m state.Message) []jsontext.Object {
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

func isTextPart(part jsontext.Object) bool { return part.String("type") == "text" }

func isUntypedPart(part jsontext.Object) bool { return part.String("type") == "" }

func isReasoningPart(part jsontext.Object) bool {
	switch part.String("type") {
	case "thinking", "redacted_thinking", "reasoning":
		return true
	}
	return part.Bool("thought")
}

// serverToolIDs returns the id of a call of the provider's own tools if part is
// such a call, or the id of the call that part is the result of.
func serverToolIDs(part jsontext.Object) (call, result string) {
	switch typ := part.String("type"); {
	case strings.HasSuffix(typ, "_tool_use"): // server_tool_use, mcp_tool_use
		return part.String("id"), ""
	case strings.HasSuffix(typ, "_tool_result"): // web_search_tool_result and others
		return "", part.String("tool_use_id")
	}
	return "", ""
}

// providerItem returns the entry that an unknown message of package provider
// holds.
func providerItem(m state.Message) jsontext.Object {
	item, _ := m.Extra(origin.Item)
	members, _ := jsontext.Members([]byte(item)) // none if it is not an object
	return members
}

// callTexts returns the JSON of each call of a message.
func callTexts(m state.ToolCallMessage) [][]byte {
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	calls, _ := jsontext.Elements(members.Get("tools"))
	return calls
}

// providerEntries yields the indexes of the messages of each entry of the
// provider's conversation. It uses one slice for all of them.
func providerEntries(msgs []state.Message) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var entry []int
		for i, m := range msgs {
			if !internal.IsMessage(m) {
				continue
			}
			if len(entry) > 0 && !origin.Joins(msgs[entry[len(entry)-1]], m) {
				if !yield(entry) {
					return
				}
				entry = entry[:0]
			}
			entry = append(entry, i)
		}
		if len(entry) > 0 {
			yield(entry)
		}
	}
}

// describeCall names a call in a Detail.
func describeCall(call state.ToolCall) string {
	return fmt.Sprintf("call %.60q of %.60q", call.ID, call.Name)
}
