package engine

import (
	"fmt"
	"slices"
	"time"
)

// MaxWait is the longest time that a write waits for its turn.
const MaxWait = time.Second

// TurnError reports a write that got no turn within [MaxWait].
type TurnError struct{ Address }

func (e *TurnError) Error() string {
	return fmt.Sprintf("state: slot %d %q: no turn within %v", e.Slot.Number, e.Key, MaxWait)
}

// Code of users that writes call for one address takes turns, in the order in
// which the writes came. Without turns, writes of one address that run at the
// same time would overtake each other and run again.
//
// Code that writes its own address waits for itself, and code of two addresses
// may wait for each other. The engine does not detect either: the wait ends
// with a [TurnError].

// takeTurn waits for the turn of an address, for at most the given time. If it
// returns nil, the caller must release the turn.
func (b *Branch) takeTurn(a Address, wait time.Duration) error {
	b.mu.Lock()
	queue, taken := b.turns[a]
	if !taken {
		if b.turns == nil {
			b.turns = map[Address][]chan struct{}{}
		}
		b.turns[a] = nil
		b.mu.Unlock()
		return nil
	}
	given := make(chan struct{}, 1)
	b.turns[a] = append(queue, given)
	b.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-given:
		return nil
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	queue = b.turns[a]
	i := slices.Index(queue, given)
	if i < 0 {
		return nil // the turn came as the wait ended
	}
	b.turns[a] = slices.Delete(queue, i, i+1)
	return &TurnError{a}
}

// releaseTurn gives the turn of an address to the next that waits for it.
func (b *Branch) releaseTurn(a Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.turns[a]
	if len(queue) == 0 {
		delete(b.turns, a)
		return
	}
	queue[0] <- struct{}{}
	b.turns[a] = queue[1:]
}

// TakeTurns takes the turns of several addresses, in their order: writers that
// need some of the same turns do not wait for each other in a circle. All waits
// together take at most MaxWait.
func (b *Branch) TakeTurns(addresses []Address) (release func(), err error) {
	if len(addresses) == 0 {
		return func() {}, nil // most writes, which need no closure
	}
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, Address.compare)
	addresses = slices.Compact(addresses)
	start := time.Now()
	for i, a := range addresses {
		if err := b.takeTurn(a, MaxWait-time.Since(start)); err != nil {
			for _, taken := range addresses[:i] {
				b.releaseTurn(taken)
			}
			return nil, err
		}
	}
	return func() {
		for _, a := range addresses {
			b.releaseTurn(a)
		}
	}, nil
}
