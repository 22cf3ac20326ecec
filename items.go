package state

import (
	"iter"
	"reflect"

	"github.com/agentstate/state/internal/persist"
)

// Items yields the elements of a list field with their places, from place from
// on; a negative from counts from the end. It walks one version of the list
// without copying the whole; each element is a copy. It yields nothing if the
// field is unset or the handle may not read it.
func Items[S ~[]E, E any](s *State, f *Field[S], from int) iter.Seq2[int, E] {
	h := *s.on()
	return func(yield func(int, E) bool) {
		sp, l := listOf(&h, f)
		if l == nil {
			return
		}
		i := max(from, 0)
		if from < 0 {
			i = max(0, l.Len()+from)
		}
		if i >= l.Len() {
			return
		}
		share := sp.noCopy || sp.list.Immutable()
		for run := range l.Runs(i, l.Len()) {
			for _, e := range run.Interface().(S) {
				if !share {
					e = sp.list.Clone(reflect.ValueOf(&e).Elem()).Interface().(E)
				}
				if !yield(i, e) {
					return
				}
				i++
			}
		}
	}
}

// Len returns the length of a list field, 0 if the field is unset or the handle
// may not read it. It copies nothing.
func Len[S ~[]E, E any](s *State, f *Field[S]) int {
	if _, l := listOf(s.on(), f); l != nil {
		return l.Len()
	}
	return 0
}

// listOf returns the list that a field holds, or nil.
func listOf[S any](h *handle, f *Field[S]) (*spec, *persist.List) {
	sp, err := f.reader(h, "read")
	if err != nil || sp.list == nil {
		return nil, nil
	}
	e := h.branch.load(sp.slot)
	if e == nil {
		return nil, nil
	}
	return sp, bare(e.value).(*persist.List)
}
