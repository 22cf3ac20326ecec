package storetest_test

import (
	"context"
	"errors"
	"iter"

	"github.com/agentstate/state/store"
)

// broken is a store in memory. A fault replaces what it does: for one key, for
// several, or for all.
type broken struct {
	*store.Memory
	get        func(ctx context.Context, key string) (store.Entry, error)
	put        func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error)
	del        func(ctx context.Context, key string, cond store.Condition) error
	list       func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error]
	multi      func(ctx context.Context, keys ...string) ([]store.Entry, error)
	batch      func(ctx context.Context, writes []store.Write) ([]store.Revision, error)
	watch      func(ctx context.Context, prefix string) iter.Seq2[store.Event, error]
	durability func() store.Durability
	close      func() error
}

func newBroken(m *store.Memory, fault func(b *broken)) *broken {
	b := &broken{
		Memory: m, multi: m.Get, list: m.List, batch: m.Batch, watch: m.Watch, durability: m.Durability, close: m.Close,
		get: func(ctx context.Context, key string) (store.Entry, error) { return store.Get(ctx, m, key) },
		put: func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
			return store.Put(ctx, m, key, value, cond)
		},
		del: func(ctx context.Context, key string, cond store.Condition) error {
			return store.Delete(ctx, m, key, cond)
		},
	}
	fault(b)
	return b
}

func (b *broken) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	if len(keys) != 1 {
		return b.multi(ctx, keys...)
	}
	entry, err := b.get(ctx, keys[0])
	if errors.Is(err, store.ErrNotFound) {
		return []store.Entry{{Key: keys[0]}}, nil
	}
	if err != nil {
		return nil, err
	}
	return []store.Entry{entry}, nil
}

func (b *broken) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if len(writes) != 1 {
		return b.batch(ctx, writes)
	}
	w := writes[0]
	if w.Delete {
		if err := b.del(ctx, w.Key, w.Cond); err != nil {
			return nil, err
		}
		return []store.Revision{""}, nil
	}
	revision, err := b.put(ctx, w.Key, w.Value, w.Cond)
	if err != nil {
		return nil, err
	}
	return []store.Revision{revision}, nil
}

func (b *broken) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return b.list(ctx, prefix, after, values)
}

func (b *broken) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	return b.watch(ctx, prefix)
}

func (b *broken) Durability() store.Durability { return b.durability() }

func (b *broken) Close() error { return b.close() }

// onKeys replaces each key before the store sees it.
func (b *broken) onKeys(replace func(key string) string) {
	b.get = func(ctx context.Context, key string) (store.Entry, error) {
		return store.Get(ctx, b.Memory, replace(key))
	}
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		return store.Put(ctx, b.Memory, replace(key), value, cond)
	}
	b.del = func(ctx context.Context, key string, cond store.Condition) error {
		return store.Delete(ctx, b.Memory, replace(key), cond)
	}
}

// onPut replaces the arguments of Put.
func (b *broken) onPut(replace func(key string, value []byte, cond store.Condition) ([]byte, store.Condition)) {
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		value, cond = replace(key, value, cond)
		return store.Put(ctx, b.Memory, key, value, cond)
	}
}

// onList replaces List: replace receives the entries of all keys and returns those
// that List yields.
func (b *broken) onList(replace func(entries []store.Entry, prefix, after string) []store.Entry) {
	b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
		return func(yield func(store.Entry, error) bool) {
			var entries []store.Entry
			for entry, err := range b.Memory.List(ctx, "", "", values) {
				if err != nil {
					yield(entry, err)
					return
				}
				entries = append(entries, entry)
			}
			for _, entry := range replace(entries, prefix, after) {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// onMulti replaces the entries that Get returns for keys.
func (b *broken) onMulti(replace func(entries []store.Entry) []store.Entry) {
	b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
		entries, err := b.Memory.Get(ctx, keys...)
		return replace(entries), err
	}
	b.get = func(ctx context.Context, key string) (store.Entry, error) {
		entries, err := b.multi(ctx, key)
		if err != nil || len(entries) == 0 {
			return store.Entry{}, err
		}
		return entries[0], nil
	}
}

// onErrors replaces the errors of calls with one key.
func (b *broken) onErrors(replace func(err error, value []byte) error) {
	b.get = func(ctx context.Context, key string) (store.Entry, error) {
		entry, err := store.Get(ctx, b.Memory, key)
		return entry, replace(err, nil)
	}
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		revision, err := store.Put(ctx, b.Memory, key, value, cond)
		return revision, replace(err, value)
	}
	b.del = func(ctx context.Context, key string, cond store.Condition) error {
		return replace(store.Delete(ctx, b.Memory, key, cond), nil)
	}
}

// exists reports whether a key exists.
func (b *broken) exists(key string) bool {
	_, err := store.Get(context.Background(), b.Memory, key)
	return err == nil
}
