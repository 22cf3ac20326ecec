package persist

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
)

const (
	levelBits = 5  // one level of the trie looks at this many bits of the hash
	hashBits  = 64 // below a level that starts here, keys differ in nothing but their text
)

var seed = maphash.MakeSeed()

func hashOf(key string) uint64 { return maphash.String(seed, key) }

// Map maps strings to pointers. The zero Map is empty. A Map must not be
// copied; see Share.
//
// One goroutine at a time may call Set, Delete or Share on a Map. Get may run
// at the same time, and sees each key as it was before or after the write. Maps
// that share nodes are independent of one another.
type Map[V any] struct {
	root atomic.Pointer[node[V]]
}

// node has a leaf or a child for each hash fragment whose bit is set in leafSet
// or childSet, in order of the fragment. What can change is only where an
// atomic pointer points, and only by the writer that owns the node; to gain or
// lose a leaf or child, a node is replaced by another one.
//
// A node below the last bit of the hash has both sets empty and any number of
// leaves, in no order.
type node[V any] struct {
	owner    uint64
	leafSet  uint32
	childSet uint32
	leaves   []leaf[V]
	children []atomic.Pointer[node[V]]
}

type leaf[V any] struct {
	key   string
	value atomic.Pointer[V]
}

// Get returns the value of key, or nil if m has none. It takes no lock.
func (m *Map[V]) Get(key string) *V { return m.get(hashOf(key), key) }

// Set gives key the value v, which must not be nil, and returns the value it
// replaces, or nil.
//
// Nodes that were made with the same owner are changed in place; all others on
// the way to key are copied. Owner must not be zero, nor be a number that was
// used on any map that shares nodes with m, except by m itself since it last
// took part in a Share.
func (m *Map[V]) Set(owner uint64, key string, v *V) (old *V) {
	return m.set(owner, hashOf, key, v)
}

// Delete removes key and returns its value, or nil if m has none. For owner see
// Set.
func (m *Map[V]) Delete(owner uint64, key string) (old *V) {
	return m.delete(owner, hashOf(key), key)
}

// Share makes dst, whatever it held, an independent map with the content of m,
// in constant time. Afterwards the writers of m and of dst must each use an
// owner that has never been used before.
func (m *Map[V]) Share(dst *Map[V]) { dst.root.Store(m.root.Load()) }

// All yields each key and its value, in no particular order. The map must not
// change meanwhile.
func (m *Map[V]) All() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		if root := m.root.Load(); root != nil {
			root.each(yield)
		}
	}
}

func (m *Map[V]) get(hash uint64, key string) *V {
	n := m.root.Load()
	for rest := hash; n != nil; rest >>= levelBits {
		bit := fragment(rest)
		if n.childSet&bit != 0 {
			n = n.children[index(n.childSet, bit)].Load()
			continue
		}
		if n.leafSet&bit != 0 {
			if l := &n.leaves[index(n.leafSet, bit)]; l.key == key {
				return l.value.Load()
			}
			return nil
		}
		if n.childSet|n.leafSet == 0 {
			if i := n.find(key); i >= 0 {
				return n.leaves[i].value.Load()
			}
		}
		return nil
	}
	return nil
}

func (m *Map[V]) set(owner uint64, hashOf func(string) uint64, key string, v *V) (old *V) {
	hash := hashOf(key)
	slot := &m.root
	for shift := 0; ; shift += levelBits {
		n := slot.Load()
		if n == nil {
			n = &node[V]{}
		}
		i, bit := -1, uint32(0)
		if shift < hashBits {
			bit = fragment(hash >> shift)
			if n.childSet&bit != 0 {
				// A copy says the same as the original, so it may be published
				// before the write.
				n = n.own(owner, slot)
				slot = &n.children[index(n.childSet, bit)]
				continue
			}
			if n.leafSet&bit != 0 {
				i = index(n.leafSet, bit)
			}
		} else {
			i = n.find(key)
		}
		switch {
		case i < 0:
			slot.Store(n.withLeaf(owner, bit, key, v))
			return nil
		case n.leaves[i].key == key:
			n = n.own(owner, slot)
			return n.leaves[i].value.Swap(v)
		default:
			l := &n.leaves[i]
			below := pair(owner, shift+levelBits, hashOf(l.key), l, hash, key, v)
			slot.Store(n.withChild(owner, bit, below))
			return nil
		}
	}
}

func (m *Map[V]) delete(owner, hash uint64, key string) (old *V) {
	n := m.root.Load()
	if n == nil {
		return nil
	}
	next, old := n.without(owner, 0, hash, key)
	if next != n {
		m.root.Store(next)
	}
	return old
}

