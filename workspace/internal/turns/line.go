package turns

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Line lets at most some callers in at a time. The others wait, and get in in
// the order in which they came.
type Line struct {
	mu      sync.Mutex
	free    int       // places; negative after Squeeze
	waiting list.List // of chan struct{}, closed when its caller is in
}

// NewLine returns a line with a number of places.
func NewLine(places int) *Line { return &Line{free: places} }

// Enter waits for a place. If ctx ends first, Enter returns the cause.
func (l *Line) Enter(ctx context.Context) error {
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

var errFull = errors.New("there is no place")

// tryEnter gets in if there is a place.
func (l *Line) tryEnter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free <= 0 {
		return errFull
	}
	l.free--
	return nil
}

// Crowded reports whether callers wait for a place, or more are in than there
// are places.
func (l *Line) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free < 0 || l.waiting.Len() > 0
}

// Squeeze gets in even if there is no place.
func (l *Line) Squeeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free--
}

// Leave gives the place to the caller that has waited longest.
func (l *Line) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	for first := l.waiting.Front(); first != nil && l.free > 0; first = l.waiting.Front() {
		l.waiting.Remove(first)
		l.free--
		close(first.Value.(chan struct{}))
	}
}

// Wake makes Wait return, now or when it is called next. look has room for one.
func Wake(look chan<- struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}

// Wait waits for a time, or until look is woken. If ctx ends, it returns
// the cause.
func Wait(ctx context.Context, d time.Duration, look <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-look:
	case <-timer.C:
	}
	return context.Cause(ctx)
}

// Lock is a lock that is held while its holder waits, such as for the store.
// It is no Mutex: in a bubble of package testing/synctest, time stands still while
// a goroutine waits for a Mutex, and what its holder waits for never comes.
type Lock chan struct{}

// NewLock returns a Lock that nobody holds.
func NewLock() Lock { return make(Lock, 1) }

// Lock waits until nobody holds l.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock gives l to one that waits.
func (l Lock) Unlock() { <-l }
