package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/internal/bounded"
)

// Retry makes one operation on the store again while its errors may pass. It is
// for one goroutine.
type Retry struct {
	again    func(error) bool // nil if every error is final
	failed   func(context.Context, error)
	patience time.Duration // for one call of InTime; 0 if there is no limit
	pause    func(context.Context, time.Duration) error
	delay    backoff.Backoff
}

// NewRetry returns a Retry of an operation. again reports whether an error may
// pass, and failed is told of each that may, as long as the operation goes on.
func NewRetry(again func(error) bool, failed func(context.Context, error), patience time.Duration) *Retry {
	return &Retry{again: again, failed: failed, patience: patience, pause: backoff.Sleep, delay: newBackoff()}
}

// newRetry returns a Retry of an operation of the ledger.
func (l *Ledger) newRetry(again func(error) bool) Retry {
	return Retry{again: again, failed: l.failed, patience: l.opts.Patience, pause: l.pause, delay: newBackoff()}
}

// Do calls fn until it succeeds, or fails with an error that is final, or ctx
// ends. Then the error is the cause, with the last error of fn.
func (r *Retry) Do(ctx context.Context, fn func(context.Context) error) error {
	for {
		err := fn(ctx)
		if err == nil || r.again == nil || !r.again(err) {
			return err
		}
		if ctx.Err() == nil { // else that is the reason
			r.failed(ctx, err)
		}
		if cause := r.wait(ctx); cause != nil {
			if !errors.Is(err, cause) {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			return err
		}
	}
}

// errSlow ends a call that is made again.
var errSlow = errors.New("the store has not answered in time")

// InTime calls fn, in a call of Do, with a context that ends when the patience is
// over. Each call that took too long doubles it, so that a slow store is no
// failure. A call that is not made again has no limit.
func (r *Retry) InTime(ctx context.Context, fn func(context.Context) error) error {
	if r.again == nil || r.patience <= 0 {
		return fn(ctx)
	}
	inTime := bounded.New(ctx, bounded.By{Timeout: r.patience, Cause: errSlow})
	defer inTime.End()
	err := fn(inTime)
	if context.Cause(inTime) == errSlow {
		r.patience *= 2
	}
	return err
}

// wait waits for the next delay. If ctx ends first, it returns the cause.
func (r *Retry) wait(ctx context.Context) error { return r.pause(ctx, r.delay.Delay()) }

// newBackoff returns the delays between the attempts of one operation.
func newBackoff() backoff.Backoff {
	return backoff.Backoff{Min: time.Millisecond, Max: 256 * time.Millisecond}
}
