package origin

import (
	"strings"

	"github.com/agentstate/state"
)

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
