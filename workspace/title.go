package workspace

import (
	"context"
	"strings"

	"github.com/agentstate/state/internal/fault"
)

// maxTitle is the length of a title, in bytes.
const maxTitle = 200

// titleOf returns the title of a content after a change, or "" if that stays.
func (m *Manager) titleOf(ctx context.Context, c *liveContent, d contentDelta) string {
	if m.opts.Title == nil {
		return ""
	}
	redact := func(text string) string { return c.redactStored(c.Redact(text)) }
	var title string
	code := startCode("title", redact, func() error {
		title = m.opts.Title(d.state)
		return nil
	})
	<-code.done
	if code.err != nil {
		m.warnLater(ctx, c.user, "no title", code.err)
		return ""
	}
	return fault.Prefix(redact(strings.ToValidUTF8(title, "\uFFFD")), maxTitle)
}
