package store

import (
	"cmp"
	"context"
	"iter"
	"sync"
)

// Memory is a store in the memory of this process, for tests and for data that
// need not outlive the process. It is a [MultiGetter], a [Lister], a
// [Watcher], and has no limit on the size of a value. Create it
// with [NewMemory].
type Memory struct {
	data   *memoryData
	closed chan struct{} // closed by Close, with data.mu held
}

// memoryData is the data that all handles share. The bytes of a stored value
// never change, so that readers copy them after they have released the lock.
type memoryData struct {
	mu      sync.RWMutex
	entries entryBlocks
	writes  uint64 // number of changes so far
	watches memoryWatches
}

var (
	_ MultiGetter = (*Memory)(nil)
	_ Watcher     = (*Memory)(nil)
	_ Lister      = (*Memory)(nil)
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return (&Memory{data: &memoryData{
		watches: newMemoryWatches(),
	}}).Open()
}

// Open returns another handle on the same entries. It corresponds to a second
// connection to a database and can be called after Close.
func (m *Memory) Open() *Memory {
	return &Memory{data: m.data, closed: make(chan struct{})}
}

// Durability returns [DurabilityProcess].
func (m *Memory) Durability() Durability { return DurabilityProcess }

// Close ends this handle and its watches. The entries remain
// for other handles.
func (m *Memory) Close() error {
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	if !m.isClosed() {
		close(m.closed)
		m.data.watches.removeAll(m)
	}
	return nil
}

func (m *Memory) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// checkUsable returns an error if ctx has ended or the handle is closed.
func (m *Memory) checkUsable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.isClosed() {
		return ErrClosed
	}
	return nil
}

func memoryError(op, key string, err error) error {
	return &Error{Store: "memory", Op: op, Key: key, Err: err}
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string) (Entry, error) {
	if err := cmp.Or(CheckKey(key), m.checkUsable(ctx)); err != nil {
		return Entry{}, memoryError("get", key, err)
	}
	m.data.mu.RLock()
	e, found := m.data.entries.get(key)
	m.data.mu.RUnlock()
	if !found {
		return Entry{}, memoryError("get", key, ErrNotFound)
	}
	return e.clone(), nil
}

// GetMulti implements [MultiGetter]. The entries are a snapshot.
func (m *Memory) GetMulti(ctx context.Context, keys ...string) ([]Entry, error) {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return nil, memoryError("get multi", key, err)
		}
	}
	if err := m.checkUsable(ctx); err != nil {
		return nil, memoryError("get multi", "", err)
	}
	entries := make([]Entry, len(keys))
	m.data.mu.RLock()
	for i, key := range keys {
		entries[i], _ = m.data.entries.get(key)
	}
	m.data.mu.RUnlock()
	for i, key := range keys {
		if entries[i].Key = key; entries[i].Revision != "" {
			entries[i] = entries[i].clone()
		}
	}
	return entries, nil
}

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, key string, value []byte, cond Condition) (Revision, error) {
	revisions, err := m.write(ctx, "put", []Write{{Key: key, Value: value, Cond: cond}})
	if err != nil {
		return "", err
	}
	return revisions[0], nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, key string, cond Condition) error {
	_, err := m.write(ctx, "delete", []Write{{Key: key, Delete: true, Cond: cond}})
	return err
}

// Batch implements [Store].
func (m *Memory) Batch(ctx context.Context, writes []Write) ([]Revision, error) {
	return m.write(ctx, "batch", writes)
}

// write makes all writes or none.
func (m *Memory) write(ctx context.Context, op string, writes []Write) ([]Revision, error) {
	if key, err := CheckWrites(writes); err != nil {
		return nil, memoryError(op, key, err)
	}
	if err := m.checkUsable(ctx); err != nil {
		key := ""
		if len(writes) == 1 {
			key = writes[0].Key
		}
		return nil, memoryError(op, key, err)
	}
	made := make([]Entry, len(writes))
	revisions := make([]Revision, len(writes))
	for i, w := range writes {
		made[i].Key = w.Key
		if !w.Delete {
			revisions[i] = NewRevision()
			made[i] = Entry{Key: w.Key, Value: w.Value, Revision: revisions[i]}.clone()
		}
	}
	d := m.data
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range writes {
		if e, exists := d.entries.get(w.Key); !w.Cond.Holds(e.Revision, exists) {
			return nil, memoryError(op, w.Key, ErrConflict)
		}
	}
	for i, w := range writes {
		if !w.Delete {
			d.entries.put(made[i])
		} else if !d.entries.remove(w.Key) {
			continue
		}
		d.writes++
		d.watches.notify(d.writes, Event{Entry: made[i], Deleted: w.Delete})
	}
	return revisions, nil
}

// memoryPage is the number of entries that are read at a time.
const memoryPage = 256

// Scan implements [Store]. It holds no lock while the body of the loop runs.
func (m *Memory) Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for from := after + "\x00"; ; { // no key sorts between them
			page, err := m.readPage(ctx, prefix, from)
			for _, e := range page {
				if err = m.checkUsable(ctx); err != nil {
					break
				}
				if !yield(e.clone(), nil) {
					return
				}
				from = e.Key + "\x00"
			}
			if err != nil {
				yield(Entry{}, memoryError("scan", "", err))
				return
			}
			if len(page) < memoryPage {
				return
			}
		}
	}
}

// List implements [Lister].
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	return ListPages(prefix, after, func(from string) ([]string, bool, error) {
		page, err := m.readPage(ctx, prefix, from)
		if err != nil {
			return nil, false, memoryError("list", "", err)
		}
		keys := make([]string, len(page))
		for i, e := range page {
			keys[i] = e.Key
		}
		return keys, len(page) == memoryPage, nil
	})
}

func (m *Memory) readPage(ctx context.Context, prefix, from string) ([]Entry, error) {
	if err := m.checkUsable(ctx); err != nil {
		return nil, err
	}
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	return m.data.entries.page(prefix, from, memoryPage), nil
}

// clone returns a copy of the entry with a value that is not nil.
func (e Entry) clone() Entry {
	e.Value = append([]byte{}, e.Value...)
	return e
}
