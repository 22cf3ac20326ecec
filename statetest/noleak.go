package statetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// NoLeak fails the test if a text has a value that agent must not see: that of
// a Secret field or, unless agent is "", of a field that agent may not read.
// Each string, sequence of bytes, number and map key in such a value counts. It
// reports whether there is none. The rights of st do not count.
//
// A value is found as it is and in other case, escaped as in JSON, URLs, HTML
// and Go, also several times, in base64 and hex, in gzip and zlib, in UTF-16,
// as a list of bytes, spread over lines or the elements of a list, and in
// several of these. So are any 12 consecutive bytes of a value of 16 or more.
// A value of less than 6 bytes counts only as a whole token. Booleans and
// numbers of less than 4 digits are in any text: NoLeak logs which fields have
// them, and Interfere shows whether an agent can tell them.
//
// The values are those that st has now. To look for one that is replaced or
// deleted during a run, call NoLeak also with a Snapshot from before.
func NoLeak(t testing.TB, st *state.State, agent string, texts ...string) bool {
	t.Helper()
	if strings.Join(texts, "") == "" {
		t.Errorf("statetest: NoLeak has no text to search\n    %s", rerun(t))
		return false
	}
	values, unsearchable := hiddenValues(st, agent)
	if len(unsearchable) > 0 {
		t.Logf("statetest: NoLeak cannot look for the booleans and short numbers of %s; Interfere shows whether they can be told",
			strings.Join(unsearchable, ", "))
	}
	if len(values) == 0 {
		t.Errorf("statetest: NoLeak has no value to look for: %s\n    %s", noValues(agent, unsearchable), rerun(t))
		return false
	}
	leaves := make([]leaf, len(values))
	for i, v := range values {
		leaves[i] = v.leaf
	}
	finder := newFinder(leaves)
	ok := true
	for i, text := range texts {
		finds, complete := finder.find(text)
		if !complete {
			t.Errorf("statetest: text %d decodes to so much that NoLeak searched only a part of it", i+1)
			ok = false
		}
		for _, line := range leakLines(fmt.Sprintf("text %d", i+1), text, values, finds) {
			t.Errorf("statetest: %s\n    %s", line, rerun(t))
			ok = false
		}
	}
	return ok
}

// hiddenValue is a part of the value of a field.
type hiddenValue struct {
	leaf
	field string
	why   string // it must not be seen
}

// hiddenValues returns the values that agent must not see, and the fields with
// some that cannot be searched.
func hiddenValues(st *state.State, agent string) (values []hiddenValue, unsearchable []string) {
	seen := map[hiddenValue]bool{}
	internal.Hidden(st, agent, func(field string, secret bool, value any) {
		why := "a secret"
		if !secret {
			why = "which " + agent + " may not read"
		}
		leavesOf(value, func(l leaf, searchable bool) {
			v := hiddenValue{l, field, why}
			switch {
			case l.text == "" && searchable || seen[v]:
			case !searchable || !isSearchable(l):
				if !slices.Contains(unsearchable, field) {
					unsearchable = append(unsearchable, field)
				}
			default:
				seen[v] = true
				values = append(values, v)
			}
		})
	})
	return values, unsearchable
}

func noValues(agent string, unsearchable []string) string {
	switch {
	case len(unsearchable) > 0:
		return "see Interfere for " + strings.Join(unsearchable, ", ")
	case agent == "":
		return "no Secret field is set"
	}
	return "no Secret field is set, and none that " + agent + " may not read"
}

// leakLines returns a line for each field of which a text tells something.
func leakLines(name, text string, values []hiddenValue, finds []find) []string {
	first := map[string]find{} // of each field
	var fields []string
	for _, f := range finds {
		field := values[f.value].field
		before, found := first[field]
		if !found {
			fields = append(fields, field)
		}
		if !found || f.rank() > before.rank() {
			first[field] = f
		}
	}
	var lines []string
	for _, field := range fields {
		f := first[field]
		what := field
		if !f.whole {
			what = fmt.Sprintf("%d bytes of %s", f.bytes, field)
		}
		lines = append(lines, fmt.Sprintf("%s tells %s, %s, %s: %s at byte %d",
			name, what, values[f.value].why, f.how, excerpt(text, finds, f), f.from))
	}
	return lines
}

// excerptBytes is how much an excerpt shows on each side.
const excerptBytes = 24

// excerpt returns the text around a find, with all finds masked.
func excerpt(text string, finds []find, f find) string {
	var before, after []find
	middle := f
	for _, group := range grouped(finds) {
		switch {
		case group.to <= f.from:
			before = append(before, group)
		case group.from >= f.to:
			after = append(after, group)
		default:
			middle = group
		}
	}
	mask := func(find) string { return "[SECRET]" }
	head := replaceFinds(text[:middle.from], before, mask)
	for i := range after {
		after[i].from -= middle.to
		after[i].to -= middle.to
	}
	tail := replaceFinds(text[middle.to:], after, mask)
	return lastBytes(head) + "[SECRET]" + firstBytes(tail)
}

func lastBytes(text string) string {
	if len(text) <= excerptBytes {
		return visible(text)
	}
	from := len(text) - excerptBytes
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return "…" + visible(text[from:])
}

func firstBytes(text string) string {
	if len(text) <= excerptBytes {
		return visible(text)
	}
	to := excerptBytes
	for to > 0 && !utf8.RuneStart(text[to]) {
		to--
	}
	return visible(text[:to]) + "…"
}

// visible returns text on one line, without what a terminal does not show.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, text)
}
