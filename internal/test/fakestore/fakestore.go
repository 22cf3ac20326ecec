// Package fakestore makes a store do what a test wants: fail, take long, count,
// or let somebody else write first. Only tests import it.
package fakestore

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/agentstate/state/store"
)

// Bare is a store without its optional interfaces.
type Bare struct{ store.Store }

// A Call is a call of a store.
type Call struct {
	Op     string        // the name of the method
	Keys   []string      // that are read, or a prefix of them
	Writes []store.Write // nil if the call only reads
}

// A Rule is called in place of each call of a store. do makes the call and
// returns its error. The caller gets the error of the rule.
type Rule func(ctx context.Context, c Call, do func() error) error

// Store is a store with a Rule. It has the optional interfaces that the store
// in it has.
type Store struct {
	store.Store
	rule Rule
}

// New returns a store that obeys a rule.
func New(db store.Store, rule Rule) *Store { return &Store{db, rule} }

// Unwrap returns the store in it.
func (s *Store) Unwrap() store.Store { return s.Store }

func (s *Store) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	return ruled(ctx, s.rule, Call{Op: "Get", Keys: keys}, func() ([]store.Entry, error) {
		return s.Store.Get(ctx, keys...)
	})
}

func (s *Store) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return ruled(ctx, s.rule, Call{Op: "Batch", Writes: writes}, func() ([]store.Revision, error) {
		return s.Store.Batch(ctx, writes)
	})
}

func (s *Store) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return iterated(ctx, s.rule, Call{Op: "List", Keys: []string{prefix}}, func() iter.Seq2[store.Entry, error] {
		return s.Store.List(ctx, prefix, after, values)
	})
}

func (s *Store) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	return iterated(ctx, s.rule, Call{Op: "Watch", Keys: []string{prefix}}, func() iter.Seq2[store.Event, error] {
		return s.Store.(store.Watcher).Watch(ctx, prefix)
	})
}

// ruled makes a call that returns a value, of which nothing is left if the rule
// returns an error.
func ruled[T any](ctx context.Context, rule Rule, c Call, call func() (T, error)) (T, error) {
	var value, none T
	err := rule(ctx, c, func() (err error) {
		value, err = call()
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// iterated makes a call that returns an iterator, when somebody iterates.
func iterated[T any](ctx context.Context, rule Rule, c Call, call func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := rule(ctx, c, func() error { return nil }); err != nil {
			yield(none, err)
			return
		}
		call()(yield)
	}
}

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
