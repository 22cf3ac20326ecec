package value

import (
	"maps"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/jsonstruct"
)

// recordCodec is for structs.
type recordCodec struct {
	typ     reflect.Type
	members []member
	shared  []part
}

// A member is a field as JSON has it: promoted ones are members of the outer
// struct.
type member struct {
	jsonstruct.Member
	label []byte // the name as JSON with its colon
	plan  *Plan
}

// A part is a field as memory has it, which assignment does not copy.
type part struct {
	field int
	plan  *Plan
}

func (r *recordCodec) member(name string) (*member, bool) {
	for i := range r.members {
		if r.members[i].Name == name {
			return &r.members[i], true
		}
	}
	return nil, false
}

// of returns the member's field of v, unless JSON leaves it out.
func (m *member) of(v reflect.Value) (reflect.Value, bool) {
	f, ok := m.FieldOf(v)
	return f, ok && !m.omitted(f)
}

// omitted reports what encoding/json leaves out.
func (m *member) omitted(f reflect.Value) bool {
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
	return m.OmitZero && isZero(f)
}

// isZero asks a method IsZero, if there is one.
func isZero(f reflect.Value) bool {
	if nilable := f.Kind() == reflect.Pointer || f.Kind() == reflect.Interface; nilable && f.IsNil() {
		return true
	}
	z, ok := f.Interface().(interface{ IsZero() bool })
	if !ok && reflect.PointerTo(f.Type()).Implements(reflect.TypeFor[interface{ IsZero() bool }]()) {
		c := reflect.New(f.Type())
		c.Elem().Set(f)
		z, ok = c.Interface().(interface{ IsZero() bool })
	}
	if !ok {
		return f.IsZero()
	}
	zero := false
	_ = guarded(func() error { zero = z.IsZero(); return nil })
	return zero
}

func (r *recordCodec) check(v reflect.Value, w *walk) error {
	if err := w.enter(0); err != nil {
		return err
	}
	for i := range r.members {
		m := &r.members[i]
		f, ok := m.of(v)
		if !ok {
			continue
		}
		if err := w.add(len(m.Name) + 4 + m.plan.fixed); err != nil {
			return err
		}
		if m.plan.fixed > 0 {
			continue
		}
		w.member(m.Name)
		if err := m.plan.codec.check(f, w); err != nil {
			return err
		}
	}
	w.leave()
	return nil
}

func (r *recordCodec) isolate(v reflect.Value, store bool) error {
	for _, p := range r.shared {
		if err := p.plan.codec.isolate(v.Field(p.field), store); err != nil {
			return err
		}
	}
	return nil
}

func (r *recordCodec) tree(v reflect.Value, w *walk) (any, error) {
	object := make(map[string]any, len(r.members))
	for i := range r.members {
		m := &r.members[i]
		f, ok := m.of(v)
		if !ok {
			continue
		}
		var err error
		if object[m.Name], err = m.plan.codec.tree(f, w); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (r *recordCodec) convert(dst reflect.Value, src any, w *walk) error {
	object, ok := src.(map[string]any)
	if !ok {
		return w.fail(nameOf(r.typ), kindOf(src))
	}
	if err := w.enter(0); err != nil {
		return err
	}
	defer w.leave()
	known := 0
	for i := range r.members {
		m := &r.members[i]
		e, ok := object[m.Name]
		if !ok {
			continue
		}
		known++
		w.member(m.Name)
		if err := convert(m.plan, m.MakeField(dst), e, w); err != nil {
			return err
		}
	}
	if known == len(object) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, ok := r.member(name); !ok {
			w.member(name)
			return w.fail("a known member", "an unknown one")
		}
	}
	return nil
}

func (r *recordCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for i := range r.members {
		m := &r.members[i]
		f, ok := m.of(v)
		if !ok {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		if dst, err = m.plan.codec.append(append(dst, m.label...), f); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (r *recordCodec) equal(a, b reflect.Value) bool {
	for i := range r.members {
		m := &r.members[i]
		x, inA := m.of(a)
		y, inB := m.of(b)
		if inA != inB || inA && !m.plan.codec.equal(x, y) {
			return false
		}
	}
	return true
}
