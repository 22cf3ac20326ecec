package view

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

const (
	// previewBytes and openBytes are the lengths of what a page shows of one
	// value, in a list and by itself.
	previewBytes = 1 << 10
	openBytes    = 64 << 10
	// openNodes is the number of JSON values that a page shows of one value.
	openNodes = 2000
	// secretValue stands for the value of a secret field.
	secretValue = "[SECRET]"
)

// text is a string that can be shown: secrets are masked, it is short, and
// characters that are not visible are escaped. Only a masker makes texts of what
// is in the store. Templates put them into <bdi>.
type text string

// value is what a page shows of a value.
type value struct {
	Text    text `json:"text"`
	Bytes   int  `json:"bytes"` // of the whole value
	Clipped bool `json:"clipped,omitempty"`
}

// hiddenValue stands for a value that may be a secret because there is no schema.
const hiddenValue = "…"

// masker makes texts of the strings of one workspace. Every string that comes
// from the store goes through one: first secrets are masked, so that no half of
// one remains, then it is clipped, then escaped.
type masker struct {
	// secrets has those of all versions that are shown, the present one among
	// them.
	secrets *state.Redactor
	// Blind is set if there is no schema: any value may be a secret.
	Blind bool
}

// newMasker returns a masker for what comes from some versions of a workspace.
// One of them must be the present one.
func newMasker(views ...*workspace.View) *masker {
	m := &masker{}
	for _, v := range views {
		m.secrets = m.secrets.Join(v.Redactor())
		m.Blind = m.Blind || isBlind(v)
	}
	return m
}

// openSchema is the schema of a Manager without Options.Schema.
var openSchema = state.New(nil).Schema()

// isBlind reports whether the Manager of a view has no schema.
func isBlind(v *workspace.View) bool { return v.State().Schema() == openSchema }

// name returns the name of a field, an agent or a setting, as one line.
func (m *masker) name(s string) text {
	v := m.show(s, previewBytes, false)
	return v.Text
}

// id returns an id or a cause that the program has chosen, as one line.
func (m *masker) id(s string) text { return m.line(s).Text }

// line returns a string that people or models have written, as one line.
func (m *masker) line(s string) value {
	if m.Blind && s != "" {
		return value{hiddenValue, len(s), false}
	}
	return m.show(s, previewBytes, false)
}

// lines returns an opened string, with its lines.
func (m *masker) lines(s string) value {
	if m.Blind && s != "" {
		return value{hiddenValue, len(s), false}
	}
	return m.show(s, openBytes, true)
}

// json returns the beginning of a JSON value, as one line.
func (m *masker) json(j state.JSON) value { return m.line(string(j)) }

// open returns a JSON value, indented.
func (m *masker) open(j state.JSON) value {
	if m.Blind && j != "" {
		return value{hiddenValue, len(j), false}
	}
	masked, clipped := m.prefix(string(j), openBytes) // indented, it is no shorter
	indented, all := indent(masked, openBytes, openNodes)
	return newValue(indented, true, len(j), clipped || !all)
}

// whole returns a string for a download, masked and otherwise as it is.
func (m *masker) whole(s string) string {
	if m.Blind && s != "" {
		return hiddenValue
	}
	return m.secrets.Redact(s)
}

// prefix returns the first limit bytes of what whole returns for s, and whether
// there are more. It looks at no more of s than that needs.
func (m *masker) prefix(s string, limit int) (prefix string, clipped bool) {
	if len(s) <= 4*limit {
		return clip(m.secrets.Redact(s), limit)
	}
	var b strings.Builder
	w := m.secrets.Writer(&b)
	for len(s) > 0 && b.Len() <= limit {
		n := min(len(s), limit)
		w.Write([]byte(s[:n])) // which fails only if b does
		s = s[n:]
	}
	if b.Len() <= limit { // s has ended
		w.Close()
	}
	return clip(b.String(), limit)
}

// show masks a string, then clips it, and then escapes what is not visible.
func (m *masker) show(s string, limit int, lines bool) value {
	masked, clipped := m.prefix(s, limit)
	return newValue(masked, lines, len(s), clipped)
}

// newValue returns a value with a text that was masked and clipped.
func newValue(masked string, lines bool, bytes int, clipped bool) value {
	shown := visible(masked, lines)
	if len(shown) > openBytes/4 { // markup is longer as HTML
		n := len(clipHTML(shown, openBytes+openBytes/4))
		shown, clipped = shown[:n], clipped || n < len(shown)
	}
	if clipped {
		shown += "…"
	}
	return value{text(shown), bytes, clipped}
}

// clipHTML returns the beginning of s whose HTML has at most limit bytes.
func clipHTML(s string, limit int) string {
	for i := range len(s) {
		switch s[i] {
		case '<', '>', '&', '"', '\'':
			limit -= len("&#34;")
		default:
			limit--
		}
		if limit < 0 {
			short, _ := clip(s, i)
			return short
		}
	}
	return s
}
