package storetest_test

import (
	"context"
	"iter"

	"github.com/agentstate/state/store"
)

// broken is a store in memory. A fault replaces some of its methods.
type broken struct {
	*store.Memory
	get        func(ctx context.Context, key string) (store.Entry, error)
	put        func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error)
	del        func(ctx context.Context, key string, cond store.Condition) error
	scan       func(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error]
	list       func(ctx context.Context, prefix, after string) iter.Seq2[string, error]
	multi      func(ctx context.Context, keys ...string) ([]store.Entry, error)
	batch      func(ctx context.Context, writes []store.Write) ([]store.Revision, error)
	watch      func(ctx context.Context, prefix string) iter.Seq2[store.Event, error]
	durability func() store.Durability
	close      func() error
}

func newBroken(m *store.Memory, fault func(b *broken)) *broken {
	b := &broken{m, m.Get, m.Put, m.Delete, m.Scan, m.List, m.GetMulti, m.Batch, m.Watch, m.Durability, m.Close}
	fault(b)
	return b
}

func (b *broken) Get(ctx context.Context, key string) (store.Entry, error) { return b.get(ctx, key) }

func (b *broken) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	return b.put(ctx, key, value, cond)
}

func (b *broken) Delete(ctx context.Context, key string, cond store.Condition) error {
	return b.del(ctx, key, cond)
}

func (b *broken) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return b.scan(ctx, prefix, after)
}

func (b *broken) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	return b.multi(ctx, keys...)
}

func (b *broken) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return b.batch(ctx, writes)
}

func (b *broken) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	return b.watch(ctx, prefix)
}

func (b *broken) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	return b.list(ctx, prefix, after)
}

func (b *broken) Durability() store.Durability { return b.durability() }

func (b *broken) Close() error { return b.close() }

// onKeys replaces each key before the store sees it.
func (b *broken) onKeys(replace func(key string) string) {
	b.get = func(ctx context.Context, key string) (store.Entry, error) { return b.Memory.Get(ctx, replace(key)) }
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		return b.Memory.Put(ctx, replace(key), value, cond)
	}
	b.del = func(ctx context.Context, key string, cond store.Condition) error {
		return b.Memory.Delete(ctx, replace(key), cond)
	}
}

// onPut replaces the arguments of Put.
func (b *broken) onPut(replace func(key string, value []byte, cond store.Condition) ([]byte, store.Condition)) {
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		value, cond = replace(key, value, cond)
		return b.Memory.Put(ctx, key, value, cond)
	}
}

// onScan replaces Scan: replace receives the entries of all keys and returns those that
// Scan yields.
func (b *broken) onScan(replace func(entries []store.Entry, prefix, after string) []store.Entry) {
	b.scan = func(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
		return func(yield func(store.Entry, error) bool) {
			var entries []store.Entry
			for entry, err := range b.Memory.Scan(ctx, "", "") {
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

// onList replaces the keys that List yields.
func (b *broken) onList(replace func(keys []string, prefix, after string) []string) {
	b.list = func(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			var keys []string
			for key, err := range b.Memory.List(ctx, prefix, after) {
				if err != nil {
					yield("", err)
					return
				}
				keys = append(keys, key)
			}
			for _, key := range replace(keys, prefix, after) {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// onMulti replaces the entries that GetMulti returns for keys.
func (b *broken) onMulti(replace func(entries []store.Entry) []store.Entry) {
	b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
		entries, err := b.Memory.GetMulti(ctx, keys...)
		return replace(entries), err
	}
}

// onErrors replaces the errors of Get, Put and Delete.
func (b *broken) onErrors(replace func(err error, value []byte) error) {
	b.get = func(ctx context.Context, key string) (store.Entry, error) {
		entry, err := b.Memory.Get(ctx, key)
		return entry, replace(err, nil)
	}
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		revision, err := b.Memory.Put(ctx, key, value, cond)
		return revision, replace(err, value)
	}
	b.del = func(ctx context.Context, key string, cond store.Condition) error {
		return replace(b.Memory.Delete(ctx, key, cond), nil)
	}
}

// exists reports whether a key exists.
func (b *broken) exists(key string) bool {
	_, err := b.Memory.Get(context.Background(), key)
	return err == nil
}
