package engine

import (
	"fmt"
	"slices"
	"time"
)

// MaxWait is how long a write waits for its turn while the code of one other
// write runs.
const MaxWait = time.Second

// TurnError reports a write that got no turn: the code of another write ran for
// [MaxWait].
type TurnError struct {
	Address
	Holder Merger // of the other write, nil if it has several ops
}

func (e *TurnError) Error() string {
	return fmt.Sprintf("state: slot %d %q: no turn within %v", e.Slot.Number, e.Key, MaxWait)
}

// turn is the right to call code of users for one address. Without turns,
// writes of one address that run at the same time would overtake each other and
// run again.
//
// Code that writes its own address waits for itself, and code of two addresses
// may wait for each other. The engine does not detect either: whoever waits
// while the code of one holder runs for MaxWait gets a [TurnError].
type turn struct {
	holder  Merger        // of the write that has the turn, for errors
	since   time.Time     // when its code began; zero before that
	waiting int           // writes that wait for the turn
	next    chan struct{} // has an element when one of them may go on; nil until one waits
}

// left returns how long a write may still wait for the turn.
func (t *turn) left() time.Duration {
	if t.since.IsZero() {
		return MaxWait
	}
	return MaxWait - time.Since(t.since)
}

// takeTurn waits for the turn of an address. If it returns nil, the caller must
// release the turn. The caller begins at once to call code of users, or sets
// since when it does.
func (b *Branch) takeTurn(a Address, holder Merger, begins bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.turns[a]
	if t == nil {
		if b.turns == nil {
			b.turns = map[Address]*turn{}
		}
		t = &turn{}
		b.turns[a] = t
	} else if err := b.waitForTurn(a, t); err != nil {
		return err
	}
	t.holder = holder
	if begins {
		t.since = time.Now()
	}
	return nil
}

// waitForTurn waits until the turn of an address is released to the caller. The
// branch is locked, but unlocked during the wait.
func (b *Branch) waitForTurn(a Address, t *turn) error {
	if t.next == nil {
		t.next = make(chan struct{}, 1)
	}
	t.waiting++
	defer func() { t.waiting-- }()
	for {
		left := t.left()
		if left <= 0 {
			return &TurnError{a, t.holder}
		}
		b.mu.Unlock()
		released := false
		select {
		case <-t.next:
			released = true
		case <-time.After(left): // another write may have the turn since
		}
		b.mu.Lock()
		if released {
			return nil
		}
	}
}

// releaseTurn gives the turn of an address to one that waits for it.
func (b *Branch) releaseTurn(a Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.turns[a]
	if t.waiting == 0 {
		delete(b.turns, a)
		return
	}
	t.since = time.Time{}
	t.next <- struct{}{}
}

// TakeTurns takes the turns of several addresses, in their order: writers that
// need some of the same turns do not wait for each other in a circle.
func (b *Branch) TakeTurns(addresses []Address) (release func(), err error) {
	if len(addresses) == 0 {
		return func() {}, nil // most writes, which need no closure
	}
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, Address.compare)
	addresses = slices.Compact(addresses)
	taken := 0
	release = func() {
		for _, a := range addresses[:taken] {
			b.releaseTurn(a)
		}
	}
	for _, a := range addresses {
		if err := b.takeTurn(a, nil, false); err != nil {
			release()
			return nil, err
		}
		taken++
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range addresses {
		b.turns[a].since = time.Now()
	}
	return release, nil
}
