package persist

import (
	"iter"
	"reflect"
)

// Sequence is a [List] of a known element type, without reflection and as a
// value: the zero Sequence is empty.
//
// All methods are safe for concurrent use, including while other sequences that
// share chunks with it grow.
type Sequence[E any] struct{ list List }

// NewSequence returns an empty sequence with room for n elements.
func NewSequence[E any](n int) (s Sequence[E]) {
	if n > 0 {
		s.list.kind = typedKind[E]()
		s.list.chunks = []*chunk{s.list.kind.newChunk(min(n, chunkLen), 0)}
	}
	return s
}

// Len returns the number of elements.
func (s *Sequence[E]) Len() int { return s.list.len }

// At returns element i.
func (s *Sequence[E]) At(i int) E { return At[E](&s.list, i) }

// Append returns the sequence with one more element.
func (s Sequence[E]) Append(e E) Sequence[E] {
	if s.list.kind == nil {
		s.list.kind = typedKind[E]()
	}
	c, at, _ := s.list.claim(1)
	c.elems.([]E)[at] = e
	s.list.len++
	return s
}

// Take returns the sequence of the first n elements.
func (s Sequence[E]) Take(n int) Sequence[E] {
	if n <= 0 {
		return Sequence[E]{}
	}
	s.list.len = min(n, s.list.len)
	s.list.chunks = s.list.chunks[:(s.list.len+chunkLen-1)/chunkLen]
	return s
}

// Common returns the number of leading elements that both sequences have in
// the same chunks. Elements after these may be equal too.
func (s *Sequence[E]) Common(o *Sequence[E]) int {
	n := min(s.list.len, o.list.len)
	for i := 0; i*chunkLen < n; i++ {
		if s.list.chunks[i] != o.list.chunks[i] {
			return i * chunkLen
		}
	}
	return n
}

// Runs yields the elements from index from up to, not including, to as slices
// that together are the part asked for. They are the sequence's own: they must
// not be changed.
func (s *Sequence[E]) Runs(from, to int) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		for i := from; i < to; {
			elems, first := Chunk[E](&s.list, i)
			run := elems[i-first : min(len(elems), to-first)]
			if i += len(run); !yield(run[:len(run):len(run)]) {
				return
			}
		}
	}
}

// All yields the elements and their indexes.
func (s *Sequence[E]) All() iter.Seq2[int, E] {
	return func(yield func(int, E) bool) {
		for i := range s.list.len {
			if !yield(i, s.At(i)) {
				return
			}
		}
	}
}

// typedKind is kindOf for []E, which need not be declared.
func typedKind[E any]() *kind {
	typ := reflect.TypeFor[[]E]()
	if k, ok := kinds.Load(typ); ok {
		return k.(*kind)
	}
	k, _ := kinds.LoadOrStore(typ, &kind{typ, typed[E]{}})
	return k.(*kind)
}
