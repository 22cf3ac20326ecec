package value

import (
	"maps"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/value/walk"
)

// recordCodec is for structs. JSON and memory divide a struct differently: the
// members of an embedded struct are members of the outer one, but a copy takes
// the embedded struct as one field.
type recordCodec struct {
	name    string // in errors
	members []structMember
	shared  []sharedField // in a complete plan, those that are not flat
}

// A structMember is a field as a member of the JSON object.
type structMember struct {
	jsonstruct.Member
	label []byte // the name as JSON with its colon
	plan  *Plan
}

// A sharedField is a field in memory that assignment does not copy.
type sharedField struct {
	index int
	plan  *Plan
}

// written returns the member's field of v, unless JSON leaves it out.
func (m *structMember) written(v reflect.Value) (reflect.Value, bool) {
	f, ok := m.FieldOf(v)
	return f, ok && !m.isOmitted(f)
}

// isOmitted reports whether encoding/json leaves the field out.
func (m *structMember) isOmitted(f reflect.Value) bool {
	if m.OmitEmpty {
		switch f.Kind() {
		case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
			if f.Len() == 0 {
				return true
			}
		case reflect.Struct:
		default:
			if f.IsZero() {
				return true
			}
		}
	}
	return m.OmitZero && isZeroValue(f)
}

type zeroer interface{ IsZero() bool }

// isZeroValue asks the field's method IsZero, if it has one.
func isZeroValue(f reflect.Value) bool {
	if nilable := f.Kind() == reflect.Pointer || f.Kind() == reflect.Interface; nilable && f.IsNil() {
		return true
	}
	z, ok := f.Interface().(zeroer)
	if !ok && reflect.PointerTo(f.Type()).Implements(reflect.TypeFor[zeroer]()) {
		c := reflect.New(f.Type()) // the field itself may not be addressable
		c.Elem().Set(f)
		z, ok = c.Interface().(zeroer)
	}
	if !ok {
		return f.IsZero()
	}
	zero := false // a method that panics keeps the member
	_ = callGuarded(func() error { zero = z.IsZero(); return nil })
	return zero
}

func (r *recordCodec) addSize(v reflect.Value, w *walk.Walk) error {
	if err := w.Enter(0); err != nil {
		return err
	}
	for i := range r.members {
		m := &r.members[i]
		f, ok := m.written(v)
		if !ok {
			continue
		}
		// Quotes, colon and comma take 4. A member of fixed size is counted at
		// once.
		if err := w.Add(len(m.Name) + 4 + m.plan.fixedSize); err != nil {
			return err
		}
		if m.plan.fixedSize > 0 {
			continue
		}
		w.Member(m.Name)
		if err := m.plan.codec.addSize(f, w); err != nil {
			return err
		}
	}
	w.Leave()
	return nil
}

func (r *recordCodec) copyInPlace(v reflect.Value, normalize bool) error {
	for _, s := range r.shared {
		if err := s.plan.codec.copyInPlace(v.Field(s.index), normalize); err != nil {
			return err
		}
	}
	return nil
}

func (r *recordCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	object := make(map[string]any, len(r.members))
	for i := range r.members {
		m := &r.members[i]
		f, ok := m.written(v)
		if !ok {
			continue
		}
		var err error
		if object[m.Name], err = m.plan.codec.makeTree(f, w); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (r *recordCodec) convertText(dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	return convertObjectText(r, dst, src, w)
}

func (r *recordCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	object, ok := src.(map[string]any)
	if !ok {
		return w.Fail(r.name, kindOf(src))
	}
	if err := w.Enter(0); err != nil {
		return err
	}
	defer w.Leave()
	known := 0
	for i := range r.members {
		m := &r.members[i]
		x, ok := object[m.Name]
		if !ok {
			continue
		}
		known++
		w.Member(m.Name)
		if err := m.plan.convertFrom(m.MakeField(dst), x, w); err != nil {
			return err
		}
	}
	if known == len(object) {
		return nil
	}
	// The first unknown member in order, so that the error is the same each
	// time.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(r.members, func(m structMember) bool { return m.Name == name }) {
			w.Member(name)
			return w.Fail("a known member", "an unknown one")
		}
	}
	return nil
}

func (r *recordCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for i := range r.members {
		m := &r.members[i]
		f, ok := m.written(v)
		if !ok {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		if dst, err = m.plan.codec.appendJSON(append(dst, m.label...), f); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (r *recordCodec) isEqual(a, b reflect.Value) bool {
	for i := range r.members {
		m := &r.members[i]
		x, inA := m.written(a)
		y, inB := m.written(b)
		if inA != inB || inA && !m.plan.codec.isEqual(x, y) {
			return false
		}
	}
	return true
}
