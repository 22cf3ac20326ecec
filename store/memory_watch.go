package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
)

// memoryWatch holds the changes that one call of Watch has not yielded yet.
type memoryWatch struct {
	handle  *Memory
	prefix  string
	pending map[string]numberedEvent // last change of each key; guarded by handle.data.mu
	wake    chan struct{}            // receives after pending has grown; capacity 1
	ranged  atomic.Bool
}

// numberedEvent is an event with the number of its write.
type numberedEvent struct {
	Event
	write uint64
}

// Watch implements [Watcher]. It yields changes in the order in which they were
// made. A loop that is slower than the writers skips changes that later changes
// of the same key replace, and does not delay the writers. Watch ends without
// an error when ctx ends, and with ErrClosed when the handle is closed. The
// returned sequence can be ranged over once.
func (m *Memory) Watch(ctx context.Context, prefix string) iter.Seq2[Event, error] {
	w := &memoryWatch{
		handle:  m,
		prefix:  prefix,
		pending: map[string]numberedEvent{},
		wake:    make(chan struct{}, 1),
	}
	m.data.mu.Lock()
	if !m.isClosed() {
		m.data.watches.add(w)
	}
	m.data.mu.Unlock()
	stop := context.AfterFunc(ctx, w.unregister)
	return func(yield func(Event, error) bool) {
		if w.ranged.Swap(true) {
			err := fmt.Errorf("%w: a watch can be ranged over once", ErrInvalid)
			yield(Event{}, memoryError("watch", "", err))
			return
		}
		defer w.unregister()
		defer stop()
		for {
			select {
			case <-ctx.Done():
			case <-m.closed:
			case <-w.wake:
			}
			for _, c := range w.takePending() {
				if m.checkUsable(ctx) != nil {
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
			if m.isClosed() {
				yield(Event{}, memoryError("watch", "", ErrClosed))
				return
			}
		}
	}
}

// memoryWatches holds the watches of all handles by their prefixes, so that a
// write costs as many lookups as there are lengths of prefixes, however many
// watches there are. Its methods are called under the lock of the data.
type memoryWatches struct {
	byPrefix map[string]map[*memoryWatch]bool
	lengths  map[int]int // of prefixes: the number of those with each
}

func newMemoryWatches() memoryWatches {
	return memoryWatches{map[string]map[*memoryWatch]bool{}, map[int]int{}}
}

func (s memoryWatches) add(w *memoryWatch) {
	same := s.byPrefix[w.prefix]
	if same == nil {
		same = map[*memoryWatch]bool{}
		s.byPrefix[w.prefix] = same
		s.lengths[len(w.prefix)]++
	}
	same[w] = true
}

// remove may be called more than once.
func (s memoryWatches) remove(w *memoryWatch) {
	same, ok := s.byPrefix[w.prefix]
	if !ok {
		return
	}
	delete(same, w)
	if len(same) > 0 {
		return
	}
	delete(s.byPrefix, w.prefix)
	if s.lengths[len(w.prefix)]--; s.lengths[len(w.prefix)] == 0 {
		delete(s.lengths, len(w.prefix))
	}
}

// removeAll removes the watches of a handle.
func (s memoryWatches) removeAll(m *Memory) {
	for _, same := range s.byPrefix {
		for w := range same {
			if w.handle == m {
				s.remove(w)
			}
		}
	}
}

// notify adds a change to the watches of its key.
func (s memoryWatches) notify(write uint64, e Event) {
	for n := range s.lengths {
		if n > len(e.Key) {
			continue
		}
		for w := range s.byPrefix[e.Key[:n]] {
			w.notify(write, e)
		}
	}
}

// notify adds a change. The caller holds the lock of the data.
func (w *memoryWatch) notify(write uint64, e Event) {
	w.pending[e.Key] = numberedEvent{e, write}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// takePending removes the pending changes and returns them in the order of
// their writes.
func (w *memoryWatch) takePending() []numberedEvent {
	w.handle.data.mu.Lock()
	pending := w.pending
	w.pending = map[string]numberedEvent{}
	w.handle.data.mu.Unlock()
	return slices.SortedFunc(maps.Values(pending), func(a, b numberedEvent) int {
		return cmp.Compare(a.write, b.write)
	})
}

func (w *memoryWatch) unregister() {
	w.handle.data.mu.Lock()
	defer w.handle.data.mu.Unlock()
	w.handle.data.watches.remove(w)
}
