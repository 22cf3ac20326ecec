package workspace

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// line lets at most some callers in at a time. The others wait, and get in in
// the order in which they came.
type line struct {
	mu      sync.Mutex
	free    int       // places; negative after Squeeze
	waiting list.List // of chan struct{}, closed when its caller is in
}

func newLine(places int) *line { return &line{free: places} }

// Enter waits for a place. If ctx ends first, Enter returns the cause.
func (l *line) Enter(ctx context.Context) error {
	l.mu.Lock()
	if l.free > 0 { // nobody waits
		l.free--
		l.mu.Unlock()
		return nil
	}
	in := make(chan struct{})
	me := l.waiting.PushBack(in)
	l.mu.Unlock()
	select {
	case <-in:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-in: // meanwhile
		return nil
	default:
	}
	l.waiting.Remove(me)
	return context.Cause(ctx)
}

// TryEnter reports whether there was a place.
func (l *line) TryEnter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free <= 0 {
		return false
	}
	l.free--
	return true
}

// Crowded reports whether callers wait for a place, or more are in than there
// are places.
func (l *line) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free < 0 || l.waiting.Len() > 0
}

// Squeeze gets in even if there is no place.
func (l *line) Squeeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free--
}

// Leave gives the place to the caller that has waited longest.
func (l *line) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	for first := l.waiting.Front(); first != nil && l.free > 0; first = l.waiting.Front() {
		l.waiting.Remove(first)
		l.free--
		close(first.Value.(chan struct{}))
	}
}

// wake makes waitOrWake return.
func wake(look chan<- struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}

// waitOrWake waits for a time, or until look is woken. If ctx ends, it returns
// the cause.
func waitOrWake(ctx context.Context, d time.Duration, look <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-look:
	case <-timer.C:
	}
	return context.Cause(ctx)
}

// waitLock is a lock that is held while its holder waits, such as for the store.
// It is no Mutex: in a bubble of package testing/synctest, time stands still while
// a goroutine waits for a Mutex, and what its holder waits for never comes.
type waitLock chan struct{}

func newWaitLock() waitLock { return make(waitLock, 1) }

func (l waitLock) Lock()   { l <- struct{}{} }
func (l waitLock) Unlock() { <-l }
