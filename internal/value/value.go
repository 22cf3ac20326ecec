// Package value answers, for one Go type, what a store of values must know:
// whether a value of the type can be stored, how to copy and check it, how to
// get one out of another value without loss, and how to write it as JSON so
// that reading it back gives the same value.
//
// There is one type to know, [Plan]: what [For] found out about a type, once.
//
// The files depend on each other in one direction. plan.go declares Plan and
// the codec that does its work. The codecs, one for each kind of type, know
// only their parts' Plans; dynamic.go has the one for values whose types are
// known at run time. compile.go chooses a codec for a type, and this file is
// the API.
package value

import (
	"reflect"
	"unicode/utf8"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/number"
	"github.com/agentstate/state/internal/value/walk"
)

var (
	sources = newSourceCache()                   // of types that are only read
	targets = &planCache{values: sources.values} // of types that are stored
	dynamic = sources.values
)

// For returns the plan of a type. The error is an *fault.Error that names the
// part of the type that cannot be stored. Answers are cached.
func For(t reflect.Type) (*Plan, error) { return targets.planOf(t) }

// ForReference returns the plan of a type whose values are only referred to:
// streams, channels, functions, anything that [For] refuses. The plan looks
// into no value and calls no method of one. Its size is 0, its copy is the
// value itself, and its JSON the name of its type. Two values are equal if they
// are identical, see [Identical]; if list is set, if their elements are.
// Nothing converts to such a type. The error is an *fault.Error.
func ForReference(t reflect.Type, list bool) (*Plan, error) {
	if internal.RefusedTypes[t] {
		return nil, &fault.Error{Path: "$", Want: "a type that can be stored", Got: "a " + t.String()}
	}
	p := &Plan{typ: t, values: dynamic, flat: true, name: t.String()}
	p.codec = &referenceCodec{typ: t, list: list}
	return p, nil
}

// Normalise returns src as a field of type any stores it, and its size: nil,
// bool, string, []any, map[string]any, and of the numbers int64, uint64 for
// those that int64 does not hold, and float64. Floats stay floats, and a
// json.Number is one if its text has a fraction or an exponent. Structs and
// types with coding
// methods become what their JSON says, times and bytes strings. The result
// shares no memory with src.
func Normalise(src any, limits Limits) (any, int, error) { return dynamic.normalize(src, limits) }

// Type returns the type the plan is for.
func (p *Plan) Type() reflect.Type { return p.typ }

// Immutable reports whether assignment is a copy: scalars, structs and arrays
// of such, time.Time, opaque types.
func (p *Plan) Immutable() bool { return p.flat }

// Methods reports whether the methods of the plan may call coding methods of
// the type, or of a part of it, for a value that Copy or Convert returned. For
// other values, see [Plan.Static].
func (p *Plan) Methods() bool { return p.callsCode }

// Static reports whether the methods of the plan call code of users for no
// value at all: neither the type nor a part of it has coding methods, and the
// types of all parts are known. A part of type any may hold a value whose type
// has methods.
func (p *Plan) Static() bool { return !p.callsCode && !p.dynamic }

// Describe returns a short name of the type for people and models: string,
// integer, number, boolean, date, list of X, object, any.
func (p *Plan) Describe() string { return p.name }

// Check returns the size of v, or the error with which Copy would refuse it: an
// *fault.Error or a *fault.LimitError. It copies nothing.
func (p *Plan) Check(v reflect.Value, limits Limits) (size int, err error) {
	if size, ok := p.quickSize(v); ok && (limits.Bytes <= 0 || size <= limits.Bytes) {
		return size, nil
	}
	return walk.Measure(limits, false, func(w *walk.Walk) error { return p.codec.addSize(v, w) })
}

// quickSize returns the size of a valid scalar, or of a slice of strings or of
// values of a fixed size. It saves the walk, which takes longer than to check
// most of these. It leaves the errors to the walk.
func (p *Plan) quickSize(v reflect.Value) (size int, ok bool) {
	if p.fixedSize > 0 {
		return p.fixedSize, true
	}
	if !p.scalar {
		if l, ok := p.codec.(*listCodec); ok {
			return l.quickSize(v)
		}
		return 0, false
	}
	if v.Kind() == reflect.String {
		s := v.String()
		return len(s) + 2, utf8.ValidString(s)
	}
	return walk.ScalarSize, number.IsFinite(v.Float())
}

