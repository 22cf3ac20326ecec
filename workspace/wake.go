package workspace

import (
	"context"
	"time"
)

// wake makes waitOrWake return.
func wake(look chan<- struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}

// waitOrWake waits for a time, or until look is woken. If ctx ends, it returns
// the cause.
func waitOrWake(ctx context.Context, d time.Duration, look <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-look:
	case <-timer.C:
	}
	return context.Cause(ctx)
}
