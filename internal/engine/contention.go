package engine

import (
	"runtime"
	"time"

	"github.com/agentstate/state/internal/backoff"
)

const (
	// maxAttempts is the number of times that a transaction is tried. Each
	// attempt that fails was overtaken by a write that succeeded.
	maxAttempts = 2000
	// yieldAfter is the number of attempts after which a writer is starved, and
	// others let it go first.
	yieldAfter = 64
	// yieldFor is the longest time for which others do. It is bounded since the
	// starved writer may be waiting for them: a transaction may use the handle
	// that it was started from.
	yieldFor = 100 * time.Millisecond
	// limitAfter is the number of attempts that a time limit leaves: the code of
	// the user may take longer than the limit, and be overtaken by chance.
	limitAfter = 8
)

// retry calls try until it is done or fails. If there is a limit, it gives up
// when it has been overtaken for that long.
func (b *Branch) retry(limit time.Duration, try func() (done bool, err error)) error {
	start := time.Now()
	pause := backoff.Backoff{Min: 16 * time.Microsecond, Max: time.Millisecond}
	for i := range maxAttempts {
		switch {
		case i < yieldAfter:
			b.yieldToStarved()
		case i == yieldAfter:
			b.starved.Add(1)
			defer b.starved.Add(-1)
		}
		if limit > 0 && i >= limitAfter && time.Since(start) > limit {
			return ErrConflict
		}
		if done, err := try(); done || err != nil {
			return err
		}
		if i < 4 {
			runtime.Gosched()
		} else {
			time.Sleep(pause.Delay())
		}
	}
	return ErrConflict
}

// yieldToStarved waits, for at most yieldFor, while a starved writer is at work.
func (b *Branch) yieldToStarved() {
	if b.starved.Load() == 0 {
		return
	}
	for start := time.Now(); b.starved.Load() > 0 && time.Since(start) < yieldFor; {
		time.Sleep(yieldFor / 100)
	}
}
