package persist

import (
	"reflect"
	"sync"
)

// kind is what a list knows of its slice type.
type kind struct {
	typ reflect.Type
	arrays
}

// arrays makes and copies slices of one type.
type arrays interface {
	make(n int) any
	length(s any) int
	// copy copies the elements of src from index from up to, not including, to,
	// to those of dst from index at on.
	copy(dst any, at int, src any, from, to int)
}

func (k *kind) newChunk(n, used int) *chunk {
	c := &chunk{elems: k.make(n), len: n}
	c.used.Store(int64(used))
	return c
}

var kinds sync.Map // reflect.Type -> *kind

func kindOf(typ reflect.Type) *kind {
	if k, ok := kinds.Load(typ); ok {
		return k.(*kind)
	}
	k, _ := kinds.LoadOrStore(typ, &kind{typ, reflected{typ}})
	return k.(*kind)
}

// Declare lets lists of type []E copy their elements without reflection, which
// takes longer than the copy. It must be called before the first such list is
// made.
func Declare[E any]() {
	typ := reflect.TypeFor[[]E]()
	kinds.Store(typ, &kind{typ, typed[E]{}})
}

func init() {
	Declare[any]()
	Declare[bool]()
	Declare[float64]()
	Declare[int]()
	Declare[int64]()
	Declare[string]()
}

// typed works on slices of type []E.
type typed[E any] struct{}

func (typed[E]) make(n int) any   { return make([]E, n) }
func (typed[E]) length(s any) int { return len(s.([]E)) }

func (typed[E]) copy(dst any, at int, src any, from, to int) {
	copy(dst.([]E)[at:], src.([]E)[from:to])
}

// reflected works on slices of a type that is not declared.
type reflected struct{ typ reflect.Type }

func (r reflected) make(n int) any { return reflect.MakeSlice(r.typ, n, n).Interface() }
func (reflected) length(s any) int { return reflect.ValueOf(s).Len() }

func (reflected) copy(dst any, at int, src any, from, to int) {
	d, s := reflect.ValueOf(dst), reflect.ValueOf(src)
	if to-from == 1 {
		d.Index(at).Set(s.Index(from))
		return
	}
	reflect.Copy(d.Slice(at, at+to-from), s.Slice(from, to))
}
