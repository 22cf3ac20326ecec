package engine

import "github.com/agentstate/state/internal/persist"

// VersionCount is a number of versions. The versions of all views follow from
// these counts.
type VersionCount struct {
	// Classes are visibility classes that the versions changed. A version that
	// changed several classes, of which none has all readers of another one,
	// is counted for each of its readers; counts with one class then have it
	// in Shared.
	Classes  []int
	Versions uint64
	Shared   uint64
	// Reader is 1 more than the number of the reader for whom versions of
	// several classes are counted. There are no Classes then.
	Reader int
}

// VersionCounts returns the counts of a frozen branch.
func (b *Branch) VersionCounts() []VersionCount {
	t := b.tree.Load()
	var counts []VersionCount
	for class := range b.layout.Classes {
		if c := &t.classes.at(class).count; c.alone > 0 || c.shared > 0 {
			counts = append(counts, VersionCount{Classes: []int{class}, Versions: c.alone, Shared: c.shared})
		}
	}
	for reader := range b.layout.Readers {
		if n := *t.mixed.at(reader); n > 0 {
			counts = append(counts, VersionCount{Reader: reader + 1, Versions: n})
		}
	}
	return counts
}

// Loader fills a new branch, which no other goroutine uses, with the content of
// a version.
type Loader struct {
	branch *Branch
	tree   *Tree
	keys   []persist.Entry[Cell]
	// Version is the version that the branch is to have. Its journals begin
	// after it.
	Version uint64
}

// NewLoader returns a loader for an empty branch.
func NewLoader(b *Branch, version uint64) *Loader {
	return &Loader{branch: b, tree: b.tree.Load().clone(), Version: version}
}

// Put sets an address. It reports false if the address is set already. Keys are
// collected for PutKeys.
func (l *Loader) Put(a Address, m Merged) bool {
	c := &Cell{Value: m.Value, Size: m.Size, born: l.Version}
	if a.Slot.Keyed {
		l.keys = append(l.keys, persist.Entry[Cell]{Key: a.Key, Value: c})
	} else if l.tree.Get(a) != nil {
		return false
	} else {
		l.tree.put(a, c)
	}
	l.tree.noteSet(a.Slot, nil, c)
	return true
}

// PutKeys sets the keys that Put has got. If it has got one twice, PutKeys
// returns that key and sets none.
func (l *Loader) PutKeys() (double string, ok bool) { return l.tree.keys.Fill(l.tree.owner, l.keys) }

// Count adds to the counts of versions.
func (l *Loader) Count(c VersionCount) {
	t := l.tree
	if c.Reader > 0 {
		*t.mixed.own(t.tables, c.Reader-1) += c.Versions
		return
	}
	if len(c.Classes) == 1 {
		t.classes.own(t.tables, c.Classes[0]).count.shared += c.Shared
	}
	t.countVersions(l.branch.layout, c.Classes, int64(c.Versions))
}

// Done publishes what was loaded.
func (l *Loader) Done() {
	b := l.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forked = l.Version
	b.publish(l.tree, l.Version)
}
