package engine

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// MaxWait is the longest time that a write waits for its turn.
const MaxWait = time.Second

// TurnError reports a write that got no turn within [MaxWait].
type TurnError struct{ Address }

func (e *TurnError) Error() string {
	return fmt.Sprintf("state: slot %d %q: no turn within %v", e.Slot.Number, e.Key, MaxWait)
}

// turns lets the code of users that writes call for one address take turns, in
// the order in which the writes came. Without turns, writes of one address that
// run at the same time would overtake each other and run again.
//
// Code that writes its own address waits for itself, and code of two addresses
// may write the address of the other. Neither is found out: both waits end with a
// [TurnError].
type turns struct {
	mu sync.Mutex
	// waiting holds, for each address whose turn is taken, those that wait for
	// it: first come, first served. A send to its channel gives one the turn.
	waiting map[Address][]chan struct{}
}

// take waits for the turn of an address. If it returns nil, the caller must
// release the turn.
func (t *turns) take(a Address) error {
	t.mu.Lock()
	queue, taken := t.waiting[a]
	if !taken {
		if t.waiting == nil {
			t.waiting = map[Address][]chan struct{}{}
		}
		t.waiting[a] = nil
		t.mu.Unlock()
		return nil
	}
	given := make(chan struct{}, 1)
	t.waiting[a] = append(queue, given)
	t.mu.Unlock()

	timer := time.NewTimer(MaxWait)
	defer timer.Stop()
	select {
	case <-given:
		return nil
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	queue = t.waiting[a]
	i := slices.Index(queue, given)
	if i < 0 {
		return nil // the turn came as the wait ended
	}
	t.waiting[a] = slices.Delete(queue, i, i+1)
	return &TurnError{a}
}

// release gives the turn of an address to the next that waits for it.
func (t *turns) release(a Address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[a]
	if len(queue) == 0 {
		delete(t.waiting, a)
		return
	}
	queue[0] <- struct{}{}
	t.waiting[a] = queue[1:]
}

// takeAll takes the turns of several addresses, in their order: writers that need
// some of the same turns do not wait for each other in a circle.
func (t *turns) takeAll(addresses []Address) (release func(), err error) {
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, Address.compare)
	addresses = slices.Compact(addresses)
	for i, a := range addresses {
		if err := t.take(a); err != nil {
			for _, taken := range addresses[:i] {
				t.release(taken)
			}
			return nil, err
		}
	}
	return func() {
		for _, a := range addresses {
			t.release(a)
		}
	}, nil
}
