package statetest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

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
	ok := true
	for i, text := range texts {
		lines, complete := leakLines(text, values)
		if !complete {
			t.Errorf("statetest: text %d decodes to so much that NoLeak searched only a part of it", i+1)
		}
		for _, line := range lines {
			t.Errorf("statetest: text %d tells %s\n    %s", i+1, line, rerun(t))
		}
		ok = ok && complete && len(lines) == 0
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
func leakLines(text string, values []hiddenValue) (lines []string, complete bool) {
	leaves := make([]leaf, len(values))
	for i, v := range values {
		leaves[i] = v.leaf
	}
	finds, complete := search(text, leaves)
	most := map[string]int{}
	for i, v := range values {
		before, found := most[v.field]
		if finds[i].bytes > 0 && (!found || finds[i].bytes > finds[before].bytes) {
			most[v.field] = i
		}
	}
	for _, i := range slices.Sorted(maps.Values(most)) {
		v, f := values[i], finds[i]
		what, how := v.field, "as it is"
		if f.bytes < len(v.text) {
			what = fmt.Sprintf("%d bytes of %s", f.bytes, v.field)
		}
		if f.how != "" {
			how = "as " + f.how
		}
		at := placeOf(text, v.leaf, f)
		where := fmt.Sprintf("at byte %d", at)
		before := text[max(0, at-excerptBytes):at]
		told, _ := search(before, leaves)
		if at > 0 && !slices.ContainsFunc(told, func(f find) bool { return f.bytes > 0 }) {
			tail := []rune(before)
			where = fmt.Sprintf("%s, after %q", where, string(tail[max(0, len(tail)-excerptRunes):]))
		}
		lines = append(lines, fmt.Sprintf("%s, %s, %s, %s", what, v.why, how, where))
	}
	return lines, complete
}

const (
	excerptRunes = 24  // that a failure shows of the text before a value
	excerptBytes = 400 // of it that must have no value
)

// placeOf returns where a text tells a value: the place of the shortest part that
// tells as much, and the beginning of the word if that is encoded.
func placeOf(text string, value leaf, f find) int {
	tells := func(part string) bool {
		finds, _ := search(part, []leaf{value})
		return finds[0].bytes >= f.bytes
	}
	end := sort.Search(len(text), func(n int) bool { return tells(text[:n]) })
	at := max(0, sort.Search(end, func(n int) bool { return !tells(text[n:end]) })-1)
	if f.how != "" {
		at -= len(wordBefore.FindString(text[:at]))
	}
	return at
}

var wordBefore = regexp.MustCompile(`[A-Za-z0-9+/_%-]*$`)
