package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Memory is a store in the memory of this process, for tests and for what need
// not outlive the process. It is a [Batcher] and a [Watcher], and takes values of
// any size. Its zero value is not usable; see [NewMemory].
type Memory struct {
	data *memoryData
	done chan struct{} // closed by Close, under the lock of data
}

// memoryData is what all handles share. The bytes of the values in it never
// change, so that they can be copied without the lock.
type memoryData struct {
	mu      sync.RWMutex
	entries blocks
	writes  uint64 // how many there were
	watches map[*watch]bool
}

var (
	_ Batcher = (*Memory)(nil)
	_ Watcher = (*Memory)(nil)
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return (&Memory{data: &memoryData{watches: map[*watch]bool{}}}).Open()
}

// Open returns another handle on the same entries, also after Close: what a
// second process, or the next one, would have on a database.
func (m *Memory) Open() *Memory {
	return &Memory{data: m.data, done: make(chan struct{})}
}

// Durability returns [Process].
func (m *Memory) Durability() Durability { return DurabilityProcess }

// Close ends this handle and its watches. The entries stay for other handles.
func (m *Memory) Close() error {
	d := m.data
	d.mu.Lock()
	defer d.mu.Unlock()
	if !m.closed() {
		close(m.done)
		maps.DeleteFunc(d.watches, func(w *watch, _ bool) bool { return w.handle == m })
	}
	return nil
}

func (m *Memory) closed() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// alive returns what keeps a call from being made, or going on.
func (m *Memory) alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.closed() {
		return ErrClosed
	}
	return nil
}

func memoryError(op, key string, err error) error {
	return &Error{Store: "memory", Op: op, Key: key, Err: err}
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string) (Entry, error) {
	err := CheckKey(key)
	if err == nil {
		err = m.alive(ctx)
	}
	if err != nil {
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

// Batch implements [Batcher].
func (m *Memory) Batch(ctx context.Context, writes []Write) ([]Revision, error) {
	return m.write(ctx, "batch", writes)
}

// write makes all writes or none.
func (m *Memory) write(ctx context.Context, op string, writes []Write) ([]Revision, error) {
	if key, err := checkWrites(writes); err != nil {
		return nil, memoryError(op, key, err)
	}
	if err := m.alive(ctx); err != nil {
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
		for watch := range d.watches {
			watch.tell(d.writes, Event{Entry: made[i], Deleted: w.Delete})
		}
	}
	return revisions, nil
}

// checkWrites returns the first key that is wrong, and why.
func checkWrites(writes []Write) (string, error) {
	seen := make(map[string]bool, len(writes))
	for _, w := range writes {
		if err := CheckKey(w.Key); err != nil {
			return w.Key, err
		}
		if w.Delete && w.Cond.Absent() {
			return w.Key, fmt.Errorf("%w: a delete cannot be IfAbsent", ErrInvalid)
		}
		if seen[w.Key] {
			return w.Key, fmt.Errorf("%w: the key is in the batch twice", ErrInvalid)
		}
		seen[w.Key] = true
	}
	return "", nil
}

// scanPage is how many entries a scan reads at a time.
const scanPage = 256

// Scan implements [Store]. It holds no lock while the body of the loop runs.
func (m *Memory) Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for last := after; ; {
			page, err := m.page(ctx, prefix, last)
			for _, e := range page {
				if err = m.alive(ctx); err != nil {
					break
				}
				if !yield(e.clone(), nil) {
					return
				}
				last = e.Key
			}
			if err != nil {
				yield(Entry{}, memoryError("scan", "", err))
				return
			}
			if len(page) < scanPage {
				return
			}
		}
	}
}

func (m *Memory) page(ctx context.Context, prefix, after string) ([]Entry, error) {
	if err := m.alive(ctx); err != nil {
		return nil, err
	}
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	return m.data.entries.page(prefix, after, scanPage), nil
}

// Watch implements [Watcher]. It can be ranged over once. When ctx ends it just
// ends, and if the handle is closed, with ErrClosed. A loop that is slow misses
// changes that later ones of the same key replace; it holds up nobody. The changes
// that it sees are in the order in which they were made.
func (m *Memory) Watch(ctx context.Context, prefix string) iter.Seq2[Event, error] {
	w := &watch{handle: m, prefix: prefix, pending: map[string]change{}, wake: make(chan struct{}, 1)}
	d := m.data
	d.mu.Lock()
	if !m.closed() {
		d.watches[w] = true
	}
	d.mu.Unlock()
	stop := context.AfterFunc(ctx, w.end)
	return func(yield func(Event, error) bool) {
		if w.ranged.Swap(true) {
			yield(Event{}, memoryError("watch", "", fmt.Errorf("%w: a watch can be ranged over once", ErrInvalid)))
			return
		}
		defer w.end()
		defer stop()
		for {
			select {
			case <-ctx.Done():
			case <-m.done:
			case <-w.wake:
			}
			for _, c := range w.take() {
				if m.alive(ctx) != nil {
					break
				}
				if !c.Deleted {
					c.Entry = c.Entry.clone()
				}
				if !yield(c.Event, nil) {
					return
				}
			}
			if ctx.Err() != nil {
				return
			}
			if m.closed() {
				yield(Event{}, memoryError("watch", "", ErrClosed))
				return
			}
		}
	}
}

// watch is what one Watch has not yielded yet. It is guarded by the lock of the
// data.
type watch struct {
	handle  *Memory
	prefix  string
	pending map[string]change // the last of each key
	wake    chan struct{}     // has an element if there may be something pending
	ranged  atomic.Bool
}

// change is an event and which write it was.
type change struct {
	Event
	write uint64
}

func (w *watch) tell(write uint64, e Event) {
	if !strings.HasPrefix(e.Key, w.prefix) {
		return
	}
	w.pending[e.Key] = change{e, write}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns what is pending in the order of the writes.
func (w *watch) take() []change {
	w.handle.data.mu.Lock()
	pending := w.pending
	w.pending = map[string]change{}
	w.handle.data.mu.Unlock()
	return slices.SortedFunc(maps.Values(pending), func(a, b change) int { return cmp.Compare(a.write, b.write) })
}

func (w *watch) end() {
	w.handle.data.mu.Lock()
	defer w.handle.data.mu.Unlock()
	delete(w.handle.data.watches, w)
}

// clone copies the value. That of the copy is never nil.
func (e Entry) clone() Entry {
	e.Value = append([]byte{}, e.Value...)
	return e
}
