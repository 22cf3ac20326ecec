// Package value answers, for one Go type, what a store of values must know:
// whether a value of the type can be stored, how to copy and check it, how to
// get one out of another value without loss, and how to write it as JSON so
// that reading it back gives the same value.
//
// There is one type to know, [Plan]: what [For] found out about a type, once.
package value

import (
	"reflect"
	"sync"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Limits bound a value. A field that is 0 or negative sets no limit, but no
// value may be nested more than 10 000 levels deep, so that cycles end.
type Limits struct {
	Bytes int // the size of the value, about the length of its JSON
	Depth int // containers inside one another: a scalar has 0, a []int 1
}

// A Plan is what is known about a type. It is immutable and safe for
// concurrent use. Its methods take values of exactly that type.
//
// Code of the types themselves, such as MarshalJSON or Clone, may be called by
// every method. If it panics, that is an error like one it returns.
type Plan struct {
	typ   reflect.Type
	codec codec

	scalar  bool   // a plain bool, number or string
	flat    bool   // assignment is a copy
	dynamic bool   // has a part of type any; of a source: its tree has another size or is refused
	methods bool   // it or a part of it has coding methods of its own
	fixed   int    // > 0: every value has this size and needs no check
	name    string // for Describe
}

// A codec does the work of a Plan for one kind of type.
type codec interface {
	// check adds the size of v to w and finds what does not fit.
	check(v reflect.Value, w *walk) error
	// isolate replaces the memory that v, a settable shallow copy, shares
	// with the original. It normalises what is of type any if store is set,
	// and fails only then. It is not called for flat types.
	isolate(v reflect.Value, store bool) error
	// tree returns v, which has been checked, as a fresh tree.
	tree(v reflect.Value, w *walk) (any, error)
	// convert sets dst, a settable zero value, from src, which is what shape
	// returns. It copies what it takes from src.
	convert(dst reflect.Value, src any, w *walk) error
	// append appends the JSON of v.
	append(dst []byte, v reflect.Value) ([]byte, error)
	// equal reports whether a reader could not tell a from b.
	equal(a, b reflect.Value) bool
}

// compiled is a cached answer of For.
type compiled struct {
	plan *Plan
	err  error
}

var (
	targets sync.Map // reflect.Type -> compiled, for types that are stored
	sources sync.Map // reflect.Type -> compiled, for types that are only read
)

// For returns the plan of a type. The error is an *fault.Error that names the part
// of the type that cannot be stored. Answers are kept.
func For(t reflect.Type) (*Plan, error) {
	return cached(&targets, t, false)
}

// source returns a plan with which values of t can be checked, turned into a
// tree and written, though perhaps not read back.
func source(t reflect.Type) (*Plan, error) {
	return cached(&sources, t, true)
}

func cached(cache *sync.Map, t reflect.Type, source bool) (*Plan, error) {
	if c, ok := cache.Load(t); ok {
		return c.(compiled).plan, c.(compiled).err
	}
	if t == nil {
		return nil, &fault.Error{Path: "$", Want: "a type that can be stored", Got: "no type"}
	}
	c := compiler{source: source, busy: map[reflect.Type]bool{}, plans: map[reflect.Type]*Plan{}}
	plan, err := c.compile(t)
	if err != nil {
		plan = nil
	}
	answer, _ := cache.LoadOrStore(t, compiled{plan, err})
	return answer.(compiled).plan, answer.(compiled).err
}

// Type returns the type the plan is for.
func (p *Plan) Type() reflect.Type { return p.typ }

// Scalar reports whether the type is a bool, a number, a string, or a named
// type of such a kind without coding methods of its own.
func (p *Plan) Scalar() bool { return p.scalar }

// Immutable reports whether assignment is a copy: scalars, structs and arrays
// of such, time.Time, opaque types.
func (p *Plan) Immutable() bool { return p.flat }

// Methods reports whether coding methods of the type, or of a part of it, may be
// called by the methods of the plan.
func (p *Plan) Methods() bool { return p.methods }

// Describe returns a short name of the type for people and models: string,
// integer, number, boolean, date, list of X, object, any.
func (p *Plan) Describe() string { return p.name }

// Check returns the size of v, or what Copy would refuse: an *fault.Error or a
// *fault.LimitError. It copies nothing.
func (p *Plan) Check(v reflect.Value, lim Limits) (size int, err error) {
	if p.fixed > 0 && (lim.Bytes <= 0 || p.fixed <= lim.Bytes) {
		return p.fixed, nil
	}
	if p.scalar { // what is refused here is explained below
		switch v.Kind() {
		case reflect.String:
			if s := v.String(); (lim.Bytes <= 0 || len(s)+2 <= lim.Bytes) && utf8.ValidString(s) {
				return len(s) + 2, nil
			}
		case reflect.Float32, reflect.Float64:
			if (lim.Bytes <= 0 || scalarSize <= lim.Bytes) && finite(v.Float()) {
				return scalarSize, nil
			}
		}
	}
	return walked(lim, func(w *walk) error { return p.codec.check(v, w) })
}

// Copy returns a deep copy of v and its size. It fails as Check does, before
// it copies anything. Parts of type any are normalised, see [Normalise].
func (p *Plan) Copy(v reflect.Value, lim Limits) (c reflect.Value, size int, err error) {
	size, err = p.Check(v, lim)
	if err != nil {
		return reflect.Value{}, 0, err
	}
	c, err = p.copied(v, true)
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
	if err := p.codec.isolate(v, true); err != nil {
		return atRoot(err)
	}
	return nil
}

// Clone returns a deep copy of a value that Copy or Convert returned, or that
// has been checked and is normalised.
func (p *Plan) Clone(v reflect.Value) reflect.Value {
	c, _ := p.copied(v, false) // fails only when it stores
	return c
}

func (p *Plan) copied(v reflect.Value, store bool) (reflect.Value, error) {
	if p.flat && !v.CanAddr() {
		return v, nil // nobody can assign to it
	}
	c := reflect.New(p.typ).Elem()
	if v.IsValid() { // else a nil of type any
		c.Set(v)
	}
	if p.flat {
		return c, nil
	}
	if err := p.codec.isolate(c, store); err != nil {
		return reflect.Value{}, atRoot(err)
	}
	return c, nil
}

// Convert returns src as a value of the plan's type if nothing is lost by that,
// and its size. The result shares no memory with src. Numbers become numbers
// that can hold them, a list of anything a list, a map or struct a struct with
// those members, one element a list of one, a string a date or what the type
// reads from a string. The limits hold for src and for the result. Other
// errors are *fault.Error.
func (p *Plan) Convert(src any, lim Limits) (v reflect.Value, size int, err error) {
	if src != nil && reflect.TypeOf(src) == p.typ {
		return p.Copy(reflect.ValueOf(src), lim)
	}
	c := reflect.New(p.typ).Elem()
	if p.typ == anyType {
		src, size, err = Normalise(src, lim)
		setAny(c, src)
		return c, size, err
	}
	if _, err = walked(lim, func(w *walk) error {
		w.exact = true
		return measure(src, w)
	}); err != nil {
		return reflect.Value{}, 0, err
	}
	if _, err = walked(Limits{}, func(w *walk) error {
		w.exact = true
		c.SetZero()
		return convert(p, c, src, w)
	}); err != nil {
		return reflect.Value{}, 0, err
	}
	if size, err = p.Check(c, lim); err != nil {
		return reflect.Value{}, 0, err
	}
	return c, size, nil
}

// Decode returns JSON as a value of the plan's type, as Convert returns the tree
// that the JSON is. Types with coding methods are given their part of the text as
// it is. Errors are those of Convert, or of package strict.
func (p *Plan) Decode(data []byte, lim Limits) (v reflect.Value, size int, err error) {
	tree, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		return reflect.Value{}, 0, err
	}
	if p.typ == anyType {
		return p.Convert(tree, lim)
	}
	if _, err = walked(lim, func(w *walk) error {
		w.exact = true
		return measure(tree, w)
	}); err != nil {
		return reflect.Value{}, 0, err
	}
	c := reflect.New(p.typ).Elem()
	if _, err = walked(Limits{}, func(w *walk) error {
		w.exact = true
		c.SetZero()
		return convert(p, c, text(data), w)
	}); err != nil {
		return reflect.Value{}, 0, err
	}
	if size, err = p.Check(c, lim); err != nil {
		return reflect.Value{}, 0, err
	}
	return c, size, nil
}

