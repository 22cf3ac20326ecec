package engine

import (
	"errors"
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
	// starvedFor is the longest time for which a writer is starved. It is
	// bounded since the starved writer may be waiting for its own writes again
	// and again.
	starvedFor = time.Second
	// limitAfter is the number of attempts that a time limit leaves: the code
	// of the user may take longer than the limit, and be overtaken by chance.
	limitAfter = 8
)

// errOvertaken reports a write that was overtaken too often. It does not leave
// the package: code of the user may return ErrConflict for other reasons.
var errOvertaken = errors.New("state: overtaken")

// retry calls try until it is done or fails. If there is a limit, it gives up
// when it has been overtaken for that long. When it gives up, it returns
// errOvertaken.
func (b *Branch) retry(limit time.Duration, try func() (done bool, err error)) error {
	start := time.Now()
	pause := backoff.Backoff{Min: 16 * time.Microsecond, Max: time.Millisecond}
	var starved starvation
	defer starved.end(b)
	for i := range maxAttempts {
		switch {
		case i < yieldAfter:
			b.yieldToStarved()
		case i == yieldAfter:
			starved.begin(b)
		case starved.lasted() > starvedFor:
			starved.end(b)
		}
		if limit > 0 && i >= limitAfter && time.Since(start) > limit {
			return errOvertaken
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
	return errOvertaken
}

// starvation is the time for which a writer is starved.
type starvation struct{ since time.Time } // zero if it is not

func (s *starvation) begin(b *Branch) {
	s.since = time.Now()
	b.starved.Add(1)
}

func (s *starvation) end(b *Branch) {
	if !s.since.IsZero() {
		s.since = time.Time{}
		b.starved.Add(-1)
	}
}

// lasted returns the time since the beginning, 0 if the writer is not starved.
func (s *starvation) lasted() time.Duration {
	if s.since.IsZero() {
		return 0
	}
	return time.Since(s.since)
}

// yieldToStarved waits, for at most yieldFor, while a starved writer is at
// work.
func (b *Branch) yieldToStarved() {
	if b.starved.Load() == 0 {
		return
	}
	for start := time.Now(); b.starved.Load() > 0 && time.Since(start) < yieldFor; {
		time.Sleep(yieldFor / 100)
	}
}