// without returns what takes the place of n once key is gone: n itself if there
// is nothing to replace, nil if nothing is left.
func (n *node[V]) without(owner uint64, shift int, hash uint64, key string) (next *node[V], old *V) {
	i, bit := -1, uint32(0)
	if shift < hashBits {
		bit = fragment(hash >> shift)
		if n.childSet&bit != 0 {
			slot := &n.children[index(n.childSet, bit)]
			child := slot.Load()
			below, old := child.without(owner, shift+levelBits, hash, key)
			switch {
			case below == child:
				return n, old
			case len(below.leaves) == 1 && len(below.children) == 0:
				return n.withLeafForChild(owner, bit, &below.leaves[0]), old
			case n.owner != owner:
				n = n.clone(owner)
				slot = &n.children[index(n.childSet, bit)]
			}
			slot.Store(below)
			return n, old
		}
		if n.leafSet&bit != 0 {
			if j := index(n.leafSet, bit); n.leaves[j].key == key {
				i = j
			}
		}
	} else {
		i = n.find(key)
	}
	if i < 0 {
		return n, nil
	}
	old = n.leaves[i].value.Load()
	if len(n.leaves) == 1 && len(n.children) == 0 {
		return nil, old
	}
	next = &node[V]{owner: owner, leafSet: n.leafSet &^ bit, childSet: n.childSet, children: slices.Clone(n.children)}
	next.leaves = remove(n.leaves, i)
	return next, old
}

// own returns n if owner may change it, and otherwise a copy, which it stores
// in slot.
func (n *node[V]) own(owner uint64, slot *atomic.Pointer[node[V]]) *node[V] {
	if n.owner != owner {
		n = n.clone(owner)
		slot.Store(n)
	}
	return n
}

func (n *node[V]) clone(owner uint64) *node[V] {
	return &node[V]{
		owner: owner, leafSet: n.leafSet, childSet: n.childSet,
		leaves: slices.Clone(n.leaves), children: slices.Clone(n.children),
	}
}

// withLeaf returns a copy of n that has one more leaf: at bit, or at the end if
// bit is zero.
func (n *node[V]) withLeaf(owner uint64, bit uint32, key string, v *V) *node[V] {
	i := len(n.leaves)
	if bit != 0 {
		i = index(n.leafSet, bit)
	}
	next := &node[V]{owner: owner, leafSet: n.leafSet | bit, childSet: n.childSet, children: slices.Clone(n.children)}
	next.leaves = insert(n.leaves, i)
	l := &next.leaves[i]
	l.key = key
	l.value.Store(v)
	return next
}

// withChild returns a copy of n that has child in place of the leaf at bit.
func (n *node[V]) withChild(owner uint64, bit uint32, child *node[V]) *node[V] {
	next := &node[V]{owner: owner, leafSet: n.leafSet &^ bit, childSet: n.childSet | bit}
	next.leaves = remove(n.leaves, index(n.leafSet, bit))
	i := index(n.childSet, bit)
	next.children = insert(n.children, i)
	next.children[i].Store(child)
	return next
}

// withLeafForChild returns a copy of n that has l in place of the child at bit.
func (n *node[V]) withLeafForChild(owner uint64, bit uint32, l *leaf[V]) *node[V] {
	rest := &node[V]{leafSet: n.leafSet, childSet: n.childSet &^ bit, leaves: n.leaves}
	rest.children = remove(n.children, index(n.childSet, bit))
	return rest.withLeaf(owner, bit, l.key, l.value.Load())
}

// pair returns a subtree for the level at shift with two leaves: a copy of l,
// and that of key, each with its hash.
func pair[V any](owner uint64, shift int, lHash uint64, l *leaf[V], hash uint64, key string, v *V) *node[V] {
	if shift < hashBits {
		bit := fragment(hash >> shift)
		if bit == fragment(lHash>>shift) {
			n := &node[V]{owner: owner, childSet: bit, children: make([]atomic.Pointer[node[V]], 1)}
			n.children[0].Store(pair(owner, shift+levelBits, lHash, l, hash, key, v))
			return n
		}
	}
	n := &node[V]{owner: owner, leaves: make([]leaf[V], 1)}
	n.leaves[0].key = l.key
	n.leaves[0].value.Store(l.value.Load())
	if shift >= hashBits {
		return n.withLeaf(owner, 0, key, v)
	}
	n.leafSet = fragment(lHash >> shift)
	return n.withLeaf(owner, fragment(hash>>shift), key, v)
}

