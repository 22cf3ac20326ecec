package statemodel

import (
	"maps"
	"slices"

	"github.com/agentstate/state"
)

// stateContent is immutable: every write returns another one.
type stateContent struct {
	fields  map[string]any
	results []state.InferenceResult // nil if nothing was written, as for a field that is unset
}

func (c stateContent) get(field string) (any, bool) {
	if field == historyName {
		return c.results, c.results != nil
	}
	v, ok := c.fields[field]
	return v, ok
}

func (c stateContent) put(field string, v any, set bool) stateContent {
	if field == historyName {
		c.results = v.([]state.InferenceResult)
		return c
	}
	c.fields = maps.Clone(c.fields)
	delete(c.fields, field)
	if set {
		c.fields[field] = v
	}
	return c
}

// same reports whether a field is the same in two contents.
func (c stateContent) same(o stateContent, field string) bool {
	v, set := c.get(field)
	w, also := o.get(field)
	return sameField(field, v, set, w, also)
}

// sameField compares two values of a field, either of which may be unset. No
// results are the same as no history.
func sameField(field string, v any, set bool, w any, also bool) bool {
	if field == historyName {
		return equalValues(v, w)
	}
	return set == also && (!set || equalValues(v, w))
}

func (c stateContent) names() []string {
	return append(slices.Sorted(maps.Keys(c.fields)), historyName)
}

// fieldWrite is one write to one field.
type fieldWrite struct {
	op       state.Op
	field    string
	by       string // the handler; "" if the write overwrites
	value    any    // the update
	gone     bool   // it deletes
	computed bool   // it comes from Update, or like Pop depends on what was there
	version  uint64
}

func (w fieldWrite) overwrites() bool { return w.by == "" || w.by == "replace" }

func (w fieldWrite) on(c stateContent) (stateContent, error) {
	if w.overwrites() {
		return c.put(w.field, w.value, !w.gone), nil
	}
	cur, set := c.get(w.field)
	v, err := mergeBy(w.by, cur, set, w.value)
	if err != nil {
		return c, err
	}
	return c.put(w.field, v, true), nil
}

// valid is what Validate says about a field.
func (c stateContent) valid(field string) error {
	if s, ok := c.fields[field].(string); ok && field == "checked" && len(s) > 7 {
		return errTooLong
	}
	return nil
}
