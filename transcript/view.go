package transcript

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// view is a message as rules look at it. What several of them ask is read once.
type view struct {
	message state.Message
	kind    messageKind
	role    string

	isAssistant bool              // see [origin.FromAssistant]
	isSystem    bool              // see [origin.IsSystem]
	isOwn       bool              // it came from the provider
	parts       []jsontext.Object // of a text that is no string
}

// messageKind says of which type a message is.
type messageKind uint8

const (
	kindItem messageKind = iota // an unknown message
	kindText
	kindCalls
	kindResult
)

// view returns a message as rules look at it.
func (r *rules) view(m state.Message) view {
	v := view{message: m, role: m.Role()}
	switch m := m.(type) {
	case state.TextMessage:
		v.kind, v.parts = kindText, partsOf(m)
	case state.ToolCallMessage:
		v.kind = kindCalls
	case state.ToolResultMessage:
		v.kind = kindResult
	}
	v.isAssistant = v.kind == kindCalls || v.kind != kindResult && v.role == "assistant"
	v.isSystem = v.kind == kindText && (v.role == "system" || v.role == "developer")
	kept, ok := m.Extra(r.format)
	v.isOwn = ok && jsontext.Kind([]byte(kept)) == "object"
	return v
}

// isSent reports whether the provider of a format is sent anything of the message. It
// is not sent the items and the reasoning of other providers.
func (v *view) isSent(format string) bool {
	switch m := v.message.(type) {
	case state.UnknownMessage:
		from, _ := origin.ItemType(m)
		return from == format
	case state.TextMessage:
		return !onlyReasoning(v.parts) || v.isOwn || origin.SaysIn(m, format)
	case state.ToolCallMessage:
		return len(sharedCalls(m)) > 0
	}
	return true
}

// keepsParts reports whether the provider is sent parts of the message in its own
// words as they are.
func (v *view) keepsParts() bool { return v.isOwn || origin.IsHandmade(v.message) }

// isReasoning reports whether the message contains only reasoning of the model.
func (v *view) isReasoning() bool {
	if v.kind == kindItem {
		return strings.HasSuffix(v.message.Type(), "reasoning")
	}
	return onlyReasoning(v.parts)
}

// content returns the content of a text.
func (v *view) content() state.JSON {
	m, _ := v.message.(state.TextMessage)
	return m.Content()
}

// isBlank reports whether a text has neither a text nor parts.
func (v *view) isBlank() bool {
	content := v.content()
	return isMissing(content) || content == "[]"
}

// isUserTurn reports whether the message is in the user's turn. Results are.
func (v *view) isUserTurn() bool { return !v.isAssistant && !v.isSystem }
