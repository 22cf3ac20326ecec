package loop

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/agentstate/state/internal/backoff"
)

// Retryable returns an error by which [Agent].Ask says that its request failed
// and may succeed later, for example because the service of the model is
// overloaded. [Loop] asks again after a time: after is the one that the service
// has named, or 0. Retryable returns nil if err is nil.
//
// Package wire says so by itself. Errors of [net.Error] that are timeouts, and
// [io.ErrUnexpectedEOF], may pass as well.
func Retryable(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &passingError{err, after}
}

type passingError struct {
	err   error
	after time.Duration
}

func (e *passingError) Error() string { return e.err.Error() }
func (e *passingError) Unwrap() error { return e.err }

const (
	maxTries   = 6                // of one request
	firstDelay = time.Second      // doubles with each try
	maxDelay   = time.Minute      // of delays that double
	maxAfter   = 10 * time.Minute // of those that a service names
)

// passing returns the error of a request that may pass. noted is what was noted
// of the request by what has sent it, or nil.
func passing(err error, noted *passingError) (*passingError, bool) {
	var named *passingError
	if errors.As(err, &named) {
		return named, true
	}
	if noted != nil {
		return &passingError{err, noted.after}, true
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, io.ErrUnexpectedEOF) {
		return &passingError{err, 0}, true
	}
	return nil, false
}

// wait waits before the try with a number, from 1. The error is that of ctx.
func (e *passingError) wait(ctx context.Context, try int) error {
	delay := min(firstDelay<<(try-1), maxDelay)
	return backoff.Sleep(ctx, max(delay, min(e.after, maxAfter)))
}

// noteFailure notes that a request has failed with an error that may pass, or
// with nil that it has not.
func (t *Turn) noteFailure(err error, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure = nil; err != nil {
		t.failure = &passingError{err, after}
	}
}

func (t *Turn) lastFailure() *passingError {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}
