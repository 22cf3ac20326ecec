package persist

import (
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
)

// chunkLen is the length of a full chunk, and so the most that is copied when a
// branch appends to a list whose tail another branch has taken.
const chunkLen = 256

// List is an immutable list: a header on chunks of at most chunkLen elements.
// Headers share chunks. Each reads only the elements between its own ends, and
// the places after the last one are claimed by compare-and-swap: the first to
// append writes in place, and any other copies one chunk.
//
// Elements that a list has dropped stay in its first chunk. It is copied when it
// may hold more of those than the list has elements, by number or by bytes: a
// list keeps alive at most twice what it shows.
//
// All methods are safe for concurrent use, including while other lists that
// share chunks with it grow.
type List struct {
	kind   *kind
	chunks []*chunk // all but the last have chunkLen places
	first  int      // the place of the first element in the first chunk
	len    int
	bytes  int
	stale  int // of dropped elements in the first chunk, at most: bytes, and 1 for each
}

// chunk is a run of elements. Those before used are never written again.
type chunk struct {
	elems any // a slice of len elements
	len   int
	used  atomic.Int64
}

// NewList returns the empty list of a slice type.
func NewList(typ reflect.Type) *List { return &List{kind: kindOf(typ)} }

// Len returns the number of elements.
func (l *List) Len() int { return l.len }

// Bytes returns the sizes given to Append, added up, less what was dropped.
func (l *List) Bytes() int { return l.bytes }

// Append returns the list with the elements of v added, which is a slice of the
// list's type. They are assigned, not copied deeply; size is what they add to
// Bytes.
func (l *List) Append(v any, size int) *List {
	next := *l
	next.bytes += size
	for i, n := 0, l.kind.length(v); i < n; {
		c, at, k := next.claim(n - i)
		l.kind.copy(c.elems, at, v, i, i+k)
		next.len += k
		i += k
	}
	return &next
}

// claim gives the list, a header that no other code has seen yet, the next k
// places of its last chunk, which begin at index at; 1 ≤ k ≤ want.
func (l *List) claim(want int) (c *chunk, at, k int) {
	last := len(l.chunks) - 1
	at = l.first + l.len - last*chunkLen
	if last < 0 {
		at = 0
	} else {
		c = l.chunks[last]
		k = min(want, c.len-at)
		if k > 0 && c.used.CompareAndSwap(int64(at), int64(at+k)) {
			return c, at, k
		}
	}
	// The chunk is missing or full, or another list has taken the place.
	old, first := c, 0
	if at == chunkLen {
		last, old, at = last+1, nil, 0
	}
	size := chunkLen
	if last <= 0 {
		last, first, l.stale = 0, l.first, 0
		size = min(chunkLen, max(4, 2*at, at+want))
	}
	k = min(want, size-at)
	c = l.kind.newChunk(size, at+k)
	if old != nil {
		l.kind.copy(c.elems, first, old.elems, first, at)
	}
	l.chunks = append(l.chunks[:last:last], c)
	return c, at, k
}

// DropFirst returns the list without its first n elements, which counted size
// in Bytes.
func (l *List) DropFirst(n, size int) *List {
	if n <= 0 {
		return l
	}
	if n >= l.len {
		return &List{kind: l.kind}
	}
	next := *l
	next.first += n
	next.len -= n
	next.bytes -= size
	if next.first >= chunkLen {
		next.chunks = slices.Clone(next.chunks[next.first/chunkLen:]) // the array would keep the others
		next.first %= chunkLen
		next.stale = 0
	}
	if next.stale += size + n; next.stale > next.bytes+next.len {
		next.copyChunk(0)
		next.stale = 0
	}
	return &next
}

// Take returns the list of the first n elements, which count size in Bytes.
func (l *List) Take(n, size int) *List {
	if n >= l.len {
		return l
	}
	if n <= 0 {
		return &List{kind: l.kind}
	}
	next := *l
	next.len, next.bytes = n, size
	last := (next.first + n - 1) / chunkLen
	next.chunks = slices.Clone(next.chunks[:last+1])
	if next.first+n < (last+1)*chunkLen {
		next.copyChunk(last) // or the next Append would
	}
	return &next
}

