package otelstate

import (
	"testing"

	"github.com/agentstate/state/store"
)

// A traced store has the optional interfaces that the store has, and no others.
func TestShapes(t *testing.T) {
	for shape := range 64 {
		if shape&hasTransactor != 0 && shape&hasBatcher == 0 {
			continue // a Transactor is a Batcher
		}
		s := (&tracedStore{}).shaped(shape)
		for bit, has := range map[int]bool{
			hasBatcher: is[store.Batcher](s), hasWatcher: is[store.Watcher](s), hasLister: is[store.Lister](s),
			hasPresence: is[store.Presence](s), hasPurger: is[store.Purger](s), hasTransactor: is[store.Transactor](s),
		} {
			if has != (shape&bit != 0) {
				t.Errorf("shape %06b: interface %06b is %v", shape, bit, has)
			}
		}
	}
}
