package engine

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/agentstate/state/internal/backoff"
)

// A write that calls code of the user is computed without the lock. If another
// write changes in between what it builds on, it is overtaken and starts again.
// A write that is overtaken again and again claims the addresses where that
// happened: other writes to them wait, and it succeeds at the next attempt.
//
// Code of the user may itself write such an address, through another handle,
// and would wait for itself. A branch does not know which goroutine calls it. A
// claim is therefore ignored after a time that is longer than an attempt takes.
// A write whose claim was ignored in several attempts fails with an
// [OvertakenError].
const (
	// claimAfter is the number of attempts, and claimSoon the time, after which
	// a write claims addresses.
	claimAfter = 8
	claimSoon  = 50 * time.Millisecond
	// claimAllAfter is the number of attempts after which it claims all
	// addresses, because it is overtaken at another one each time.
	claimAllAfter = 64
	// minWait is the least time for which other writes wait for a claim.
	minWait = 100 * time.Millisecond
	// maxIgnored is the number of attempts with an ignored claim after which a
	// write fails.
	maxIgnored = 3
)

// OvertakenError reports a write that was overtaken although others waited for
// it: its own code has probably written these addresses.
type OvertakenError struct{ Addresses []Address }

func (e *OvertakenError) Error() string {
	return fmt.Sprintf("%v: overtaken at %d addresses", ErrConflict, len(e.Addresses))
}

// contender is a write that is tried until it is not overtaken.
type contender struct {
	branch   *Branch
	start    time.Time
	attempts int
	natural  time.Duration // the longest attempt without waits for itself
	pause    backoff.Backoff

	// Guarded by the lock of the branch:
	overtaken  []Address // where it was, and what it claims
	everywhere bool      // it claims all addresses
	until      time.Time // others wait until then
	done       chan struct{}
	ignored    bool      // others have written in this attempt in spite of the claim
	attacks    int       // the attempts in which they did
	writes     []Address // what they have written
}

// attempt is the outcome of one attempt to write: it is done, or was overtaken
// at some addresses. No addresses stand for the whole branch.
type attempt struct {
	done bool
	at   []Address
}

// retry calls try until it is done or fails, and returns an [OvertakenError] if
// the claim of the writer was ignored.
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
	if c.attempts++; c.attempts < 4 {
		runtime.Gosched()
	} else {
		time.Sleep(c.pause.Delay())
	}
	b := c.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range at {
		if !slices.Contains(c.overtaken, a) {
			c.overtaken = append(c.overtaken, a)
		}
	}
	c.everywhere = c.everywhere || len(at) == 0 || c.attempts >= claimAllAfter
	if !c.ignored {
		c.natural = max(c.natural, time.Since(began))
	} else if c.attacks++; c.attacks == maxIgnored {
		slices.SortFunc(c.writes, Address.compare)
		return &OvertakenError{c.writes}
	}
	if c.attempts >= claimAfter || time.Since(c.start) > claimSoon {
		c.claim()
	}
	return nil
}

// claim makes others wait during the next attempt. If another writer has a
// claim, it waits first. The branch is locked.
func (c *contender) claim() {
	b := c.branch
	if b.claimant != nil && b.claimant != c {
		b.waitFor(b.claimant)
		if b.claimant != nil {
			return // the other cannot go first, perhaps because it waits for this one
		}
	}
	c.until, c.ignored = time.Now().Add(max(minWait, 2*c.natural)), false
	if c.done == nil {
		c.done = make(chan struct{})
	}
	b.claimant = c
}

// release ends the claim.
func (c *contender) release() {
	if c.done == nil {
		return // there was no claim; only the writer itself sets done
	}
	b := c.branch
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claimant == c {
		b.claimant = nil
	}
	close(c.done)
}

// covers reports whether the claim is on an address.
func (c *contender) covers(a Address) bool { return c.everywhere || slices.Contains(c.overtaken, a) }

// yield lets the write that has claimed an address go first. The branch is
// locked, but unlocked during the wait: what was read of the branch before may
// have changed.
func (b *Branch) yield(self *contender, a Address) {
	c := b.claimant
	if c == nil || c == self || !c.covers(a) {
		return
	}
	b.waitFor(c)
	if b.claimant == c {
		c.ignored = true
		if !slices.Contains(c.writes, a) {
			c.writes = append(c.writes, a)
		}
	}
}

// yieldEdits is yield for the addresses that edits write.
func (b *Branch) yieldEdits(self *contender, edits []Edit) {
	for i := range edits {
		if len(edits[i].Ops) > 0 {
			b.yield(self, edits[i].Address)
		}
	}
}

// waitFor waits until a claim ends or has been respected for long enough. The
// branch is locked, but unlocked during the wait.
func (b *Branch) waitFor(c *contender) {
	for b.claimant == c {
		left := time.Until(c.until)
		if left <= 0 {
			return
		}
		b.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-c.done:
		case <-timer.C:
		}
		timer.Stop()
		b.mu.Lock()
	}
}
