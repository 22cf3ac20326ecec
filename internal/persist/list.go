package persist

import (
	"iter"
	"reflect"
	"sync/atomic"
)

// chunkLen is the length of a full chunk, and so the most that is copied when a
// branch appends to a list whose tail another branch has taken.
const chunkLen = 256

// List is an immutable list: a header on chunks of at most chunkLen elements.
// Headers share chunks. Each reads only the elements before its own end, and
// the places after the last one are claimed by compare-and-swap: the first to
// append writes in place, and any other copies one chunk. The element type is
// known by reflection only.
//
// All methods are safe for concurrent use, including while other lists that
// share chunks with it grow.
type List struct {
	typ   reflect.Type // the slice type
	full  []*chunk     // the chunks before the tail, chunkLen elements each
	tail  *chunk       // nil in an empty list
	first int          // how many elements of the first chunk were dropped
	len   int
	bytes int
}

// chunk is a run of elements. Those before used are never written again.
type chunk struct {
	elems reflect.Value // a slice of fixed length
	used  atomic.Int64
}

func newChunk(typ reflect.Type, n int) *chunk {
	return &chunk{elems: reflect.MakeSlice(typ, n, n)}
}

// NewList returns the empty list of a slice type.
func NewList(typ reflect.Type) *List { return &List{typ: typ} }

// Len returns the number of elements.
func (l *List) Len() int { return l.len }

// Bytes returns the sizes given to Append, added up, less what was dropped.
func (l *List) Bytes() int { return l.bytes }

// Type returns the slice type.
func (l *List) Type() reflect.Type { return l.typ }

// Append returns the list with the elements of the slice v added. They are
// assigned, not copied deeply; size is what they add to Bytes.
func (l *List) Append(v reflect.Value, size int) *List {
	next := *l
	next.bytes += size
	for i, n := 0, v.Len(); i < n; {
		at, k := next.claim(n - i)
		if k == 1 {
			next.tail.elems.Index(at).Set(v.Index(i))
		} else {
			reflect.Copy(next.tail.elems.Slice(at, at+k), v.Slice(i, i+k))
		}
		next.len += k
		i += k
	}
	return &next
}

// claim gives the list, a header that no other code has seen yet, the next k
// places of its tail, which begin at index at; 1 ≤ k ≤ want.
func (l *List) claim(want int) (at, k int) {
	at = l.first + l.len - len(l.full)*chunkLen
	if l.tail != nil {
		k = min(want, l.tail.elems.Len()-at)
		if k > 0 && l.tail.used.CompareAndSwap(int64(at), int64(at+k)) {
			return at, k
		}
	}
	// The tail is missing, full, or another list has taken the place.
	old := l.tail
	if at == chunkLen {
		l.full = append(l.full[:len(l.full):len(l.full)], old)
		old, at = nil, 0
	}
	size := chunkLen
	if len(l.full) == 0 {
		size = min(chunkLen, max(4, 2*at, at+want))
	}
	l.tail = newChunk(l.typ, size)
	if old != nil {
		reflect.Copy(l.tail.elems, old.elems.Slice(0, at))
	}
	k = min(want, size-at)
	l.tail.used.Store(int64(at + k))
	return at, k
}

// DropFirst returns the list without its first n elements, which counted size
// in Bytes.
func (l *List) DropFirst(n, size int) *List {
	if n <= 0 {
		return l
	}
	if n >= l.len {
		return NewList(l.typ)
	}
	next := *l
	next.first += n
	next.len -= n
	next.bytes -= size
	for next.first >= chunkLen {
		next.full = next.full[1:]
		next.first -= chunkLen
	}
	return &next
}

// Take returns the list of the first n elements, which count size in Bytes.
func (l *List) Take(n, size int) *List {
	if n >= l.len {
		return l
	}
	if n <= 0 {
		return NewList(l.typ)
	}
	next := *l
	next.len, next.bytes = n, size
	last := (l.first + n - 1) / chunkLen
	next.tail = l.chunk(last)
	next.full = l.full[:min(last, len(l.full))]
	return &next
}

// Index returns element i. It must not be changed.
func (l *List) Index(i int) reflect.Value {
	i += l.first
	return l.chunk(i / chunkLen).elems.Index(i % chunkLen)
}

func (l *List) chunk(i int) *chunk {
	if i < len(l.full) {
		return l.full[i]
	}
	return l.tail
}

// Shared reports which elements the list has from an earlier one, as far as
// both share chunks: its first n are those of old from index from on.
func (l *List) Shared(old *List) (from, n int) {
	for c := range old.chunks() {
		if old.chunk(c) != l.chunk(0) {
			continue
		}
		from = c*chunkLen + l.first - old.first
		if from < 0 {
			return 0, 0
		}
		for i := 0; i < l.chunks() && c+i < old.chunks() && l.chunk(i) == old.chunk(c+i); i++ {
			n = (i+1)*chunkLen - l.first
		}
		if n = min(n, l.len, old.len-from); n <= 0 {
			return 0, 0
		}
		return from, n
	}
	return 0, 0
}

// chunks returns how many chunks the elements are in.
func (l *List) chunks() int { return (l.first + l.len + chunkLen - 1) / chunkLen }

// Runs yields the elements from index from up to, not including, to as slices
// that together are the part asked for. They are the list's own: they must not
// be changed.
func (l *List) Runs(from, to int) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for i := l.first + from; i < l.first+to; {
			at := i % chunkLen
			k := min(chunkLen-at, l.first+to-i)
			if !yield(l.chunk(i/chunkLen).elems.Slice3(at, at+k, at+k)) {
				return
			}
			i += k
		}
	}
}

// Slice returns a new slice with the elements from index from up to, not
// including, to. The elements are shared with the list.
func (l *List) Slice(from, to int) reflect.Value {
	s := reflect.MakeSlice(l.typ, to-from, to-from)
	n := 0
	for run := range l.Runs(from, to) {
		n += reflect.Copy(s.Slice(n, s.Len()), run)
	}
	return s
}
