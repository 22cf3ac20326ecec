package fakestore

import (
	"context"
	"errors"
	"sync"

	"github.com/agentstate/state/store"
)

// Counter is a store that counts its calls. It is safe for concurrent use.
type Counter struct {
	*Store

	mu        sync.Mutex
	calls     map[string]int
	read      int
	conflicts int
}

// Count returns a store that counts.
func Count(db store.Store) *Counter {
	c := &Counter{calls: map[string]int{}}
	c.Store = New(db, func(_ context.Context, call Call, do func() error) error {
		err := do()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[call.Op]++
		if call.Op == "Get" {
			c.read += len(call.Keys)
		}
		if errors.Is(err, store.ErrConflict) {
			c.conflicts++
		}
		return err
	})
	return c
}

// Calls returns how often methods were called, by their names.
func (c *Counter) Calls(ops ...string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range ops {
		n += c.calls[op]
	}
	return n
}

// Reads returns how often keys were read by name.
func (c *Counter) Reads() int { return c.Calls("Get") }

// Read returns the number of keys that were read by name.
func (c *Counter) Read() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// Conflicts returns the number of calls that others have overtaken.
func (c *Counter) Conflicts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conflicts
}
