package fault

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/agentstate/state/internal/backoff"
)

// PassingError is an error of a request that may succeed later.
type PassingError struct {
	Err   error
	After time.Duration // that the service has named, or 0
}

func (e *PassingError) Error() string { return e.Err.Error() }
func (e *PassingError) Unwrap() error { return e.Err }

const (
	firstDelay = time.Second      // doubles with each try
	maxDelay   = time.Minute      // of delays that double
	maxAfter   = 10 * time.Minute // of those that a service names
)

// AsPassing returns an error as one that may pass: a PassingError, a timeout of a
// [net.Error] or [io.ErrUnexpectedEOF].
func AsPassing(err error) (*PassingError, bool) {
	var named *PassingError
	if errors.As(err, &named) {
		return named, true
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, io.ErrUnexpectedEOF) {
		return &PassingError{err, 0}, true
	}
	return nil, false
}

// Wait waits before the try that follows the one with a number, from 1. The error is
// that of ctx.
func (e *PassingError) Wait(ctx context.Context, try int) error {
	delay := maxDelay
	if try < 7 {
		delay = min(firstDelay<<(try-1), maxDelay)
	}
	return backoff.Sleep(ctx, max(delay, min(e.After, maxAfter)))
}
