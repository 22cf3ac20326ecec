package statetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
)

// Equal fails the test if want and got differ, with the diff of cmp (want -,
// got +), and reports whether they are equal. The values are compared with the
// options of [Compare] and opts. The secrets of states among want and got are
// masked in the diff, also where they are keys of maps.
func Equal(t testing.TB, want, got any, opts ...cmp.Option) bool {
	t.Helper()
	s := newSecrets()
	for _, v := range []any{want, got} {
		addStates(s, reflect.ValueOf(v), 0)
	}
	diff := s.diff(want, got, opts...)
	if diff == "" {
		return true
	}
	t.Errorf("statetest: not equal (want -, got +):\n%s\n    %s", indented(diff), rerun(t))
	return false
}

// addStates adds the states in a value, behind pointers and in lists, maps and
// exported members.
func addStates(s *secrets, v reflect.Value, depth int) {
	if depth > 8 || !v.IsValid() || !v.CanInterface() {
		return
	}
	if st, ok := v.Interface().(*state.State); ok {
		s.Add(st)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		addStates(s, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			addStates(s, v.Index(i), depth+1)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			addStates(s, it.Value(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			addStates(s, v.Field(i), depth+1)
		}
	}
}

// rerun returns the line of a failure that says how to run only this test
// again.
func rerun(t testing.TB) string { return "again: " + kit.Again(t.Name()) }

// indented returns a text with its lines indented, without the last line break.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
