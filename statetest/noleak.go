package statetest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
)

// NoLeak fails the test if a text has a value that agent must not see: that of
// a Secret field or, unless agent is "", of a field that agent may not read.
// Each string, sequence of bytes, number and map key in such a value counts. It
// reports whether there is none. The rights of st do not count.
//
// A value is found as it is and in other case, escaped as in JSON, URLs, HTML
// and Go, in base64 and hex, in gzip and zlib, as a list of bytes, and in
// several of these. Of a value in three of them, about one of a hundred is
// missed. It is also found in UTF-16 and spread over lines, the elements of a
// list or groups of digits. So are any 12 consecutive bytes of a value of 16 or
// more. A value of less than 6 bytes counts only as a whole token. Booleans and
// numbers of less than 4 digits are in any text: NoLeak logs which fields have
// nothing but these.
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
		leaks, complete := leaksOf(text, values)
		if !complete {
			t.Errorf("statetest: text %d decodes to so much that NoLeak searched only a part of it", i+1)
		}
		for _, leak := range leaks {
			t.Errorf("statetest: text %d tells %s, by byte %d\n    %s", i+1, leak, leak.end(text), rerun(t))
		}
		ok = ok && complete && len(leaks) == 0
	}
	return ok
}

// hiddenValue is a part of the value of a field.
type hiddenValue struct {
	pattern
	field string
	why   string // it must not be seen
}

// hiddenValues returns the values that agent must not see, and the fields with
// none that can be searched.
func hiddenValues(st *state.State, agent string) (values []hiddenValue, unsearchable []string) {
	inside.Hidden(st, agent, func(field string, secret bool, v any) {
		why := "a secret"
		if !secret {
			why = "which " + agent + " may not read"
		}
		before := len(values)
		for _, leaf := range kit.Leaves(v) {
			if kit.IsSearchable(leaf) {
				values = append(values, hiddenValue{newPattern(leaf), field, why})
			}
		}
		if len(values) == before && !slices.Contains(unsearchable, field) {
			unsearchable = append(unsearchable, field)
		}
	})
	return values, unsearchable
}

// leak is what a text tells of a field.
type leak struct {
	hiddenValue
	bytes int    // of the value
	how   string // "base64 in escaped text"
}

func (l leak) String() string {
	what, how := l.field, "as it is"
	if l.bytes < len(l.Text) {
		what = fmt.Sprintf("%d bytes of %s", l.bytes, l.field)
	}
	if l.how != "" {
		how = "as " + l.how
	}
	return fmt.Sprintf("%s, %s, %s", what, l.why, how)
}

// leaksOf returns for each field what a text tells the most of.
func leaksOf(text string, values []hiddenValue) (leaks []leak, complete bool) {
	complete = views(text, func(v view) {
		folded := kit.Fold(v.text)
		for _, value := range values {
			bytes := value.told(v, folded)
			i := slices.IndexFunc(leaks, func(l leak) bool { return l.field == value.field })
			switch found := (leak{value, bytes, v.how}); {
			case bytes == 0:
			case i < 0:
				leaks = append(leaks, found)
			case bytes > leaks[i].bytes:
				leaks[i] = found
			}
		}
	})
	return leaks, complete
}

// end returns the place by which a text has told the value.
func (l leak) end(text string) int {
	return sort.Search(len(text), func(n int) bool {
		told := 0
		views(text[:n], func(v view) { told = max(told, l.told(v, kit.Fold(v.text))) })
		return told >= l.bytes
	})
}
