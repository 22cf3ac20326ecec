package inspect

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/safetext"
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

// masker makes texts of the strings of one workspace. Every string that comes
// from the store goes through one: first secrets are masked, so that no half of
// one remains, then it is clipped, then escaped.
type masker struct {
	safetext.Mask
}

// newMasker returns a masker for what comes from some versions of a workspace.
// One of them must be the present one.
func newMasker(views ...*workspace.View) *masker {
	m := &masker{}
	for _, v := range views {
		m.Secrets = m.Secrets.Join(v.Redactor())
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
		return value{safetext.Hidden, len(s), false}
	}
	return m.show(s, previewBytes, false)
}

// lines returns an opened string, with its lines.
func (m *masker) lines(s string) value {
	if m.Blind && s != "" {
		return value{safetext.Hidden, len(s), false}
	}
	return m.show(s, openBytes, true)
}

// json returns the beginning of a JSON value, as one line.
func (m *masker) json(j state.JSON) value { return m.line(string(j)) }

// open returns a JSON value, indented.
func (m *masker) open(j state.JSON) value {
	if m.Blind && j != "" {
		return value{safetext.Hidden, len(j), false}
	}
	masked, clipped := m.Prefix(string(j), openBytes) // indented, it is no shorter
	indented, all := indent(masked, openBytes, openNodes)
	return newValue(indented, true, len(j), clipped || !all)
}

// whole returns a string for a download, masked and otherwise as it is.
func (m *masker) whole(s string) string {
	if m.Blind && s != "" {
		return safetext.Hidden
	}
	return m.Whole(s)
}

// show masks a string, then clips it, and then escapes what is not visible.
func (m *masker) show(s string, limit int, lines bool) value {
	masked, clipped := m.Prefix(s, limit)
	return newValue(masked, lines, len(s), clipped)
}

// newValue returns a value with a text that was masked and clipped.
func newValue(masked string, lines bool, bytes int, clipped bool) value {
	shown := safetext.Visible(masked, lines)
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
			short, _ := safetext.Clip(s, i)
			return short
		}
	}
	return s
}
