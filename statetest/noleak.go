package statetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// NoLeak fails the test if a text has a value that agent must not see: that of
// a Secret field or, unless agent is "", of a field that agent may not read.
// Each string, sequence of bytes, number and map key in such a value counts. It
// reports whether there is none. The rights of st do not count.
//
// A value is found as it is and in other case, escaped as in JSON, URLs, HTML
// and Go, in base64 and hex, in gzip and zlib, as a list of bytes, and in
// several of these. Of a value in three of them, about one of a hundred is
// missed. It is also found in UTF-16 and spread over lines or the elements of a
// list. So are any 12 consecutive bytes of a value of 16 or more. A value of
// less than 6 bytes counts only as a whole token. Booleans and numbers of less
// than 4 digits are in any text: NoLeak logs which fields have them.
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
		t.Logf("statetest: NoLeak cannot look for the booleans and short numbers of %s", strings.Join(unsearchable, ", "))
	}
	if len(values) == 0 {
		t.Errorf("statetest: NoLeak has no value to look for: no Secret field is set, and none that the agent may not read\n    %s", rerun(t))
		return false
	}
	leaves := make([]leaf, len(values))
	for i, v := range values {
		leaves[i] = v.leaf
	}
	ok := true
	for i, text := range texts {
		finds, complete := search(text, leaves)
		if !complete {
			t.Errorf("statetest: text %d decodes to so much that NoLeak searched only a part of it", i+1)
			ok = false
		}
		for _, line := range leakLines(values, finds) {
			t.Errorf("statetest: text %d tells %s\n    %s", i+1, line, rerun(t))
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

// leakLines returns a line for each field of which a text tells something: for
// what it tells the most of.
func leakLines(values []hiddenValue, finds []find) []string {
	masks := newSecrets()
	for _, v := range values {
		masks.know(v.leaf)
	}
	most := map[string]find{}
	var fields []string
	for _, f := range finds {
		field := values[f.value].field
		before, found := most[field]
		if !found {
			fields = append(fields, field)
		}
		if f.bytes > before.bytes {
			most[field] = f
		}
	}
	var lines []string
	for _, field := range fields {
		f := most[field]
		what, how := field, "as it is"
		if v := values[f.value]; f.bytes < len(v.text) {
			what = fmt.Sprintf("%d bytes of %s", f.bytes, field)
		}
		if f.how != "" {
			how = "as " + f.how
		}
		lines = append(lines, fmt.Sprintf("%s, %s, %s: %s", what, values[f.value].why, how, excerpt(f, finds, masks)))
	}
	return lines
}

// excerptRunes is how much an excerpt shows on each side.
const excerptRunes = 24

// excerpt returns the text around a find, with all finds masked.
func excerpt(f find, finds []find, masks *secrets) string {
	from, to := f.from, f.to
	covered := make([]bool, len(f.view.text))
	for _, other := range finds {
		if other.view == f.view {
			for i := other.from; i < other.to; i++ {
				covered[i] = true
			}
		}
	}
	for from > 0 && covered[from-1] {
		from--
	}
	for to < len(covered) && covered[to] {
		to++
	}
	before := visible(masks.Mask(uncovered(f.view.text, covered, 0, from)))
	after := visible(masks.Mask(uncovered(f.view.text, covered, to, len(covered))))
	if n := len(before) - excerptRunes; n > 0 {
		before = append([]rune("…"), before[n:]...)
	}
	if len(after) > excerptRunes {
		after = append(after[:excerptRunes:excerptRunes], '…')
	}
	return string(before) + "[SECRET]" + string(after)
}

// uncovered returns a part of a text with a mask in place of what is covered.
func uncovered(text string, covered []bool, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		switch {
		case !covered[i]:
			b.WriteByte(text[i])
		case i == from || !covered[i-1]:
			b.WriteString("[SECRET]")
		}
	}
	return b.String()
}

// visible returns text on one line, without what a terminal does not show.
func visible(text string) []rune {
	return []rune(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, text))
}
