package store

import (
	"context"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Memory is a store in the memory of this process, for tests and for data that
// need not outlive the process. It is a [Watcher], and has no limit on the size of
// a value. Create it with [NewMemory].
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

var _ Watcher = (*Memory)(nil)

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

// Get implements [Store]. The entries are a snapshot.
func (m *Memory) Get(ctx context.Context, keys ...string) ([]Entry, error) {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return nil, memoryError("get", key, err)
		}
	}
	if err := m.checkUsable(ctx); err != nil {
		return nil, memoryError("get", onlyKey(keys), err)
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

// Batch implements [Store].
func (m *Memory) Batch(ctx context.Context, writes []Write) ([]Revision, error) {
	if key, err := CheckWrites(writes); err != nil {
		return nil, memoryError("write", key, err)
	}
	if err := m.checkUsable(ctx); err != nil {
		return nil, memoryError("write", onlyWrite(writes), err)
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
			return nil, memoryError("write", w.Key, ErrConflict)
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

// List implements [Store]. It holds no lock while the body of the loop runs.
func (m *Memory) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for from := after + "\x00"; ; { // no key sorts between them
			page, err := m.readPage(ctx, prefix, from)
			for _, e := range page {
				if err = m.checkUsable(ctx); err != nil {
					break
				}
				from = e.Key + "\x00"
				if values {
					e = e.clone()
				} else {
					e = Entry{Key: e.Key}
				}
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, memoryError("list", "", err))
				return
			}
			if len(page) < memoryPage {
				return
			}
		}
	}
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

// entryBlocks is a list of entries sorted by key, split into blocks of at most
// blockSize. No block is empty. A write shifts the entries of one block only.
type entryBlocks [][]Entry

const blockSize = 256

// seek returns the position of the first entry whose key is not less than key,
// and whether that entry has the key. If all keys are less, block is len(b).
func (b entryBlocks) seek(key string) (block, i int, found bool) {
	block = sort.Search(len(b), func(n int) bool { return b[n][len(b[n])-1].Key >= key })
	if block < len(b) {
		i, found = slices.BinarySearchFunc(b[block], key, func(e Entry, key string) int {
			return strings.Compare(e.Key, key)
		})
	}
	return block, i, found
}

func (b entryBlocks) get(key string) (Entry, bool) {
	block, i, found := b.seek(key)
	if !found {
		return Entry{}, false
	}
	return b[block][i], true
}

func (b *entryBlocks) put(e Entry) {
	block, i, found := b.seek(e.Key)
	switch all := *b; {
	case found:
		all[block][i] = e
		return
	case len(all) == 0:
		*b = entryBlocks{{e}}
		return
	case block == len(all): // after the last entry
		block--
		i = len(all[block])
	}
	full := slices.Insert((*b)[block], i, e)
	(*b)[block] = full
	if len(full) > blockSize {
		right := slices.Clone(full[blockSize/2:])
		(*b)[block] = slices.Delete(full, blockSize/2, len(full))
		*b = slices.Insert(*b, block+1, right)
	}
}

// remove reports whether the key existed.
func (b *entryBlocks) remove(key string) bool {
	block, i, found := b.seek(key)
	if !found {
		return false
	}
	(*b)[block] = slices.Delete((*b)[block], i, i+1)
	if len((*b)[block]) == 0 {
		*b = slices.Delete(*b, block, block+1)
	}
	return true
}

// page returns up to n entries whose keys begin with prefix and are not less
// than from.
func (b entryBlocks) page(prefix, from string, n int) []Entry {
	block, i, _ := b.seek(max(prefix, from))
	var page []Entry
	for ; block < len(b); block, i = block+1, 0 {
		for _, e := range b[block][i:] {
			if len(page) == n || !strings.HasPrefix(e.Key, prefix) {
				return page
			}
			page = append(page, e)
		}
	}
	return page
}
