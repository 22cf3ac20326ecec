package state

import (
	"math"
	"reflect"
	"strings"
)

// room returns how much a field can still take, if writes through a handler can
// be refused for no other reason than that they take too much together: bytes,
// or for a number the distance to the end of its range. It returns false if code
// of users has a say. A nil handler is that of the field.
func (s *State) room(field string, by *handler) (int, bool) {
	h := s.on()
	sp := h.schema.byName[field]
	if sp == nil {
		return 0, false
	}
	if by == nil {
		by = sp.handler
	}
	keys := h.schema.limits.Keys
	switch {
	case sp.validate != nil, by.callsCode(&sp.form), sp.form.CallsCode(), sp.form.Secret, sp.form.Reference,
		strings.HasPrefix(by.name, "merge_map("), // the values under a key may be refused
		keys > 0 && s.KV().Len()+len(h.schema.fields) > keys:
		return 0, false
	}
	now := h.get(sp.address())
	if most := largest(sp.form.Type); most > 0 {
		if now != nil {
			most -= magnitude(reflect.ValueOf(sp.form.Load(now.Value)))
		}
		return int(most), sp.checkSize(32) == nil // no number is longer
	}
	room := math.MaxInt
	for _, limit := range []int{sp.maxBytes, sp.form.Limits.Bytes} {
		if limit > 0 {
			room = min(room, limit)
		}
	}
	if now != nil {
		room -= now.Size
	}
	return room, true
}

// largest returns a number up to which every number fits in a type, or 0 if it
// is no type of numbers.
func largest(t reflect.Type) float64 {
	switch kind := t.Kind(); {
	case reflect.Int <= kind && kind <= reflect.Int64:
		return math.Exp2(float64(min(t.Bits()-1, 52))) - 1
	case reflect.Uint <= kind && kind <= reflect.Uint64:
		return math.Exp2(float64(min(t.Bits(), 52))) - 1
	case kind == reflect.Float32, kind == reflect.Float64:
		return math.Exp2(52)
	}
	return 0
}

// magnitude returns a number without its sign.
func magnitude(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return math.Abs(float64(v.Int()))
	case v.CanUint():
		return float64(v.Uint())
	}
	return math.Abs(v.Float())
}
