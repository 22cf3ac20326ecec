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

// Code of users that writes call for one address takes turns, in the order in
// which the writes came. Without turns, writes of one address that run at the
// same time would overtake each other and run again.
//
// Code that writes its own address waits for itself, and code of two addresses
// may wait for each other. The engine does not detect either. When the code of
// one holder of a turn has run for MaxWait, all that wait for the turn get a
// [TurnError], and so does everything that comes while it goes on. The length
// of the queue does not matter, and neither does the length of a chain of
// writes that wait for each other.
type turn struct {
	address Address
	holder  Merger // of the write that has the turn, for errors
	running bool   // it has all turns that it needs
	checks  int    // how often the watch has seen it run
	queue   []*waiter
}

// stuck reports whether the code of the holder has run for MaxWait.
func (t *turn) stuck() bool { return t.checks >= turnChecks }

// give makes a write the holder.
func (t *turn) give(holder Merger, running bool) {
	t.holder, t.running, t.checks = holder, running, 0
}

// waiter waits for a turn. One value is sent to given: nil if it has the turn.
type waiter struct {
	holder  Merger
	running bool
	given   chan error
}

// turns are the turns of a branch that are taken. Most branches have one at a
// time.
type turns struct {
	one     turn // free if it has no slot
	more    map[Address]*turn
	watched bool
}

func (ts *turns) get(a Address) *turn {
	if ts.one.address == a {
		return &ts.one
	}
	return ts.more[a]
}

// add takes a turn that is free.
func (ts *turns) add(a Address) *turn {
	if ts.one.address.Slot == nil {
		ts.one.address = a
		return &ts.one
	}
	if ts.more == nil {
		ts.more = map[Address]*turn{}
	}
	t := &turn{address: a}
	ts.more[a] = t
	return t
}

func (ts *turns) remove(t *turn) {
	if t == &ts.one {
		*t = turn{queue: t.queue[:0]}
		return
	}
	delete(ts.more, t.address)
}

// takeTurn waits for the turn of an address. If it returns nil, the caller must
// release the turn. running is false if the write then waits for other turns.
func (b *Branch) takeTurn(a Address, holder Merger, running bool) error {
	b.mu.Lock()
	if b.turns == nil {
		b.turns = &turns{}
	}
	t := b.turns.get(a)
	switch {
	case t == nil:
		b.turns.add(a).give(holder, running)
		b.mu.Unlock()
		return nil
	case t.stuck():
		err := &TurnError{a, t.holder}
		b.mu.Unlock()
		return err
	}
	// A channel that is used again would not do in the tests of users: those
	// of one bubble of testing/synctest cannot be used in another.
	w := &waiter{holder, running, make(chan error, 1)}
	t.queue = append(t.queue, w)
	if !b.turns.watched {
		b.turns.watched = true
		b.watchTurns()
	}
	b.mu.Unlock()
	return <-w.given
}

// releaseTurn gives the turn of an address to the next that waits for it.
func (b *Branch) releaseTurn(a Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.turns.get(a)
	if len(t.queue) == 0 {
		b.turns.remove(t)
		return
	}
	next := t.queue[0]
	n := copy(t.queue, t.queue[1:])
	t.queue[n] = nil
	t.queue = t.queue[:n]
	t.give(next.holder, next.running)
	next.given <- nil
}

// turnChecks is how often within MaxWait the turns are checked.
const turnChecks = 10

// watchTurns fails the writes that wait for a turn whose holder is stuck. It
// ends when no write waits.
func (b *Branch) watchTurns() {
	time.AfterFunc(MaxWait/turnChecks, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		waiting := b.turns.one.check()
		for _, t := range b.turns.more {
			waiting = t.check() || waiting
		}
		if b.turns.watched = waiting; waiting {
			b.watchTurns()
		}
	})
}

// check notes that the holder still runs, and reports whether writes wait for
// it. If it is stuck they no longer do.
func (t *turn) check() (waiting bool) {
	if t.running {
		t.checks++
	}
	if !t.stuck() {
		return len(t.queue) > 0
	}
	for _, w := range t.queue {
		w.given <- &TurnError{t.address, t.holder}
	}
	clear(t.queue)
	t.queue = t.queue[:0]
	return false
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
	for i, a := range addresses {
		if err := b.takeTurn(a, nil, false); err != nil {
			for _, taken := range addresses[:i] {
				b.releaseTurn(taken)
			}
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range addresses {
		b.turns.get(a).running = true
	}
	return func() {
		for _, a := range addresses {
			b.releaseTurn(a)
		}
	}, nil
}
