package engine

import "github.com/agentstate/state/internal/persist"

// Loader fills a new branch, which no other goroutine uses, with the content of
// a version.
type Loader struct {
	branch *Branch
	tree   *Tree
	keys   []persist.Entry[Cell]
	// Version is the version that the branch is to have. Its journal begins
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

// Done publishes what was loaded.
func (l *Loader) Done() {
	b := l.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forked = l.Version
	b.publish(l.tree, l.Version)
}
