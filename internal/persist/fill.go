package persist

import (
	"hash/maphash"
	"sync/atomic"
)

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
