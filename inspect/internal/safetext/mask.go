// Package safetext makes texts that can be shown of what is in a workspace. It
// masks secrets first, so that no half of one remains, then clips, and then
// escapes the characters that do not show.
package safetext

import (
	"strings"

	"github.com/agentstate/state"
)

// Hidden stands for a value that may be a secret because there is no schema.
const Hidden = "…"

// Mask masks the strings of one workspace.
type Mask struct {
	// Secrets has those of all versions that are shown, the present one among
	// them.
	Secrets *state.Redactor
	// Blind is set if there is no schema: any value may be a secret.
	Blind bool
}

// Whole returns s with its secrets masked.
func (m *Mask) Whole(s string) string { return m.Secrets.Redact(s) }

// Line returns the beginning of a value as one line.
func (m *Mask) Line(s string, limit int) string {
	if m.Blind && s != "" {
		return Hidden
	}
	return m.Name(s, limit)
}

// Name is Line for a name, which is shown without a schema as well.
func (m *Mask) Name(s string, limit int) string {
	prefix, clipped := m.Prefix(s, limit)
	if clipped {
		return Visible(prefix, false) + "…"
	}
	return Visible(prefix, false)
}

// Prefix returns the first limit bytes of what Whole returns for s, and whether
// there are more. It looks at no more of s than that needs.
func (m *Mask) Prefix(s string, limit int) (prefix string, clipped bool) {
	if len(s) <= 4*limit {
		return Clip(m.Secrets.Redact(s), limit)
	}
	var b strings.Builder
	w := m.Secrets.Writer(&b)
	for len(s) > 0 && b.Len() <= limit {
		n := min(len(s), limit)
		w.Write([]byte(s[:n])) // which fails only if b does
		s = s[n:]
	}
	if b.Len() <= limit { // s has ended
		w.Close()
	}
	return Clip(b.String(), limit)
}