// find returns where key is in a node below the last bit of the hash, or -1.
func (n *node[V]) find(key string) int {
	for i := range n.leaves {
		if n.leaves[i].key == key {
			return i
		}
	}
	return -1
}

func (n *node[V]) each(yield func(string, *V) bool) bool {
	for i := range n.leaves {
		if l := &n.leaves[i]; !yield(l.key, l.value.Load()) {
			return false
		}
	}
	for i := range n.children {
		if !n.children[i].Load().each(yield) {
			return false
		}
	}
	return true
}

func fragment(hash uint64) uint32 { return 1 << (hash & (1<<levelBits - 1)) }

// index returns the place of bit among the bits of set.
func index(set, bit uint32) int { return bits.OnesCount32(set & (bit - 1)) }

// Nodes are copied by plain loads and stores of their atomic pointers: only the
// writer that makes the copy could change the original, and no other code has
// seen the copy yet.

// insert returns a copy of s with a zero element at i.
func insert[E any](s []E, i int) []E {
	c := make([]E, len(s)+1)
	copy(c, s[:i])
	copy(c[i+1:], s[i:])
	return c
}

// remove returns a copy of s without the element at i.
func remove[E any](s []E, i int) []E {
	c := make([]E, len(s)-1)
	copy(c, s[:i])
	copy(c[i:], s[i+1:])
	return c
}

// An Entry is a key and its value, which is not nil.
type Entry[V any] struct {
	Key   string
	Value *V

	hash uint64
}

// Fill gives an empty map its first content, in the time of one copy: every
// node is made once, in its final size. The key of two entries is returned as
// double, and then the map stays empty. Fill changes the order of the entries.
// For owner see [Map.Set].
func (m *Map[V]) Fill(owner uint64, entries []Entry[V]) (double string, ok bool) {
	for i := range entries {
		entries[i].hash = maphash.String(seed, entries[i].Key)
	}
	return m.fill(owner, entries)
}

// fill is Fill for entries with their hashes.
func (m *Map[V]) fill(owner uint64, entries []Entry[V]) (double string, ok bool) {
	if len(entries) == 0 {
		return "", true
	}
	f := filler[V]{owner: owner}
	root := f.node(0, entries, make([]Entry[V], len(entries)))
	if f.found {
		return f.double, false
	}
	m.root.Store(root)
	return "", true
}

type filler[V any] struct {
	owner  uint64
	double string // a key that two entries have, if found is set
	found  bool
}

// node returns the subtree of entries, which are equal in the bits of the hash
// below shift. It uses buffer, which is as long, and changes the order of both.
func (f *filler[V]) node(shift int, entries, buffer []Entry[V]) *node[V] {
	n := &node[V]{owner: f.owner}
	if shift >= hashBits {
		n.leaves = make([]leaf[V], len(entries))
		for i := range entries {
			if f.findDouble(entries[:i], entries[i].Key) {
				break
			}
			n.leaves[i].set(&entries[i])
		}
		return n
	}
	var ends [1 << levelBits]int // of the entries with each fragment, in buffer
	for i := range entries {
		ends[place(entries[i].hash>>shift)]++
	}
	leaves, children, end := 0, 0, 0
	for at, count := range ends {
		switch {
		case count == 1:
			n.leafSet |= 1 << at
			leaves++
		case count > 1:
			n.childSet |= 1 << at
			children++
		}
		ends[at], end = end, end+count
	}
	for i := range entries {
		at := place(entries[i].hash >> shift)
		buffer[ends[at]] = entries[i]
		ends[at]++
	}
	if leaves > 0 {
		n.leaves = make([]leaf[V], 0, leaves)
	}
	if children > 0 {
		n.children = make([]atomic.Pointer[node[V]], children)
	}
	start, child := 0, 0
	for _, end := range ends {
		switch {
		case end-start == 1:
			n.leaves = n.leaves[:len(n.leaves)+1]
			n.leaves[len(n.leaves)-1].set(&buffer[start])
		case end-start > 1:
			n.children[child].Store(f.node(shift+levelBits, buffer[start:end], entries[start:end]))
			child++
		}
		start = end
	}
	return n
}

// findDouble reports whether one of entries has the key, and notes it.
func (f *filler[V]) findDouble(entries []Entry[V], key string) bool {
	for i := range entries {
		if entries[i].Key == key {
			f.double, f.found = key, true
		}
	}
	return f.found
}

func (l *leaf[V]) set(e *Entry[V]) {
	l.key = e.Key
	l.value.Store(e.Value)
}

// place returns the number of the bit that fragment returns.
func place(hash uint64) int { return int(hash & (1<<levelBits - 1)) }