// copyChunk replaces a chunk of the list, a header that no other code has seen
// yet, by a copy with only the list's own elements.
func (l *List) copyChunk(i int) {
	at, from, to := 0, 0, min(chunkLen, l.first+l.len-i*chunkLen)
	size := chunkLen
	if i == 0 {
		at, from = l.first, l.first
	}
	if len(l.chunks) == 1 {
		at, l.first = 0, 0
		size = min(chunkLen, max(4, l.len))
	}
	c := l.kind.newChunk(size, at+to-from)
	l.kind.copy(c.elems, at, l.chunks[i].elems, from, to)
	l.chunks = slices.Clone(l.chunks)
	l.chunks[i] = c
}

// Index returns element i. It must not be changed.
func (l *List) Index(i int) reflect.Value {
	i += l.first
	return reflect.ValueOf(l.chunks[i/chunkLen].elems).Index(i % chunkLen)
}

// Chunk returns the elements of a list of type []E that lie in one piece with
// element i, and the index of the first. They are the list's own: they must not
// be changed.
func Chunk[E any](l *List, i int) (elems []E, first int) {
	c := (l.first + i) / chunkLen
	from, to := max(l.first, c*chunkLen), min(l.first+l.len, (c+1)*chunkLen)
	return l.chunks[c].elems.([]E)[from-c*chunkLen : to-c*chunkLen : to-c*chunkLen], from - l.first
}

// At returns element i of a list of type []E.
func At[E any](l *List, i int) E {
	i += l.first
	return l.chunks[i/chunkLen].elems.([]E)[i%chunkLen]
}

// Shared reports which elements the list has from an earlier one, as far as
// both share chunks: its first n are those of old from index from on.
func (l *List) Shared(old *List) (from, n int) {
	// The first chunk may be a copy that has the same elements, and the last one
	// too.
	for skip := range min(2, len(l.chunks)) {
		c := slices.Index(old.chunks, l.chunks[skip]) - skip
		if from = c*chunkLen + l.first - old.first; c < -skip || from < 0 {
			continue
		}
		end := skip
		for end < min(len(l.chunks), len(old.chunks)-c) && l.chunks[end] == old.chunks[c+end] {
			end++
		}
		if n = min(end*chunkLen-l.first, l.len, old.len-from); n > 0 {
			return from, n
		}
	}
	return 0, 0
}

// Follows is Shared for a list that follows the earlier one, by Append and DropFirst.
// It looks at the end of that one only: what stands in front of a chunk that two lists
// have is the same in both, as far as they have it.
func (l *List) Follows(old *List) (from, n int) {
	for skip := range min(2, len(old.chunks)) { // another branch may have taken the last one
		at := len(old.chunks) - 1 - skip
		i := slices.Index(l.chunks, old.chunks[at])
		if from = (at-i)*chunkLen + l.first - old.first; i < 0 || from < 0 {
			continue
		}
		if n = min((i+1)*chunkLen-l.first, l.len, old.len-from); n > 0 {
			return from, n
		}
	}
	return 0, 0
}

// Runs yields the elements from index from up to, not including, to as slices
// that together are the part asked for. They are the list's own: they must not
// be changed.
func (l *List) Runs(from, to int) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for i := l.first + from; i < l.first+to; {
			at := i % chunkLen
			k := min(chunkLen-at, l.first+to-i)
			if !yield(reflect.ValueOf(l.chunks[i/chunkLen].elems).Slice3(at, at+k, at+k)) {
				return
			}
			i += k
		}
	}
}

// Slice returns a new slice with the elements from index from up to, not
// including, to. The elements are shared with the list.
func (l *List) Slice(from, to int) any {
	s := l.kind.make(to - from)
	for n, i := 0, l.first+from; i < l.first+to; {
		at := i % chunkLen
		k := min(chunkLen-at, l.first+to-i)
		l.kind.copy(s, n, l.chunks[i/chunkLen].elems, at, at+k)
		n, i = n+k, i+k
	}
	return s
}

// SliceOf is [List.Slice] for a list of type []E.
func SliceOf[E any](l *List, from, to int) []E {
	s := make([]E, 0, to-from)
	for i, end := l.first+from, l.first+to; i < end; {
		at := i % chunkLen
		k := min(chunkLen-at, end-i)
		s = append(s, l.chunks[i/chunkLen].elems.([]E)[at:at+k]...)
		i += k
	}
	return s
}

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
