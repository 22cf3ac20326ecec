package workspacetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/agentstate/state/store"
)

// faultyStore is a store that fails as a test wants. It reports no changes.
type faultyStore struct {
	store.Store
	fault Fault
}

// A Fault returns the error of an operation that would make writes, or that would
// read if there are none, and whether the writes are made nevertheless.
type Fault func(writes []store.Write) (made bool, _ error)

type faultyBatcher struct{ faultyStore }

// WithFaults returns a store that fails with the errors of fault. It is a
// store.Batcher if db is one.
func WithFaults(db store.Store, f Fault) store.Store {
	s := faultyStore{db, func(writes []store.Write) (bool, error) {
		made, err := f(writes)
		if err != nil {
			err = &store.Error{Store: "faulty", Op: "test", Err: err}
		}
		return made, err
	}}
	if _, ok := store.As[store.Batcher](db); ok {
		return faultyBatcher{s}
	}
	return s
}

func (s faultyStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if _, err := s.fault(nil); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s faultyStore) Put(
	ctx context.Context, key string, value []byte, cond store.Condition,
) (store.Revision, error) {
	made, err := s.fault([]store.Write{{Key: key, Value: value}})
	if err != nil && !made {
		return "", err
	}
	rev, putErr := s.Store.Put(ctx, key, value, cond)
	return rev, cmp.Or(err, putErr)
}

func (s faultyStore) Delete(ctx context.Context, key string, cond store.Condition) error {
	made, err := s.fault([]store.Write{{Key: key, Delete: true}})
	if err != nil && !made {
		return err
	}
	return cmp.Or(err, s.Store.Delete(ctx, key, cond))
}

func (s faultyStore) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	if _, err := s.fault(nil); err != nil {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
	}
	return s.Store.Scan(ctx, prefix, after)
}

func (s faultyBatcher) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	made, err := s.fault(writes)
	if err != nil && !made {
		return nil, err
	}
	revs, batchErr := s.Store.(store.Batcher).Batch(ctx, writes)
	return revs, cmp.Or(err, batchErr)
}

// WithOutages returns a store that is away as long as the switch is on. If
// replyLost is set, the first write of each outage is made, and only its reply
// is lost.
func WithOutages(db store.Store, replyLost bool) (store.Store, *atomic.Bool) {
	var away, again atomic.Bool
	return WithFaults(db, func(writes []store.Write) (bool, error) {
		switch {
		case !away.Load():
			again.Store(false)
			return false, nil
		case replyLost && writes != nil && !again.Swap(true):
			return true, store.ErrUnknownOutcome
		}
		return false, errors.New("connection refused")
	}), &away
}

// AsProcess returns a store as a process sees it. After kill, the process does
// nothing that others could see.
func AsProcess(db store.Store) (_ store.Store, kill func()) {
	var dead atomic.Bool
	return WithFaults(db, func([]store.Write) (bool, error) {
		if dead.Load() {
			return false, store.ErrClosed
		}
		return false, nil
	}), func() { dead.Store(true) }
}
