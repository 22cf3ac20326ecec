package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state/store"
)

// The forms of the methods that faults replace.
type (
	getting  = func(ctx context.Context, keys ...string) ([]store.Entry, error)
	batching = func(ctx context.Context, writes []store.Write) ([]store.Revision, error)
	listing  = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error]
	watching = func(ctx context.Context, prefix string) iter.Seq2[store.Event, error]
)

// broken is a store in memory. A fault replaces what it does.
type broken struct {
	*store.Memory
	get        getting
	batch      batching
	list       listing
	watch      watching
	durability func() store.Durability
	close      func() error
}

func newBroken(m *store.Memory, fault func(b *broken)) *broken {
	b := &broken{m, m.Get, m.Batch, m.List, m.Watch, m.Durability, m.Close}
	fault(b)
	return b
}

func (b *broken) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	return b.get(ctx, keys...)
}

func (b *broken) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return b.batch(ctx, slices.Clone(writes))
}

func (b *broken) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return b.list(ctx, prefix, after, values)
}

func (b *broken) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	return b.watch(ctx, prefix)
}

func (b *broken) Durability() store.Durability { return b.durability() }

func (b *broken) Close() error { return b.close() }

// look returns the entry of a key, and whether it exists.
func (b *broken) look(key string) (store.Entry, bool) {
	entry, err := store.Get(context.Background(), b.Memory, key)
	return entry, err == nil
}

// onKeys replaces each key before the store sees it.
func (b *broken) onKeys(replace func(key string) string) {
	b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
		keys = slices.Clone(keys)
		for i := range keys {
			keys[i] = replace(keys[i])
		}
		return b.Memory.Get(ctx, keys...)
	}
	b.onWrite(func(w *store.Write) { w.Key = replace(w.Key) })
}

// onWrite changes each write before it is made.
func (b *broken) onWrite(change func(w *store.Write)) {
	b.onBatch(func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error) {
		for i := range writes {
			change(&writes[i])
		}
		return batch()
	})
}

// onBatch replaces Batch, except if its context has ended: batch makes the writes.
func (b *broken) onBatch(replace func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error)) {
	b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
		if ctx.Err() != nil {
			return b.Memory.Batch(ctx, writes)
		}
		return replace(writes, func() ([]store.Revision, error) { return b.Memory.Batch(ctx, writes) })
	}
}

// always makes a store ignore the conditions that ignored chooses.
func (b *broken) always(ignored func(w store.Write, exists bool) bool) {
	b.onWrite(func(w *store.Write) {
		if _, exists := b.look(w.Key); ignored(*w, exists) {
			w.Cond = store.Always
		}
	})
}

// races makes a store look whether a condition holds before it writes.
func (b *broken) races(chosen func(w store.Write) bool) {
	b.onWrite(func(w *store.Write) {
		if entry, exists := b.look(w.Key); chosen(*w) && w.Cond.Holds(entry.Revision, exists) {
			time.Sleep(100 * time.Microsecond)
			w.Cond = store.Always
		}
	})
}

// onValue replaces each value before the store sees it.
func (b *broken) onValue(replace func(value []byte) []byte) {
	b.onWrite(func(w *store.Write) { w.Value = replace(w.Value) })
}

// onGet replaces the entries that Get returns.
func (b *broken) onGet(replace func(entries []store.Entry) []store.Entry) {
	b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
		entries, err := b.Memory.Get(ctx, keys...)
		return replace(entries), err
	}
}

// onEntry changes each entry that Get returns.
func (b *broken) onEntry(change func(e *store.Entry)) {
	b.onGet(func(entries []store.Entry) []store.Entry {
		for i := range entries {
			change(&entries[i])
		}
		return entries
	})
}

// cached makes Get return earlier results for a while.
func (b *broken) cached(while time.Duration) {
	type read struct {
		entry store.Entry
		at    time.Time
	}
	var mu sync.Mutex
	reads := map[string]read{}
	b.onEntry(func(e *store.Entry) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := reads[e.Key]; ok && time.Since(r.at) <= while {
			*e = r.entry
		} else {
			reads[e.Key] = read{*e, time.Now()}
		}
		e.Value = bytes.Clone(e.Value)
	})
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

// without makes List leave out what it should yield, if left says so.
func (b *broken) without(left func(e store.Entry, prefix string) bool) {
	b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
		return slices.DeleteFunc(wanted(entries, prefix, after), func(e store.Entry) bool { return left(e, prefix) })
	})
}

// wanted returns the entries that a list must yield, in order.
func wanted(entries []store.Entry, prefix, after string) []store.Entry {
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return !strings.HasPrefix(e.Key, prefix) || e.Key <= after })
	slices.SortFunc(entries, func(x, y store.Entry) int { return cmp.Compare(x.Key, y.Key) })
	return entries
}

// onYield replaces how List yields.
func (b *broken) onYield(replace func(list iter.Seq2[store.Entry, error], values bool, yield func(store.Entry, error) bool)) {
	b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
		return func(yield func(store.Entry, error) bool) {
			replace(b.Memory.List(ctx, prefix, after, values), values, yield)
		}
	}
}

// onWatch replaces Watch: keep receives each event and its number and decides whether
// Watch yields it.
func (b *broken) onWatch(keep func(event store.Event, n int) bool) {
	b.watch = func(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
		events := b.Memory.Watch(ctx, prefix)
		return func(yield func(store.Event, error) bool) {
			n := 0
			for event, err := range events {
				if n++; (err != nil || keep(event, n)) && !yield(event, err) {
					return
				}
			}
		}
	}
}

// onError replaces the errors of Get and Batch. A missing key is none.
func (b *broken) onError(replace func(err *store.Error, value []byte) error) {
	replaced := func(err error, value []byte) error {
		var named *store.Error
		if errors.As(err, &named) {
			return replace(named, value)
		}
		return err
	}
	b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
		entries, err := b.Memory.Get(ctx, keys...)
		return entries, replaced(err, nil)
	}
	b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
		revisions, err := b.Memory.Batch(ctx, writes)
		return revisions, replaced(err, writes[0].Value)
	}
}

// naming makes a store name the revisions of a key by the number of its writes
// since it was created.
func (b *broken) naming(name func(key string, n int) string) {
	counts, kept, shown := map[string]int{}, map[store.Revision]store.Revision{}, map[store.Revision]store.Revision{}
	show := func(e *store.Entry) {
		if revision, ok := shown[e.Revision]; ok {
			e.Revision = revision
		}
	}
	b.onBatch(func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error) {
		for i := range writes {
			if revision, ok := writes[i].Cond.Revision(); ok && kept[revision] != "" {
				writes[i].Cond = store.IfRevision(kept[revision])
			}
		}
		revisions, err := batch()
		for i := range revisions {
			if writes[i].Delete {
				delete(counts, writes[i].Key)
				continue
			}
			counts[writes[i].Key]++
			revision := store.Revision(name(writes[i].Key, counts[writes[i].Key]))
			kept[revision], shown[revisions[i]] = revisions[i], revision
			revisions[i] = revision
		}
		return revisions, err
	})
	b.onEntry(show)
	b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
		for i := range entries {
			show(&entries[i])
		}
		return wanted(entries, prefix, after)
	})
}
