package persist

import (
	"iter"
	"sync/atomic"
)

// Sequence is an immutable list of a known element type. It is a [List] without
// reflection, as a value: the zero Sequence is empty.
//
// All methods are safe for concurrent use, including while other sequences that
// share chunks with it grow.
type Sequence[E any] struct {
	full []*sequenceChunk[E] // the chunks before the tail, chunkLen elements each
	tail *sequenceChunk[E]   // nil in an empty sequence
	len  int
}

// sequenceChunk is a run of elements. Those before used are never written
// again.
type sequenceChunk[E any] struct {
	elems []E // of fixed length
	used  atomic.Int64
}

// NewSequence returns an empty sequence with room for n elements.
func NewSequence[E any](n int) Sequence[E] {
	if n <= 0 {
		return Sequence[E]{}
	}
	return Sequence[E]{tail: &sequenceChunk[E]{elems: make([]E, min(n, chunkLen))}}
}

// Len returns the number of elements.
func (s *Sequence[E]) Len() int { return s.len }

// At returns element i.
func (s *Sequence[E]) At(i int) E { return s.chunk(i / chunkLen).elems[i%chunkLen] }

func (s *Sequence[E]) chunk(i int) *sequenceChunk[E] {
	if i < len(s.full) {
		return s.full[i]
	}
	return s.tail
}

// Append returns the sequence with one more element.
func (s Sequence[E]) Append(e E) Sequence[E] {
	at := s.len - len(s.full)*chunkLen
	if s.tail == nil || at == len(s.tail.elems) || !s.tail.used.CompareAndSwap(int64(at), int64(at+1)) {
		// The tail is missing, full, or another sequence has taken the place.
		old := s.tail
		if at == chunkLen {
			s.full = append(s.full[:len(s.full):len(s.full)], old)
			old, at = nil, 0
		}
		size := chunkLen
		if len(s.full) == 0 {
			size = min(chunkLen, max(4, 2*at))
		}
		s.tail = &sequenceChunk[E]{elems: make([]E, size)}
		if old != nil {
			copy(s.tail.elems, old.elems[:at])
		}
		s.tail.used.Store(int64(at + 1))
	}
	s.tail.elems[at] = e
	s.len++
	return s
}

// Take returns the sequence of the first n elements.
func (s Sequence[E]) Take(n int) Sequence[E] {
	if n >= s.len {
		return s
	}
	if n <= 0 {
		return Sequence[E]{}
	}
	last := (n - 1) / chunkLen
	return Sequence[E]{full: s.full[:min(last, len(s.full))], tail: s.chunk(last), len: n}
}

// Common returns the number of leading elements that both sequences have in
// the same chunks. Elements after these may be equal too.
func (s *Sequence[E]) Common(o *Sequence[E]) int {
	n := min(s.len, o.len)
	for i := 0; i*chunkLen < n; i++ {
		if s.chunk(i) != o.chunk(i) {
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
			at := i % chunkLen
			k := min(chunkLen-at, to-i)
			if !yield(s.chunk(i / chunkLen).elems[at : at+k : at+k]) {
				return
			}
			i += k
		}
	}
}

// All yields the elements and their indexes.
func (s *Sequence[E]) All() iter.Seq2[int, E] {
	return func(yield func(int, E) bool) {
		i := 0
		for run := range s.Runs(0, s.len) {
			for _, e := range run {
				if !yield(i, e) {
					return
				}
				i++
			}
		}
	}
}
