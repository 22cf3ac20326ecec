// Package told keeps the names of which a program was told, so that it is told of each
// once.
package told

import "sync"

// most bounds the names that are kept: some come from outside.
const most = 1000

// Names is a set of names. The zero Names is empty. It is safe for concurrent use.
type Names struct {
	mu    sync.Mutex
	names map[string]bool
}

// Add adds a name, and reports whether it is a new one. It takes 1000 names.
func (n *Names) Add(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names[name] || len(n.names) >= most {
		return false
	}
	if n.names == nil {
		n.names = map[string]bool{}
	}
	n.names[name] = true
	return true
}