// Copy returns a deep copy of v and its size. It fails as Check does, before
// it copies anything. Parts of type any are normalised, see [Normalise].
func (p *Plan) Copy(v reflect.Value, limits Limits) (c reflect.Value, size int, err error) {
	size, err = p.Check(v, limits)
	if err != nil {
		return reflect.Value{}, 0, err
	}
	c, err = p.copyValue(v, true)
	if err != nil {
		return reflect.Value{}, 0, err
	}
	return c, size, nil
}

// Isolate makes v, an addressable shallow copy of a value that Check accepts, a
// deep one, as Copy would have returned it.
func (p *Plan) Isolate(v reflect.Value) error {
	if p.flat {
		return nil
	}
	if err := p.codec.copyInPlace(v, true); err != nil {
		return asFault(err)
	}
	return nil
}

// Clone returns a deep copy of a value that Copy or Convert returned, or that
// has been checked and is normalised.
func (p *Plan) Clone(v reflect.Value) reflect.Value {
	c, _ := p.copyValue(v, false) // fails only when it normalises
	return c
}

func (p *Plan) copyValue(v reflect.Value, normalize bool) (reflect.Value, error) {
	if p.flat && !v.CanAddr() {
		return v, nil // not a variable: no code can assign to it
	}
	c := reflect.New(p.typ).Elem()
	if v.IsValid() { // else a nil of type any
		c.Set(v)
	}
	if p.flat {
		return c, nil
	}
	if err := p.codec.copyInPlace(c, normalize); err != nil {
		return reflect.Value{}, asFault(err)
	}
	return c, nil
}

// Convert returns src as a value of the plan's type if nothing is lost by that,
// and its size. The result shares no memory with src. Numbers become numbers
// that can hold them, a list of anything a list, a map or struct a struct with
// those members, one element a list of one, a string a date or what the type
// reads from a string. The limits hold for src and for the result. Other
// errors are *fault.Error.
func (p *Plan) Convert(src any, limits Limits) (v reflect.Value, size int, err error) {
	if src != nil && reflect.TypeOf(src) == p.typ {
		return p.Copy(reflect.ValueOf(src), limits)
	}
	if p.typ == anyType {
		c := reflect.New(p.typ).Elem()
		src, size, err = Normalise(src, limits)
		setDynamic(c, src)
		return c, size, err
	}
	return p.convertMeasured(src, src, limits)
}

// convertMeasured converts src after it has checked it by its tree.
func (p *Plan) convertMeasured(tree, src any, limits Limits) (reflect.Value, int, error) {
	if _, err := walk.Measure(limits, true, func(w *walk.Walk) error { return dynamic.addValue(tree, w) }); err != nil {
		return reflect.Value{}, 0, err
	}
	c := reflect.New(p.typ).Elem()
	if _, err := walk.Measure(Limits{}, true, func(w *walk.Walk) error {
		c.SetZero() // after an error this runs again
		return p.convertFrom(c, src, w)
	}); err != nil {
		return reflect.Value{}, 0, err
	}
	size, err := p.Check(c, limits)
	if err != nil {
		return reflect.Value{}, 0, err
	}
	return c, size, nil
}

// AppendJSON appends v as JSON: what encoding/json writes, but a nil slice or
// map is the empty one, and nothing is escaped for HTML. It fails only for
// values that Check refuses, and if a coding method fails.
func (p *Plan) AppendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	out, err := p.codec.appendJSON(dst, v)
	if err != nil {
		return dst, asFault(err)
	}
	return out, nil
}

// Equal reports whether a and b are the same to a reader: a nil slice or map is
// the empty one, times are compared by instant, types with coding methods by
// what they write.
func (p *Plan) Equal(a, b reflect.Value) bool { return p.codec.isEqual(a, b) }
