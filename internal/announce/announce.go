// Package announce keeps the announcements of the stores that implement
// store.Presence.
package announce

import (
	"context"
	"sync"
	"time"
)

const (
	checkTimeout   = 5 * time.Second
	releaseTimeout = 2 * time.Second
)

// Claim is what makes a name present. Its functions are not called
// concurrently.
type Claim struct {
	// Interval is the time between two checks.
	Interval time.Duration
	// Check returns an error if the name may be absent.
	Check func(ctx context.Context) error
	// Release ends the claim. It is called once. If it returns an error, the
	// name may remain present for a while.
	Release func(ctx context.Context) error
	// Broken is closed when the connection breaks. It is nil if only Check
	// finds out.
	Broken <-chan struct{}
}

// Keeper checks a claim now and then until it is withdrawn or lost.
type Keeper struct {
	claim    Claim
	lost     chan struct{}
	withdrew chan struct{}
	once     sync.Once // closes withdrew
	done     chan struct{}
	err      error // of Release; set before done is closed
}

// NewKeeper returns a keeper, whose Run the caller must call.
func NewKeeper(claim Claim) *Keeper {
	return &Keeper{
		claim:    claim,
		lost:     make(chan struct{}),
		withdrew: make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// Lost is closed when the name may be absent although Withdraw was not called.
func (k *Keeper) Lost() <-chan struct{} { return k.lost }

// Withdraw ends the claim, waits for the end of Run, and returns the error of
// Release.
func (k *Keeper) Withdraw() error {
	k.once.Do(func() { close(k.withdrew) })
	<-k.done
	return k.err
}

// Run returns after it has released the claim: when it was withdrawn or lost,
// or closing is closed, which loses it.
func (k *Keeper) Run(closing <-chan struct{}) {
	defer close(k.done)
	if !k.waitForWithdrawal(closing) {
		close(k.lost)
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	k.err = k.claim.Release(ctx)
}

// waitForWithdrawal returns false if the claim is lost.
func (k *Keeper) waitForWithdrawal(closing <-chan struct{}) bool {
	tick := time.NewTicker(k.claim.Interval)
	defer tick.Stop()
	for {
		select {
		case <-k.withdrew:
			return true
		case <-closing:
			return false
		case <-k.claim.Broken:
			return false
		case <-tick.C:
			if k.check(closing) != nil {
				return false
			}
		}
	}
}

// check calls Check, whose context ends when closing is closed.
func (k *Keeper) check(closing <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer cancel()
	watcher.Go(func() {
		select {
		case <-closing:
			cancel()
		case <-ctx.Done():
		}
	})
	return k.claim.Check(ctx)
}
