package engine

import (
	"maps"
	"sync"
)

// readSet notes which addresses a transaction has read. Forks of a transaction
// note their reads in the same set.
type readSet struct {
	outer *readSet // of the transaction around it

	mu        sync.Mutex // guards what follows
	addresses map[Address]bool
	listed    bool // the transaction asked which addresses are set
	versions  bool // it asked how many versions there are
}

func newReadSet(outer *readSet) *readSet {
	return &readSet{outer: outer, addresses: map[Address]bool{}}
}

// add notes that a cell was read.
func (r *readSet) add(a Address) {
	for ; r != nil; r = r.outer {
		r.mu.Lock()
		r.addresses[a] = true
		r.mu.Unlock()
	}
}

// list notes that the set addresses were listed.
func (r *readSet) list() {
	for ; r != nil; r = r.outer {
		r.mu.Lock()
		r.listed = true
		r.mu.Unlock()
	}
}

// countVersions notes that the version was read.
func (r *readSet) countVersions() {
	for ; r != nil; r = r.outer {
		r.mu.Lock()
		r.versions = true
		r.mu.Unlock()
	}
}

// all returns the addresses that were read, whether they were listed, and
// whether the version was read.
func (r *readSet) all() (addresses map[Address]bool, listed, versions bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.addresses), r.listed, r.versions
}
