package natsstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state/store"
)

// getsAtOnce is the number of entries that a call requests at once. A server
// answers the requests of a connection in turn, so that more save little.
const getsAtOnce = 32

// GetMulti implements [store.MultiGetter]. It makes a request for each entry, 32
// at once.
func (s *Store) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, newError("get multi", key, err)
		}
	}
	entries, err := s.getEntries(ctx, keys)
	if err != nil {
		return nil, newError("get multi", "", err)
	}
	return entries, nil
}

// getEntries returns the entries of keys. The revision of a missing one is
// empty. It ends with the first error.
func (s *Store) getEntries(ctx context.Context, keys []string) ([]store.Entry, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		entries = make([]store.Entry, len(keys))
		next    atomic.Int64
		wg      sync.WaitGroup
		once    sync.Once
		failed  error // the first error, which ends the other requests
	)
	for range min(len(keys), getsAtOnce) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(keys); i = int(next.Add(1)) - 1 {
				e, err := s.getEntry(ctx, keys[i])
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					once.Do(func() { failed = err })
					cancel()
					return
				}
				e.Key = keys[i]
				entries[i] = e
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, failed
	}
	return entries, nil
}
