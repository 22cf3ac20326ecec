package state

import (
	"iter"
	"reflect"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/persist"
)

// ListItems yields the elements of a list field and their indexes, from index from
// on. A negative from counts from the end. It walks one version of the list
// and copies only the elements that it yields. It yields nothing if the field
// is unset or the handle may not read it.
func ListItems[S ~[]E, E any](s *State, f *Field[S], from int) iter.Seq2[int, E] {
	h := *s.on()
	return func(yield func(int, E) bool) {
		form, l := listOf(&h, f)
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
		share := form.NoCopy || form.Elem.Immutable()
		for run := range l.Runs(i, l.Len()) {
			for _, e := range run.Interface().(S) {
				if !share {
					e = as[E](form.Elem.Clone(reflect.ValueOf(&e).Elem()).Interface())
				}
				if !yield(i, e) {
					return
				}
				i++
			}
		}
	}
}

// ListLen returns the length of a list field, 0 if the field is unset or the handle
// may not read it. It copies nothing.
func ListLen[S ~[]E, E any](s *State, f *Field[S]) int {
	if _, l := listOf(s.on(), f); l != nil {
		return l.Len()
	}
	return 0
}

// listOf returns the list that a field holds, or nil.
func listOf[S any](h *handle, f *Field[S]) (*cell.Form, *persist.List) {
	sp, err := f.toRead(h)
	if err != nil || sp.form.Elem == nil {
		return nil, nil
	}
	c := h.slot(sp)
	if c == nil {
		return nil, nil
	}
	return &sp.form, cell.Bare(c.Value).(*persist.List)
}
