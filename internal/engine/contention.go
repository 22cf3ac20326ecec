package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state/internal/backoff"
)

// A write that calls code of the user is computed without the lock. If another
// write changes in between what it builds on, it is overtaken and starts again.
// A write that is overtaken again and again goes first: others do not write to
// the addresses where that happened, and it succeeds at the next attempt.
//
// Code of the user may itself write such an address, through another handle,
// and would wait for itself. A branch does not know which goroutine calls it.
// Others therefore wait only for a time that is longer than an attempt takes. A
// write that they did not wait for in several attempts fails with an
// [OvertakenError].
const (
	// firstAfter is the number of attempts, and firstSoon the time, after which
	// a write goes first.
	firstAfter = 8
	firstSoon  = 50 * time.Millisecond
	// minWait is the least time for which others wait.
	minWait = 100 * time.Millisecond
	// maxIgnored is the number of attempts in which others have not waited long
	// enough after which a write fails.
	maxIgnored = 3
)

// OvertakenError reports a write that was overtaken although others waited for
// it: its own code has probably written these addresses. There are none if it
// depends on all.
type OvertakenError struct{ Addresses []Address }

func (e *OvertakenError) Error() string {
	return fmt.Sprintf("%v: overtaken at %d addresses", ErrConflict, len(e.Addresses))
}

// contender is a write that is tried until it is not overtaken.
type contender struct {
	branch   *Branch
	start    time.Time
	attempts int
	longest  time.Duration // of the attempts that did not wait for themselves
	pause    backoff.Backoff

	// Guarded by the lock of the branch:
	overtaken  []Address     // where it was
	everywhere bool          // it depends on all addresses
	until      time.Time     // others wait until then
	done       chan struct{} // closed at the end; nil if it never went first
	passed     bool          // others have gone on before the attempt ended
	ignored    int           // the attempts in which they did
}

// attempt is the outcome of one attempt to write: it is done, or was overtaken
// at some addresses. No addresses stand for the whole branch.
type attempt struct {
	done bool
	at   []Address
}

// retry calls try until it is done or fails, and returns an [OvertakenError] if
// others did not let the writer go first.
func (b *Branch) retry(try func(self *contender) (attempt, error)) error {
	c := &contender{
		branch: b, start: time.Now(),
		pause: backoff.Backoff{Min: 16 * time.Microsecond, Max: time.Millisecond},
	}
	defer c.release()
	began := c.start
	for {
		result, err := try(c)
		if err != nil || result.done {
			return err
		}
		if err := c.again(result.at, began); err != nil {
			return err
		}
		began = time.Now()
	}
}

// again prepares the next attempt after one that began at a time and was
// overtaken at addresses.
func (c *contender) again(at []Address, began time.Time) error {
	c.attempts++
	time.Sleep(c.pause.Delay())
	b := c.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range at {
		if !slices.Contains(c.overtaken, a) {
			c.overtaken = append(c.overtaken, a)
		}
	}
	c.everywhere = c.everywhere || len(at) == 0
	if !c.passed {
		c.longest = max(c.longest, time.Since(began))
	} else if c.ignored++; c.ignored == maxIgnored {
		slices.SortFunc(at, Address.compare)
		return &OvertakenError{at}
	}
	if c.attempts >= firstAfter || time.Since(c.start) > firstSoon {
		c.goFirst()
	}
	return nil
}

// goFirst makes others wait during the next attempt, unless another write goes
// first. The branch is locked.
func (c *contender) goFirst() {
	b := c.branch
	if b.first != nil && b.first != c {
		return
	}
	b.first = c
	c.until, c.passed = time.Now().Add(max(minWait, 2*c.longest)), false
	if c.done == nil {
		c.done = make(chan struct{})
	}
}

// release lets others go on.
func (c *contender) release() {
	if c.done == nil {
		return // it never went first; only the writer itself sets done
	}
	b := c.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first = nil
	close(c.done)
}

// yield lets the write that goes first at an address do so. The branch is
// locked, but unlocked during the wait: what was read of it before may have
// changed.
func (b *Branch) yield(self *contender, a Address) {
	for c := b.first; c != nil && c != self && c.covers(a); c = b.first {
		left := time.Until(c.until)
		if left <= 0 {
			c.passed = true
			return
		}
		b.mu.Unlock()
		select {
		case <-c.done:
		case <-time.After(left):
		}
		b.mu.Lock()
	}
}

// covers reports whether others do not write to an address.
func (c *contender) covers(a Address) bool { return c.everywhere || slices.Contains(c.overtaken, a) }

// yieldEdits is yield for the addresses that edits write.
func (b *Branch) yieldEdits(self *contender, edits []Edit) {
	for i := range edits {
		if len(edits[i].Ops) > 0 {
			b.yield(self, edits[i].Address)
		}
	}
}

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
