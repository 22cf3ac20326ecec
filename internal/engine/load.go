package engine

// VersionCount is the number of versions that changed addresses of exactly
// these visibility classes. The versions of all views follow from these counts.
type VersionCount struct {
	Classes  []int
	Versions uint64
}

// VersionCounts returns the counts of a frozen branch.
func (b *Branch) VersionCounts() []VersionCount {
	t := b.tree.Load()
	var counts []VersionCount
	for class := range t.classes {
		if n := t.classes[class].versions; n > 0 {
			counts = append(counts, VersionCount{[]int{class}, n})
		}
	}
	for _, m := range t.mixed {
		if m.versions == 0 {
			continue
		}
		c := VersionCount{Versions: m.versions}
		for class := range t.classes {
			if m.classes.Has(class) {
				c.Classes = append(c.Classes, class)
			}
		}
		counts = append(counts, c)
	}
	return counts
}

// Loader fills a new branch, which no other goroutine uses, with the content of
// a version.
type Loader struct {
	branch *Branch
	tree   *Tree
	// Version is the version that the branch is to have. Its journals begin
	// after it.
	Version uint64
}

// NewLoader returns a loader for an empty branch.
func NewLoader(b *Branch, version uint64) *Loader {
	return &Loader{b, b.tree.Load().clone(), version}
}

// Put sets an address. It reports false if the address is set already.
func (l *Loader) Put(a Address, m Merged) bool {
	if l.tree.Get(a) != nil {
		return false
	}
	c := &Cell{Value: m.Value, Size: m.Size, born: l.Version}
	l.tree.put(a, c)
	l.tree.noteSet(a.Slot, nil, c)
	return true
}

// Count adds to the counts of versions.
func (l *Loader) Count(c VersionCount) {
	touched := NewBits(len(l.tree.classes))
	for _, class := range c.Classes {
		touched.Add(class)
	}
	l.tree.countVersions(touched, int(c.Versions))
}

// Done publishes what was loaded.
func (l *Loader) Done() {
	b := l.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forked = l.Version
	b.publish(l.tree, l.Version)
}