// AppendJSON appends v as JSON: what encoding/json writes, but a nil slice or
// map is the empty one, and nothing is escaped for HTML. Only values that
// Check refuses, and coding methods, make it fail.
func (p *Plan) AppendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	out, err := p.codec.append(dst, v)
	if err != nil {
		return dst, atRoot(err)
	}
	return out, nil
}

// Equal reports whether a and b are the same to a reader: a nil slice or map is
// the empty one, times are compared by instant, types with coding methods by
// what they write.
func (p *Plan) Equal(a, b reflect.Value) bool {
	return p.codec.equal(a, b)
}

// CheckString reports whether s can be stored: it is valid UTF-8.
func CheckString(s string) bool { return utf8.ValidString(s) }

// Normalise returns src as what a field of type any stores, and its size: nil,
// bool, string, []any, map[string]any, and of the numbers int64, or uint64 or
// float64 for those that int64 does not hold. Structs and types with coding
// methods become what their JSON says, times and bytes strings. The result
// shares no memory with src.
func Normalise(src any, lim Limits) (any, int, error) {
	size, err := walked(lim, func(w *walk) error { return measure(src, w) })
	if err != nil {
		return nil, 0, err
	}
	x, err := tree(src, &walk{})
	if err != nil {
		return nil, 0, atRoot(err)
	}
	return x, size, nil
}
