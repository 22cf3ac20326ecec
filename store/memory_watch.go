package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
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
		m.data.watches[w] = true
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

// notify adds a change. The caller holds the lock of the data.
func (w *memoryWatch) notify(write uint64, e Event) {
	if !strings.HasPrefix(e.Key, w.prefix) {
		return
	}
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
	delete(w.handle.data.watches, w)
}
