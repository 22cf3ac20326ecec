package statetest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state/statetest/internal/kit"
)

// Equal fails the test if want and got differ, with the diff of cmp (want -,
// got +), and reports whether they are equal. The values are compared with the
// options of [Compare] and opts. The secrets of states among want and got are
// masked in the diff, also where they are keys of maps.
func Equal(t testing.TB, want, got any, opts ...cmp.Option) bool {
	t.Helper()
	diff := newSecrets().diff(want, got, opts...)
	if diff == "" {
		return true
	}
	t.Errorf("statetest: not equal (want -, got +):\n%s\n    %s", indented(diff), rerun(t))
	return false
}

// rerun returns the line of a failure that says how to run only this test
// again.
func rerun(t testing.TB) string { return "again: " + kit.Again(t.Name()) }

// indented returns a text with its lines indented, without the last line break.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
