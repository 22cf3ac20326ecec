package state

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/excerpt"
	"github.com/agentstate/state/internal/jsontext"
)

// sizedMessages returns what is written to the conversation, with the sizes of its
// results. It does not change v.
func (h *handle) sizedMessages(v any) any {
	msgs, _ := v.([]Message)
	for i, m := range msgs {
		if sized := h.sized(m); sized != m {
			msgs = slices.Clone(msgs)
			msgs[i], v = sized, msgs
		}
	}
	return v
}

// sized returns a result as it is recorded: a large one says from now on how many
// bytes of it a model is shown. It is cut at no place within a secret, of which no
// redactor would find a half.
func (h *handle) sized(msg Message) Message {
	m, _ := msg.(ToolResultMessage)
	limit := h.schema.limits.ResultBytes
	if limit == 0 || m.size() <= limit || len(m.Text()) <= limit || m.hasExtra(excerpt.Member) {
		return msg
	}
	text, secrets := m.Text(), (&State{handle: *h}).hostRedactor()
	mask := func(text string) string { return secrets.Redact("\n" + text) } // which is no JSON
	masked, shown := mask(text), limit
	for ; shown > 0; shown -= 1 + limit/16 {
		head, tail := excerpt.Ends(text, shown)
		if strings.HasPrefix(masked, mask(text[:head])) && strings.HasSuffix(masked, mask(text[tail:])[1:]) {
			break
		}
	}
	members, _ := jsontext.Members([]byte(m.raw)) // checked when the message was made
	body, _ := newBody(members.With(excerpt.Member, strconv.AppendInt(nil, int64(max(shown, 0)), 10)).JSON())
	return ToolResultMessage{body}
}
