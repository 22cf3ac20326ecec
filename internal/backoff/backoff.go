// Package backoff spaces out the attempts of an operation that fails because of
// contention or a passing fault.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff computes the delays between attempts: exponential back-off with full
// jitter. Each delay is a random time below a limit, so that callers that have
// collided once are unlikely to collide again. The limit starts at Min and
// doubles after each delay until it reaches Max. Min must be positive.
//
// A Backoff belongs to one operation and is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration

	limit time.Duration // of the last delay; zero before the first
}

// Delay returns the time to wait before the next attempt.
func (b *Backoff) Delay() time.Duration {
	b.limit = min(max(2*b.limit, b.Min), b.Max)
	return rand.N(b.limit)
}

// Wait waits for the next delay. If ctx ends first, Wait returns the cause.
func (b *Backoff) Wait(ctx context.Context) error { return Sleep(ctx, b.Delay()) }

// Reset makes the next delay as short as the first. Call it when an attempt has
// made progress.
func (b *Backoff) Reset() { b.limit = 0 }

// MayPass reports whether a request may succeed later after an HTTP status, as the
// SDKs of providers see it.
func MayPass(status int) bool {
	switch status { // a package that the root imports does not import net/http
	case 408, 409, 425, 429:
		return true
	}
	return status >= 500
}

// Sleep waits for d. If ctx ends first, Sleep returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	// With both ready, select picks either: a context that has ended wins.
	return context.Cause(ctx)
}
