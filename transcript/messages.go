package transcript

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
)

func isResult(m state.Message) bool {
	_, ok := m.(state.ToolResultMessage)
	return ok
}

// isAssistantTurn reports whether both messages are in one turn of the
// assistant.
func isAssistantTurn(before, m state.Message) bool {
	return origin.FromAssistant(before) && origin.FromAssistant(m)
}

// areCalls reports whether both messages are calls.
func areCalls(before, m state.Message) bool {
	_, first := before.(state.ToolCallMessage)
	_, second := m.(state.ToolCallMessage)
	return first && second
}

// isReasoning reports whether a message contains only reasoning of the model.
func isReasoning(m state.Message) bool {
	if m, ok := m.(state.UnknownMessage); ok {
		return strings.HasSuffix(m.Type(), "reasoning")
	}
	return onlyReasoning(partsOf(m))
}

func onlyReasoning(parts []jsontext.Object) bool {
	for _, part := range parts {
		if !origin.IsReasoning(part) {
			return false
		}
	}
	return len(parts) > 0
}

// beginsWithReasoning reports whether the first part of a text is reasoning.
func beginsWithReasoning(parts []jsontext.Object) bool {
	return len(parts) > 0 && origin.IsReasoning(parts[0])
}

// endsWithServerTool reports whether the last part of a text is a call of the
// provider's own tools, or its result.
func endsWithServerTool(parts []jsontext.Object) bool {
	return len(parts) > 0 && isServerTool(parts[len(parts)-1])
}

// isMissing reports whether there is no content at all.
func isMissing(content state.JSON) bool { return content == "" || content == "null" }

// partsOf returns the parts of a text message. There are none if its content is a
// string.
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

func isTextPart(part jsontext.Object) bool { return part.String("type") == "text" }

func isImagePart(part jsontext.Object) bool { return part.String("type") == "image" }

func isUntypedPart(part jsontext.Object) bool { return part.String("type") == "" }

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

// sharedCalls returns the calls of a message, which must not be changed: a long
// conversation has many.
func sharedCalls(m state.ToolCallMessage) []state.ToolCall {
	return inside.SharedCalls(m)
}

// callTexts returns the JSON of each call of a message.
func callTexts(m state.ToolCallMessage) [][]byte {
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	calls, _ := jsontext.Elements(members.Get("tools"))
	return calls
}

// describeCall names a call in a Detail.
func describeCall(call state.ToolCall) string {
	return fmt.Sprintf("call %.60q of %.60q", call.ID, call.Name)
}

// sameContent reports whether a message is in one content of Gemini with the
// message before it. A message that came from Gemini says so itself. Otherwise
// results share a content with nothing but results, and the rest is as for
// other providers.
func sameContent(before, m state.Message) bool {
	if _, said := origin.Joined(m); said {
		if _, own := origin.Of(m, origin.Gemini); own {
			return origin.Joins(before, m)
		}
	}
	if isResult(m) || isResult(before) {
		return isResult(m) && isResult(before)
	}
	return origin.Joins(before, m)
}

// resultTitle says of which call a result is. A call that is known has its input.
func resultTitle(call state.ToolCall) string {
	name := call.Name
	if name == "" {
		name = "a tool"
	}
	if !isMissing(call.Input) && call.Input != "{}" {
		name += "(" + call.Input.Text() + ")"
	}
	return "Result of " + name + ":"
}

// withoutMore returns what is kept without one of the members of the provider's
// JSON.
func withoutMore(kept jsontext.Object, name string) jsontext.Object {
	more := kept.Object("more")
	if more.Get(name) == nil {
		return kept
	}
	return kept.With("more", more.Without(name).JSON())
}

// endsWithServerResult reports whether a text ends with the result of one of the
// provider's own tools.
func endsWithServerResult(parts []jsontext.Object) bool {
	if len(parts) == 0 {
		return false
	}
	_, result := serverToolIDs(parts[len(parts)-1])
	return result != ""
}

// isServerTool reports whether a part is a call of the provider's own tools, or
// its result.
func isServerTool(part jsontext.Object) bool {
	call, result := serverToolIDs(part)
	return call != "" || result != ""
}

// Withhold returns a conversation as a model may be sent it: a text stands for what its
// provider has refused, as package wire has found out. A [Window] does so by itself.
// The messages keep their places. For a page, ctx is that of no request: then a
// message that is not the same as before is one of which any provider is not shown
// all.
func Withhold(ctx context.Context, st *state.State, conversation []state.Message) []state.Message {
	request, _ := ctx.Value(runctx.RefusedKey{}).(runctx.Refused)
	withheld := slices.Concat(inside.Windows().GetOr(st, nil)[""].Withheld, request.Withheld)
	if len(withheld) == 0 {
		return conversation
	}
	ids := make(map[string]bool)
	for _, w := range withheld {
		provider, id, _ := strings.Cut(w, " ")
		if request.Provider == "" || provider == callkey.Derive(request.Provider) || strings.HasPrefix(id, origin.Words) {
			ids[id] = true
		}
	}
	return origin.Withhold(conversation, ids)
}

// ShowWithheld lets models be shown again what providers have refused.
func ShowWithheld(st *state.State) error {
	return inside.Windows().Update(st, func(windows map[string]internal.Window) (map[string]internal.Window, error) {
		if host, ok := windows[""]; ok {
			host.Withheld = nil
			windows[""] = host
		}
		return windows, nil
	})
}
