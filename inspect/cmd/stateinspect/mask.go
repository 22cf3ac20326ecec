package main

import (
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// preview is how many bytes of a value are shown.
const preview = 1 << 10

// mask makes texts that came from the store fit to be shown.
type mask struct {
	blind   bool            // there is no schema, so that any value may be a secret
	secrets *state.Redactor // of all versions that are shown, the present one among them
}

// text returns what may be shown of a value. Secrets are masked before the text
// is shortened, so that no part of one is left at the end.
func (m *mask) text(s string) string {
	if m.blind {
		return "…"
	}
	return clip(inert(m.secrets.Redact(s)))
}

// quoted is text in quotes.
func (m *mask) quoted(s string) string {
	if m.blind {
		return "…"
	}
	return m.name(s)
}

// name is quoted for the names of fields and agents, which are shown without a
// schema, too.
func (m *mask) name(s string) string { return strconv.Quote(clip(m.secrets.Redact(s))) }

// inert returns a text without characters that control a terminal or that hide
// or reorder others: they become escapes.
func inert(s string) string {
	return string(fault.AppendVisible(nil, s))
}

func clip(s string) string { return fault.ClipTo(s, preview) }
