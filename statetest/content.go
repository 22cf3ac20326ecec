package statetest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
)

// content is what a handle reads of a State, as text. It stays valid outside of
// the bubble in which the State lives.
type content struct {
	names   []string            // of the fields that are set, then history
	lines   map[string][]string // of a list, one for each element
	secret  map[string]bool
	journal []string
}

const historyName = "history"

// readContent reads a State, without times.
func readContent(st *state.State) *content {
	c := &content{lines: map[string][]string{}, secret: map[string]bool{}}
	for _, info := range st.Fields() {
		c.secret[info.Name] = info.Secret
		if value, ok := st.KV().Get(info.Name); ok {
			c.names = append(c.names, info.Name)
			c.lines[info.Name] = valueLines(value)
		}
	}
	if st.History().Len() > 0 {
		c.names = append(c.names, historyName)
		for _, r := range st.History().All() {
			r.StartedAt, r.CreatedAt = time.Time{}, time.Time{}
			c.lines[historyName] = append(c.lines[historyName], jsonLine(r))
		}
	}
	c.journal = Journal(st, 0)
	return c
}

// valueLines returns a line for each element of a list, and else one.
func valueLines(value any) []string {
	line := jsonLine(value)
	var elements []json.RawMessage
	if json.Unmarshal([]byte(line), &elements) != nil || len(elements) == 0 {
		return []string{line}
	}
	lines := make([]string, len(elements))
	for i, element := range elements {
		lines[i] = string(element)
	}
	return lines
}

func jsonLine(value any) string {
	text, err := state.JSONOf(value)
	if err != nil {
		return fmt.Sprintf("%T", value) // a value of a field that is never stored
	}
	return string(text)
}

// diff returns how got differs from c in the fields that are not ignored, and ""
// if it does not. Secrets are masked.
func (c *content) diff(got *content, ignore []string, masks *secrets) string {
	names := slices.Clone(c.names)
	for _, name := range got.names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var b strings.Builder
	for _, name := range names {
		before, after := c.lines[name], got.lines[name]
		if slices.Contains(ignore, name) || slices.Equal(before, after) {
			continue
		}
		before, after = maskLines(masks, before), maskLines(masks, after)
		if c.secret[name] {
			before, after = coverLines(before), coverLines(after)
		}
		fmt.Fprintf(&b, "%s:\n%s", name, lineDiff(before, after))
	}
	return b.String()
}

func maskLines(masks *secrets, lines []string) []string {
	masked := make([]string, len(lines))
	for i, line := range lines {
		masked[i] = masks.Mask(line)
	}
	return masked
}

var maskedLine = regexp.MustCompile(`^"?(\[SECRET \d+\])"?$`)

// coverLines leaves of the masked value of a Secret field only the numbers of
// the secrets: what it holds beside them, such as booleans, is secret too.
func coverLines(lines []string) []string {
	covered := make([]string, len(lines))
	for i, line := range lines {
		covered[i] = "[SECRET]"
		if number := maskedLine.FindStringSubmatch(line); number != nil {
			covered[i] = number[1]
		}
	}
	return covered
}

// lineDiff returns what lies between the lines with which two lists begin and
// end alike: want with -, got with +.
func lineDiff(want, got []string) string {
	first := 0
	for first < len(want) && first < len(got) && want[first] == got[first] {
		first++
	}
	last := 0
	for last < min(len(want), len(got))-first && want[len(want)-1-last] == got[len(got)-1-last] {
		last++
	}
	var b strings.Builder
	for _, line := range want[max(0, first-2):first] {
		b.WriteString("    " + line + "\n")
	}
	for _, line := range want[first : len(want)-last] {
		b.WriteString("  - " + line + "\n")
	}
	for _, line := range got[first : len(got)-last] {
		b.WriteString("  + " + line + "\n")
	}
	if len(want) == len(got) && first == len(want) {
		b.WriteString("    (they differ only within secrets)\n")
	}
	return b.String()
}

func indentText(text string, by string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return by + strings.Join(lines, "\n"+by)
}
